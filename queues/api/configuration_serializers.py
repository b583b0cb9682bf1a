"""The shapes of configuration objects, for the OpenAPI document."""

from typing import Any, Final

from rest_framework import serializers

from accounts.models import ClusterMode
from queues.api.serializers import ConditionSerializer
from scheduling.model.vocabulary import (
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    StopPolicy,
    WithinClusterQueuePolicy,
)

Shape = serializers.Serializer[Any]

FUNGIBILITY_POLICIES: Final = [policy.value for policy in FungibilityPolicy]


def _texts(**options: Any) -> serializers.DictField:
    return serializers.DictField(child=serializers.CharField(allow_blank=True), **options)


class ObjectSerializer(Shape):
    """What every configuration object has."""

    uid = serializers.UUIDField(read_only=True)
    name = serializers.CharField(read_only=True)
    labels = _texts(required=False)
    annotations = _texts(required=False)
    generation = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    deletion_requested_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="It is to go, and waits for what still holds it."
    )


class QuotaSerializer(Shape):
    """How much of a resource there is in a flavor; amounts are Kubernetes quantities."""

    name = serializers.CharField()
    nominal_quota = serializers.CharField()
    borrowing_limit = serializers.CharField(allow_null=True, required=False, help_text="null: no limit.")
    lending_limit = serializers.CharField(allow_null=True, required=False, help_text="null: all of it.")


class FlavorQuotasSerializer(Shape):
    """The quotas in a flavor."""

    name = serializers.CharField()
    resources = QuotaSerializer(many=True)


class ResourceGroupSerializer(Shape):
    """Resources that get one flavor together, and the flavors in the order in which they are tried."""

    covered_resources = serializers.ListField(child=serializers.CharField())
    flavors = FlavorQuotasSerializer(many=True)


class FlavorFungibilitySerializer(Shape):
    """Whether to try the next flavor before borrowing or preempting in this one."""

    when_can_borrow = serializers.ChoiceField(FUNGIBILITY_POLICIES, required=False)
    when_can_preempt = serializers.ChoiceField(FUNGIBILITY_POLICIES, required=False)
    preference = serializers.CharField(allow_blank=True, required=False)


class BorrowWithinCohortSerializer(Shape):
    """Whether a workload that has to borrow may preempt."""

    policy = serializers.ChoiceField([policy.value for policy in BorrowWithinCohortPolicy], required=False)
    max_priority_threshold = serializers.IntegerField(allow_null=True, required=False)


class PreemptionSerializer(Shape):
    """Whom a waiting workload may preempt."""

    within_cluster_queue = serializers.ChoiceField(
        [policy.value for policy in WithinClusterQueuePolicy], required=False
    )
    reclaim_within_cohort = serializers.ChoiceField(
        [policy.value for policy in ReclaimWithinCohortPolicy], required=False
    )
    borrow_within_cohort = BorrowWithinCohortSerializer(required=False)


class AdmissionCheckRuleSerializer(Shape):
    """A check, and the flavors that it is for; none are all."""

    name = serializers.CharField()
    on_flavors = serializers.ListField(child=serializers.CharField(), required=False)


class PreemptionProtectionSerializer(Shape):
    """Beyond Kueue: how long a workload is safe."""

    minimum_run_seconds = serializers.IntegerField(required=False, min_value=0)
    cool_down_seconds = serializers.IntegerField(required=False, min_value=0)


class _WithQuotas(ObjectSerializer):
    fair_weight = serializers.CharField(required=False, help_text="Of fair sharing; 1 by default.")
    preemption_protection = PreemptionProtectionSerializer(required=False)
    resource_groups = ResourceGroupSerializer(many=True, required=False)


class ClusterQueueSerializer(_WithQuotas):
    """A ClusterQueue."""

    cohort = serializers.CharField(allow_blank=True, required=False)
    queueing_strategy = serializers.ChoiceField([strategy.value for strategy in QueueingStrategy], required=False)
    namespace_selector = serializers.DictField(
        allow_null=True, required=False, help_text="A label selector; null selects no namespace, {} all."
    )
    flavor_fungibility = FlavorFungibilitySerializer(required=False)
    preemption = PreemptionSerializer(required=False)
    admission_checks = AdmissionCheckRuleSerializer(many=True, required=False)
    stop_policy = serializers.ChoiceField([policy.value for policy in StopPolicy], required=False)
    admission_mode = serializers.CharField(allow_blank=True, required=False)
    preempt_for_devices = serializers.BooleanField(required=False, help_text="Beyond Kueue.")


class ClusterQueueStatusSerializer(ClusterQueueSerializer):
    """A ClusterQueue, whether it is active, and how many workloads it has."""

    pending = serializers.IntegerField(read_only=True)
    reserving = serializers.IntegerField(read_only=True)
    admitted = serializers.IntegerField(read_only=True)
    conditions = ConditionSerializer(many=True, read_only=True)


class CohortSerializer(_WithQuotas):
    """A Cohort."""

    parent = serializers.CharField(  # type: ignore[assignment]  # a field of that name, as DRF allows
        allow_blank=True, required=False
    )


class LocalQueueSerializer(ObjectSerializer):
    """A LocalQueue."""

    namespace = serializers.CharField(read_only=True)
    cluster_queue = serializers.CharField(required=False)
    stop_policy = serializers.ChoiceField([policy.value for policy in StopPolicy], required=False)
    fair_weight = serializers.CharField(required=False)


class LocalQueueStatusSerializer(LocalQueueSerializer):
    """A LocalQueue, whether it is active, and how many workloads it has."""

    pending = serializers.IntegerField(read_only=True)
    reserving = serializers.IntegerField(read_only=True)
    admitted = serializers.IntegerField(read_only=True)
    conditions = ConditionSerializer(many=True, read_only=True)


class ResourceFlavorSerializer(ObjectSerializer):
    """A ResourceFlavor."""

    node_labels = _texts(required=False)
    node_taints = serializers.ListField(child=serializers.DictField(), required=False)
    tolerations = serializers.ListField(child=serializers.DictField(), required=False)
    topology = serializers.CharField(allow_blank=True, required=False)


class TopologySerializer(ObjectSerializer):
    """A Topology."""

    levels = serializers.ListField(child=serializers.CharField(), help_text="Node labels, the widest first.")


class AdmissionCheckSerializer(ObjectSerializer):
    """An AdmissionCheck."""

    controller_name = serializers.CharField()
    parameters = serializers.DictField()
    active = serializers.BooleanField()


class WorkloadPriorityClassSerializer(ObjectSerializer):
    """A WorkloadPriorityClass."""

    value = serializers.IntegerField()
    description = serializers.CharField(allow_blank=True)


class PriorityClassSerializer(WorkloadPriorityClassSerializer):
    """A PriorityClass."""

    global_default = serializers.BooleanField()
    preemption_policy = serializers.CharField(allow_blank=True)


class ResourceQuotaSerializer(ObjectSerializer):
    """A ResourceQuota; of what it limits, device memory and cores count here."""

    namespace = serializers.CharField()
    hard = _texts(help_text="{resource: quantity}")
    scopes = serializers.ListField(child=serializers.CharField())
    scope_selector = serializers.DictField(help_text="As in Kubernetes.")


class LimitRangeSerializer(ObjectSerializer):
    """A LimitRange."""

    namespace = serializers.CharField()
    limits = serializers.ListField(
        child=serializers.DictField(), help_text="`spec.limits` of Kubernetes with its defaults filled in."
    )


class RuntimeClassSerializer(ObjectSerializer):
    """A RuntimeClass."""

    handler = serializers.CharField()
    pod_overhead = _texts(help_text="{resource: quantity} that each pod asks for on top of its containers.")
    scheduling = serializers.DictField(help_text="As in Kubernetes.")


class ClusterSerializer(Shape):
    """A cluster."""

    name = serializers.CharField()
    mode = serializers.ChoiceField([mode.value for mode in ClusterMode])
    server_url = serializers.CharField(allow_blank=True, help_text="Empty for those who may not see it.")
    configuration = serializers.DictField(help_text="Kueue's Configuration, as applied.")
    created_at = serializers.DateTimeField()
