"""The kinds that serve, such as Deployment: they never finish and are never suspended; instead, their pods wait at
scheduling gates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.defaulting import default_priority_class, default_queue
from clusters.jobs.framework.errors import FieldErrors, JobError, immutable, invalid, required
from clusters.jobs.framework.identity import is_managed, managed_ancestor, priority_class_of, queue_name_of
from clusters.jobs.framework.job_kind import JobKind, Outcome, Stopping, TemplateSite, integer_at
from clusters.jobs.framework.manifest import (
    JsonObject,
    annotations_of,
    controller_of,
    dig,
    labels_of,
    namespace_of,
    set_annotation,
    set_label,
)
from clusters.jobs.framework.pod_sets import canonical
from clusters.jobs.framework.scheduling_gates import remove_gates
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.framework.validation import (
    check_changed_gates,
    check_changed_priority_class,
    check_elastic,
    check_new_gates,
    check_queue_name,
    label_path,
)
from queues.manifests import kueue_keys as keys

MULTIKUEUE_ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
REVISION_LABEL: Final = "controller-revision-hash"
_ROLE_FIELDS: Final = (
    "nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints", "overhead",
    "resourceClaims",
)  # fmt: skip


class ServingKind(JobKind):
    """A kind whose pods are gated. `framework` is the value written on its pods."""

    framework: str
    group_label: str = ""
    """The label that distinguishes the pods of the workloads of one object."""
    part_kind: str = ""
    """The kind of the intermediate objects that create its pods, if it does not create them itself."""
    defaults_updates = True
    stopping = Stopping.DELETE_PODS
    optional = False
    serves = True
    size_path = "spec.replicas"

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        return []  # the templates stay unchanged: the pods get the node selectors directly

    def is_suspended(self, job: JsonObject) -> bool:
        return integer_at(job, "status", "readyReplicas") == 0

    def suspend(self, job: JsonObject) -> None:
        """Do nothing: the kind's pods are stopped one by one."""

    def selector_of_pods(self, job: JsonObject) -> str:
        wanted = dig(job, "spec", "selector", "matchLabels") or {}
        return ",".join(f"{key}={value}" for key, value in sorted(wanted.items()))

    def outcome(self, job: JsonObject) -> Outcome:
        return Outcome(False)

    def is_active(self, job: JsonObject) -> bool:
        return integer_at(job, "status", "replicas") > 0

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return integer_at(job, "status", "readyReplicas") >= integer_at(job, "spec", "replicas", default=1)

    def workload_names(self, job: JsonObject) -> list[str]:
        """Return the names of the workloads that the pods of the object need; empty if each pod is a workload."""
        return []

    # The webhooks

    def default(self, job: JsonObject, context: JobContext) -> None:
        default_queue(job, context)
        default_priority_class(job, context)
        if is_managed(job, context):
            self.mark_templates(job)

    @abstractmethod
    def mark_templates(self, job: JsonObject) -> None:
        """Gate the pods of a managed object."""

    def mark(self, template: JsonObject, job: JsonObject) -> None:
        """Copy queue and priority to the pods of a template, and label the pods with their owner."""
        if queue_name_of(job):
            set_label(template, keys.QUEUE_NAME, queue_name_of(job))
        if priority_class_of(job):
            set_label(template, keys.PRIORITY_CLASS, priority_class_of(job))
        set_annotation(template, keys.SUSPENDING_PARENT, self.framework)

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return [*check_queue_name(job), *check_elastic(self, job), *check_new_gates(job)]

    def check_update(self, old: JsonObject, new: JsonObject, context: JobContext) -> FieldErrors:
        errors = [*check_queue_name(new), *check_elastic(self, new)]
        suspended = self.is_suspended(old)
        if not suspended or not queue_name_of(new):
            errors += immutable(label_path(keys.QUEUE_NAME), queue_name_of(old), queue_name_of(new))
        errors += check_changed_priority_class(old, new, suspended=suspended)
        return list(dict.fromkeys([*errors, *check_changed_gates(old, new)]))

    # The controller

    @abstractmethod
    def reconcile(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        """Run one pass over one object and its pods. Raises JobError."""

    def reconcile_pods(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        """Run the part of a pass that concerns the pods of an object: make them members of their workloads' groups."""

    def maker_of(self, pod: JsonObject) -> str:
        """Return the name of the object that created a pod, from the pod's controller reference."""
        return str((controller_of(pod) or {}).get("name", ""))

    def is_ours(self, job: JsonObject, context: JobContext) -> bool:
        """Return whether the controller manages the object, even while it is being deleted."""
        try:
            if managed_ancestor(job, context) is not None:
                return False
            managed = context.settings.manage_jobs_without_queue_name
            return bool(queue_name_of(job)) or (managed and context.namespace_is_managed(namespace_of(job)))
        except JobError:
            return False


def check_selector(job: JsonObject) -> FieldErrors:
    """Check the API server's rule that a selector selects the pods of the template."""
    selector = dig(job, "spec", "selector")
    if not isinstance(selector, dict):
        return [required("spec.selector", "Required value: it selects the pods of the template")]
    labels = labels_of(dig(job, "spec", "template") or {})
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return [invalid("spec.selector", wanted, "must match the template's labels")]
    return []


def check_same_role(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> FieldErrors:
    """Refuse a changed role of pods: pods with another role would not be of the same pod set."""
    errors: FieldErrors = []
    for field in ("containers", "initContainers"):
        errors += _check_same_containers(f"{path}.{field}", old.get(field) or [], new.get(field) or [])
    for field in _ROLE_FIELDS:
        errors += _check_same(f"{path}.{field}", old.get(field), new.get(field), field)
    before, after = old.get("resources"), new.get("resources")
    if (before is None) != (after is None):
        return [*errors, *immutable(f"{path}.resources", str(before), str(after))]
    return [*errors, *_check_same(f"{path}.resources", _requests(before), _requests(after), "requests")]


def _check_same_containers(path: str, old: list[JsonObject], new: list[JsonObject]) -> FieldErrors:
    if len(old) != len(new):
        return immutable(path, str(old), str(new))
    errors: FieldErrors = []
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        place = f"{path}[{index}]"
        errors += _check_same(f"{place}.ports", before.get("ports"), after.get("ports"), "ports")
        requests = _requests(before.get("resources")), _requests(after.get("resources"))
        errors += _check_same(f"{place}.resources.requests", *requests, "requests")
    return errors


def _requests(resources: Mapping[str, Any] | None) -> Any:
    return (resources or {}).get("requests")


def _check_same(path: str, old: Any, new: Any, field: str) -> FieldErrors:
    key = "requests" if field == "overhead" else field
    before, after = canonical(old, key), canonical(new, key)
    return [] if before == after else immutable(path, str(before), str(after))


def let_run(pod: JsonObject, store: ObjectStore) -> None:
    """Let a pod run without admission."""
    if remove_gates(pod, keys.ADMISSION_GATE, keys.TOPOLOGY_GATE):
        store.write(pod)


def is_of_old_revision(pod: JsonObject, stateful_set: JsonObject) -> bool:
    """Return whether a rollout is in progress that will replace the pod."""
    status = stateful_set.get("status") or {}
    current = status.get("currentRevision") or ""
    return current != (status.get("updateRevision") or "") and current == labels_of(pod).get(REVISION_LABEL, "")


def lets_pods_wait(kind: JobKind, job: JsonObject) -> bool:
    """Return whether the webhook has marked the templates, so that the object's pods are gated at creation."""
    marked = [annotated_parent(template) for _, template in kind.templates(job)]
    return isinstance(kind, ServingKind) and kind.groups_pods and set(marked) == {kind.framework}


def annotated_parent(template: JsonObject) -> str | None:
    """Return the kind that the template gives for its pods' owner."""
    return annotations_of(template).get(keys.SUSPENDING_PARENT)
