"""The shapes of queues' JSON, for the OpenAPI document. Rows are rendered without them (see `workload_rows`)."""

import re
from typing import Any, Final

from rest_framework import serializers

from accounts.api.fields import Text, TrueOrFalse
from queues.api.expected_start import ExpectedStartSerializer
from scheduling.model.vocabulary import ConditionStatus, FinishedReason, WorkloadState, WorkloadStatus

Shape = serializers.Serializer[Any]
_PLAIN: Final = re.compile("[a-z0-9.-]+").fullmatch

CONDITION_STATUSES: Final = [status.value for status in ConditionStatus]
WORKLOAD_STATUSES: Final = [status.value for status in WorkloadStatus]
WORKLOAD_STATES: Final = [state.value for state in WorkloadState]


def quantities(help_text: str, *, required: bool = True) -> serializers.DictField:
    """Resource name -> Kubernetes quantity."""
    return serializers.DictField(child=serializers.CharField(), help_text=help_text, required=required)


class OwnerSerializer(Shape):
    """The job that owns a workload."""

    kind = serializers.CharField()
    name = serializers.CharField()


class PodSetTopologySerializer(Shape):
    """Kueue's topologyRequest."""

    required = serializers.CharField(required=False)  # type: ignore[assignment]  # Kueue names it so
    preferred = serializers.CharField(required=False)
    unconstrained = TrueOrFalse(required=False)
    pod_index_label = serializers.CharField(required=False)
    sub_group_index_label = serializers.CharField(required=False)
    sub_group_count = serializers.IntegerField(required=False)
    pod_set_group_name = serializers.CharField(required=False)
    pod_set_slice_required_topology = serializers.CharField(required=False)
    pod_set_slice_size = serializers.IntegerField(required=False)


class PodSetSerializer(Shape):
    """A group of identical pods."""

    name = serializers.CharField()
    count = serializers.IntegerField()
    min_count = serializers.IntegerField(allow_null=True, help_text="The minimum count for partial admission.")
    requests = quantities("Requests per pod.")
    node_selector = serializers.DictField(child=serializers.CharField())
    topology_request = PodSetTopologySerializer()
    reclaimable_count = serializers.IntegerField(
        help_text="The number of pods that have ended and released their quota."
    )
    admitted_count = serializers.IntegerField(allow_null=True)
    flavors = serializers.DictField(
        child=serializers.CharField(), help_text="The assigned ResourceFlavor by resource name."
    )
    resource_usage = quantities("Total usage of its pods, as charged against the quota.")
    topology_assignment = serializers.JSONField(
        help_text="{levels, domains: [{values, count}]}, or null. `delayed` (Pending, Ready): it waits, or has waited, "
        "for admission checks."
    )


class ConditionSerializer(Shape):
    """A condition of Kueue's."""

    type = serializers.CharField()
    status = serializers.ChoiceField(CONDITION_STATUSES)
    reason = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    last_transition_time = serializers.DateTimeField()


class AdmissionCheckStateSerializer(Shape):
    """The state of an admission check of a workload."""

    name = serializers.CharField()
    state = serializers.CharField()
    message = serializers.CharField(required=False)
    last_transition_time = serializers.DateTimeField(required=False)


class HeldSliceSerializer(Shape):
    """A slice of a device that a container holds."""

    pod_set = serializers.CharField()
    replica = serializers.IntegerField()
    container = serializers.CharField()
    node = serializers.CharField()
    uuid = serializers.CharField(help_text="The device's UUID.")
    memory_mib = serializers.IntegerField()
    cores_percent = serializers.IntegerField()


class WorkloadSerializer(Shape):
    """A workload."""

    id = serializers.IntegerField()
    uid = serializers.UUIDField()
    cluster = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    local_queue = serializers.CharField(help_text="The name of the LocalQueue.")
    cluster_queue = serializers.CharField(
        help_text="The ClusterQueue that admitted it, or to which its LocalQueue points."
    )
    priority = serializers.IntegerField()
    priority_class = serializers.CharField()
    status = serializers.ChoiceField(WORKLOAD_STATUSES)
    state = serializers.ChoiceField(
        WORKLOAD_STATES, help_text="The status, refined by `active`, the state of the pods and the outcome."
    )
    active = serializers.BooleanField(help_text="False: on hold, as with Kueue's spec.active.")
    never_preempt = serializers.BooleanField()
    maximum_execution_seconds = serializers.IntegerField(allow_null=True)
    submitted_by = serializers.CharField()
    reason = serializers.CharField(help_text="Why it waits or ended; a stable identifier.")
    message = serializers.CharField(help_text="The reason as a sentence.")
    position = serializers.IntegerField(
        required=False, help_text="The position, from 1; only with `ordering=position`."
    )
    created_at = serializers.DateTimeField()
    queued_at = serializers.DateTimeField(help_text="The time that determines its place in the queue.")
    quota_reserved_at = serializers.DateTimeField(allow_null=True)
    admitted_at = serializers.DateTimeField(allow_null=True)
    evicted_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    requeue_at = serializers.DateTimeField(allow_null=True)
    expected_start = ExpectedStartSerializer(
        allow_null=True, help_text="When it may start; null for one that holds quota or has finished."
    )
    owner = OwnerSerializer(allow_null=True)
    variant_of = serializers.CharField(
        help_text="The name of the workload for which it pursues a flavor (concurrent admission); empty for a job."
    )
    pod_sets = PodSetSerializer(many=True)
    annotations = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="In a list, only the annotations that `?annotations=` names.",
    )


class VariantSerializer(Shape):
    """A variant of a workload: it pursues one flavor (concurrent admission)."""

    name = serializers.CharField()
    flavor = serializers.CharField()
    status = serializers.ChoiceField(WORKLOAD_STATUSES)
    state = serializers.ChoiceField(WORKLOAD_STATES)
    active = serializers.BooleanField(
        help_text="False: it does not compete for quota, because a preferred variant has it."
    )
    reason = serializers.CharField(help_text="Why it waits or ended; stable.")
    message = serializers.CharField(help_text="The same as a sentence.")
    admitted_at = serializers.DateTimeField(allow_null=True)
    gate_opened_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was allowed to preempt; null: it is not allowed to."
    )


class WorkloadDetailSerializer(WorkloadSerializer):
    """A workload, with the fields that only its own page shows."""

    annotations = serializers.DictField(child=serializers.CharField())
    conditions = ConditionSerializer(many=True)
    admission_checks = AdmissionCheckStateSerializer(many=True)
    devices = HeldSliceSerializer(many=True)
    variants = VariantSerializer(
        many=True, help_text=("The variants of a concurrentAdmissionPolicy, the preferred flavor first.")
    )
    requeue_count = serializers.IntegerField()
    eviction_counts = serializers.JSONField()
    unhealthy_nodes = serializers.JSONField()
    push_error = serializers.CharField(help_text="The cluster's message, if it refused the last push.")
    generation = serializers.IntegerField()
    resource_version = serializers.CharField(
        help_text="An opaque version that differs after every change; only compare it for equality."
    )
    deletion_requested_at = serializers.DateTimeField(allow_null=True)


class PodSetInputSerializer(Shape):
    """A pod set to submit: either `requests` (with `node_selector` and `tolerations`) or a whole `template`."""

    name = serializers.CharField(default="main")
    count = serializers.IntegerField(default=1, min_value=0)
    min_count = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    requests = quantities("Requests per pod, such as {cpu: 500m, memory: 2Gi, nvidia.com/gpu: 1}.", required=False)
    node_selector = serializers.DictField(child=serializers.CharField(), required=False)
    tolerations = serializers.ListField(child=serializers.DictField(), required=False)
    template = serializers.DictField(required=False, help_text="Kubernetes' PodTemplateSpec.")
    topology_request = PodSetTopologySerializer(required=False)


class WorkloadInputSerializer(Shape):
    """A workload to submit."""

    namespace = serializers.CharField()
    name = serializers.CharField(required=False, help_text="Required unless `generate_name` is given.")
    generate_name = serializers.CharField(
        required=False, help_text="A prefix, to which five random characters are added."
    )
    local_queue = serializers.CharField(required=False, help_text="The name of the LocalQueue.")
    priority = serializers.IntegerField(required=False, allow_null=True)
    priority_class = serializers.CharField(required=False)
    priority_class_kind = serializers.ChoiceField(
        ["WorkloadPriorityClass", "PriorityClass"], default="WorkloadPriorityClass"
    )
    active = TrueOrFalse(default=True)
    never_preempt = TrueOrFalse(default=False, help_text="Requires the role admin in the namespace.")
    maximum_execution_seconds = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    labels = serializers.DictField(child=serializers.CharField(), required=False)
    annotations = serializers.DictField(child=serializers.CharField(), required=False)
    pod_sets = PodSetInputSerializer(many=True)


class CreatedWorkloadSerializer(Shape):
    """A workload that was stored."""

    id = serializers.IntegerField()
    uid = serializers.UUIDField()
    namespace = serializers.CharField()
    name = serializers.CharField()


class CreatedSerializer(Shape):
    """The stored objects of a submission, in its order."""

    workloads = CreatedWorkloadSerializer(many=True)


class KeySerializer(Shape):
    """The key of a workload."""

    namespace = Text()
    name = Text()


class KeyList(serializers.ListSerializer[Any]):
    """Keys of thousands of workloads. A list of valid names is accepted at once; a list with any other value is
    validated by the fields, which produce the errors."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and data and all(map(_is_plain_key, data)):
            return [{"namespace": key["namespace"], "name": key["name"]} for key in data]
        return list(super().to_internal_value(data))


def _is_plain_key(key: Any) -> bool:
    if not isinstance(key, dict):
        return False
    namespace, name = key.get("namespace"), key.get("name")
    return bool(isinstance(namespace, str) and isinstance(name, str) and _PLAIN(namespace) and _PLAIN(name))


class KeysSerializer(Shape):
    """The workloads to which an action applies."""

    workloads = KeyList(child=KeySerializer())


class FinishSerializer(KeysSerializer):
    """Workloads that have ended."""

    reason = serializers.ChoiceField(
        [reason.value for reason in FinishedReason], default=FinishedReason.SUCCEEDED.value
    )
    message = Text(required=False, allow_blank=True, max_length=1024, default="")


class SkippedSerializer(KeySerializer):
    """A workload that an action skipped."""

    reason = serializers.CharField(help_text="NotFound, or Conflict: its state does not allow it.")
    message = serializers.CharField()


class ChangedSerializer(Shape):
    """The workloads that an action changed, and those that it skipped."""

    changed = KeySerializer(many=True)
    skipped = SkippedSerializer(many=True)


class PriorityInputSerializer(Shape):
    """A new priority: a number, or the name of a WorkloadPriorityClass."""

    priority = serializers.IntegerField(required=False, min_value=-(2**31), max_value=2**31 - 1)
    priority_class = Text(required=False)


class PriorityOfManySerializer(KeysSerializer):
    """Workloads and their new priority: a number, or the name of a WorkloadPriorityClass."""

    priority = serializers.IntegerField(required=False, min_value=-(2**31), max_value=2**31 - 1)
    priority_class = Text(required=False)


class WorkloadEventSerializer(Shape):
    """An event of a workload."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    type = serializers.ChoiceField(["Normal", "Warning"])
    reason = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    actor = serializers.CharField(allow_blank=True)
