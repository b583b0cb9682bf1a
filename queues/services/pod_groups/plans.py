"""Plans for submitted or found pods of groups: which group each joins, and whether it may."""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from accounts.kinds.metrics_settings import CopiedKeys, copied_keys
from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from queues.manifests import kueue_keys as keys
from queues.manifests.job import JobManifest
from queues.manifests.job_workloads import PriorityChoice
from queues.manifests.pod_group import POD, POD_GROUP, PodGroupMember
from queues.manifests.workload import MAX_POD_SETS
from queues.manifests.workload_object import pod_set_group_mistakes
from queues.models import Job, Workload
from queues.services.pod_groups.life import (
    GROUP_PASSES,
    GroupPreview,
    Member,
    is_composed,
    is_followed,
    members_of,
    sized_pod_sets,
)
from queues.services.prebuilt_workloads import is_prebuilt
from queues.services.withdrawn_jobs import free_names
from queues.services.workloads import delete_workloads
from scheduling.manifest import MistakeReason
from scheduling.model.vocabulary import WorkloadStatus

_FACTS: Final = {
    "queue_name": f"metadata.labels[{keys.QUEUE_NAME}]",
    "total_count": f"metadata.annotations[{keys.POD_GROUP_TOTAL_COUNT}]",
    "fast_admission": f"metadata.annotations[{keys.POD_GROUP_FAST_ADMISSION}]",
    "serving": f"metadata.annotations[{keys.POD_GROUP_SERVING}]",
}
"""The fields that all pods of a group must have in common, and their paths, in the order of `GroupPod.facts`."""


@dataclass(frozen=True, slots=True)
class GroupPod:
    """A pod that names a group, with the queue and priority that it would have alone."""

    submitted: Submitted[JobManifest]
    queue_name: str
    priority: PriorityChoice

    @property
    def group(self) -> PodGroupMember:
        """The group fields of its manifest."""
        assert self.submitted.spec.group is not None  # every GroupPod has it
        return self.submitted.spec.group

    @property
    def facts(self) -> tuple[str, int, bool, bool]:
        """The values that all pods of a group must have in common."""
        return (self.queue_name, self.group.total_count, self.group.fast_admission, self.group.serving)

    def refuse(self, path: str, value: Any, rule: str, remedy: str, reason: MistakeReason) -> None:
        """Report a mistake of this pod."""
        self.submitted.report.error(self.submitted.at(path), value, rule, remedy, reason)


@dataclass(slots=True)
class GroupPlan:
    """The pods of one group in one submission."""

    namespace: str
    name: str
    pods: list[GroupPod]
    group: Job | None = None
    workload: Workload | None = None
    members: list[Member] = field(default_factory=list)
    rows: dict[str, Job] = field(default_factory=dict)
    """Existing pods with these names, in any group."""
    taken: bool = False
    """Another workload has the group's name."""
    prebuilt: bool = False
    """Whether a MultiKueue manager created the group's workload."""
    coming: list[Member] = field(default_factory=list)
    """The submitted pods as rows, which are not stored yet, in the order of `pods`."""
    preview: GroupPreview = field(default_factory=lambda: GroupPreview({}, composed=False, surplus=()))
    """The places in the group after the pods have been added."""

    @property
    def holds_quota(self) -> bool:
        return self.workload is not None and self.workload.quota_reserved_at is not None

    @property
    def is_fixed(self) -> bool:
        """Whether pods must fit the pod sets that the workload has, or that the first pod defines."""
        return self.holds_quota or self.pods[0].group.fast_admission


def plan_groups(
    cluster: Cluster, pods: Sequence[GroupPod], *, actor: str, found_in_cluster: bool = False, now: datetime
) -> list[GroupPlan]:
    """Return the groups that these pods join, each checked; mistakes go to the pods' reports."""
    grouped: dict[tuple[str, str], list[GroupPod]] = defaultdict(list)
    for pod in pods:
        grouped[pod.submitted.spec.meta.namespace, pod.group.name].append(pod)
    plans = [_plan(cluster, GroupPlan(*key, members), actor, now) for key, members in sorted(grouped.items())]
    copied = copied_keys(cluster.configuration)
    for plan in plans:
        # The watcher composes the workload of found pods with Kueue's controller, which waits for pods that fit.
        followed = found_in_cluster and (plan.group is None or is_followed(plan.group, plan.members))
        if not followed:
            _preview(cluster, plan, now)
        _Checks(plan, copied, found=found_in_cluster, followed=followed).run()
    return plans


def _plan(cluster: Cluster, plan: GroupPlan, actor: str, now: datetime) -> GroupPlan:
    names = [pod.submitted.spec.meta.name for pod in plan.pods if not pod.submitted.spec.meta.generate_name]
    free_names(cluster, [(POD_GROUP, plan.namespace, plan.name), *((POD, plan.namespace, name) for name in names)])
    home = Job.objects.filter(cluster=cluster, namespace=plan.namespace)
    plan.group = home.filter(kind=POD_GROUP, name=plan.name).select_for_update().first()
    if plan.group is not None:
        rows = Workload.objects.filter(job=plan.group).order_by("pk").select_for_update().prefetch_related("pod_sets")
        plan.workload = rows.first()
        plan.members = members_of(plan.group)
        if _is_over(plan):
            _dissolve(cluster, plan, actor, now)
    if plan.group is None:
        plan.prebuilt = is_prebuilt(cluster, plan.namespace, plan.name)
        plan.taken = not plan.prebuilt and _is_taken(cluster, plan, actor, now)
    plan.rows = {row.name: row for row in home.filter(kind=POD, name__in=names).select_for_update().order_by("pk")}
    return plan


def _preview(cluster: Cluster, plan: GroupPlan, now: datetime) -> None:
    """Run the pass over the group as it will be. New pods come last, in the order in which they were submitted."""
    plan.coming = [
        Member(_coming(plan, pod, number, now + timedelta(seconds=number + 1))) for number, pod in enumerate(plan.pods)
    ]
    names = {member.row.name for member in plan.coming}
    left = [member for member in plan.members if not member.is_replaced and member.row.name not in names]
    workload = plan.workload if plan.is_fixed and plan.workload is not None and is_composed(plan.workload) else None
    if workload is not None:
        workload.job = plan.group
    queue = plan.workload.queue_name if workload is not None and plan.workload is not None else plan.pods[0].queue_name
    plan.preview = GROUP_PASSES[POD_GROUP].preview(cluster, [*left, *plan.coming], workload, queue, now)


def _coming(plan: GroupPlan, pod: GroupPod, number: int, created_at: datetime) -> Job:
    """Return the row of a submitted pod; one that is to get a generated name has a number, which is in no other pod's
    name."""
    meta, manifest = pod.submitted.spec.meta, pod.submitted.spec.manifest
    row = None if meta.generate_name else plan.rows.get(meta.name)
    if row is not None:
        known = {"uid": row.uid, "created_at": row.created_at, "phase": row.phase}
        return Job(kind=POD, namespace=plan.namespace, name=row.name, manifest=manifest, **known)
    name = f"{meta.name}#{number}" if meta.generate_name else meta.name
    return Job(
        kind=POD, namespace=plan.namespace, name=name, manifest=manifest, uid=uuid.uuid4(), created_at=created_at
    )


def _is_over(plan: GroupPlan) -> bool:
    """Return whether the name is free for another group: its workload is deleted, or finished with pods that others
    created."""
    if plan.group is None or plan.group.deletion_requested_at is not None:
        return False
    if plan.workload is None:
        return True
    found = all(member.row.found_in_cluster for member in plan.members)
    return found and plan.workload.status == WorkloadStatus.FINISHED


def _dissolve(cluster: Cluster, plan: GroupPlan, actor: str, now: datetime) -> None:
    """Remove a group that is over. Its events stay."""
    if plan.workload is not None:
        key = (plan.workload.namespace, plan.workload.name)
        if not delete_workloads(cluster, [key], actor=actor, now=now):
            return  # it still holds slices
    if plan.group is not None:
        plan.group.delete()
    plan.group, plan.workload, plan.members = None, None, []


def _is_taken(cluster: Cluster, plan: GroupPlan, actor: str, now: datetime) -> bool:
    """Return whether another workload has the group's name. The finished one of a withdrawn group is removed."""
    row = Workload.objects.filter(cluster=cluster, namespace=plan.namespace, name=plan.name).first()
    if row is None:
        return False
    over = row.job_id is None and row.status == WorkloadStatus.FINISHED and keys.IS_GROUP_WORKLOAD in row.annotations
    return not (over and delete_workloads(cluster, [(row.namespace, row.name)], actor=actor, now=now))


class _Checks:
    """The checks of whether the pods of a plan may join their group."""

    def __init__(self, plan: GroupPlan, copied: CopiedKeys, *, found: bool, followed: bool) -> None:
        self._plan = plan
        self._copied = copied
        self._found = found
        self._followed = followed
        self._holds = plan.holds_quota

    def run(self) -> None:
        """Run all checks and report each mistake."""
        plan = self._plan
        for pod in plan.pods:
            row = self._row(pod)
            if row is not None:
                self._check_row(pod, row)
        if plan.taken:
            path = f"metadata.labels[{keys.POD_GROUP_NAME}]"
            rule = "Duplicate value: a workload of this name exists"
            plan.pods[0].refuse(path, plan.name, rule, "Use another name for the group.", MistakeReason.IN_USE)
        if plan.group is not None and not self._group_is_open(plan.group):
            return
        if self._followed:
            return
        self._check_facts()
        if not self._holds:
            self._check_copied_keys()
        self._check_places()

    def _check_row(self, pod: GroupPod, row: Job) -> None:
        group = self._plan.group
        if row.deletion_requested_at is not None or (group is not None and group.deletion_requested_at is not None):
            pod.refuse("metadata.name", row.key, "this Pod is being deleted", "Use another name.", MistakeReason.IN_USE)
        elif group is None or row.group_id != group.pk:
            path = f"metadata.labels[{keys.POD_GROUP_NAME}]"
            rule = "field is immutable: the pod is not in this group"
            pod.refuse(path, pod.group.name, rule, "Use another name for the pod.", MistakeReason.IMMUTABLE)
        elif row.manifest["spec"] != pod.submitted.spec.manifest["spec"] and self._is_frozen(row):
            rule = (
                "field is immutable while the workload holds quota"
                if self._holds
                else "field is immutable: the pod has ended"
            )
            pod.refuse("spec", None, rule, "Delete the pod and submit another one.", MistakeReason.IMMUTABLE)
        elif not _retriable(row) and pod.group.retriable:
            path = f"metadata.annotations[{keys.RETRIABLE_IN_GROUP}]"
            rule = "field is immutable: a group that does not wait for other pods cannot wait again"
            pod.refuse(path, None, rule, 'Leave it at "false".', MistakeReason.IMMUTABLE)

    def _is_frozen(self, row: Job) -> bool:
        return self._holds or bool(row.phase)

    def _group_is_open(self, group: Job) -> bool:
        """Return whether new pods can join. Existing unchanged pods are not checked."""
        ended = self._plan.workload is not None and self._plan.workload.status == WorkloadStatus.FINISHED
        if group.deletion_requested_at is None and not ended:
            return True
        rule = "has ended" if ended else "is being deleted"
        for pod in (pod for pod in self._plan.pods if self._row(pod) is None):
            path = f"metadata.labels[{keys.POD_GROUP_NAME}]"
            remedy = f"Delete the workload {self._plan.name}, or use another name for the group."
            pod.refuse(path, self._plan.name, f"the group of this name {rule}", remedy, MistakeReason.IN_USE)
        return False

    def _row(self, pod: GroupPod) -> Job | None:
        meta = pod.submitted.spec.meta
        return None if meta.generate_name else self._plan.rows.get(meta.name)

    def _check_facts(self) -> None:
        """All pods of a group must name the same queue and have the same group fields (Kueue refuses others)."""
        wanted = self._stated() or self._plan.pods[0].facts
        for pod in self._plan.pods:
            for path, mine, others in zip(_FACTS.values(), pod.facts, wanted, strict=True):
                if mine != others:
                    rule = f"must be the same as in the other pods of group {self._plan.name}: {_text(others)}"
                    pod.refuse(
                        path, _text(mine), rule, "Use the same value in all pods of a group.", MistakeReason.INVALID
                    )

    def _check_copied_keys(self) -> None:
        """Pods that hand labels or annotations over to their workload must agree on each."""
        names = {pod.submitted.spec.meta.name for pod in self._plan.pods}
        known: dict[str, str] = {}
        for member in self._plan.members:
            if member.counts and member.row.name not in names:
                known |= self._handed_over(member.row.labels, member.row.annotations)
        for pod in self._plan.pods:
            meta = pod.submitted.spec.meta
            for path, value in self._handed_over(meta.labels, meta.annotations).items():
                if known.setdefault(path, value) != value:
                    rule = f"must be the same as in the other pods of group {self._plan.name}: {known[path]}"
                    remedy = "Use the same value in all pods of a group."
                    pod.refuse(path, value, rule, remedy, MistakeReason.INVALID)

    def _handed_over(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
        """Return the labels and annotations that a pod passes to its workload, by path."""
        mine, noted = self._copied.of(labels, annotations)
        return {
            **{f"metadata.labels[{key}]": value for key, value in mine.items()},
            **{f"metadata.annotations[{key}]": value for key, value in noted.items()},
        }

    def _stated(self) -> tuple[str, int, bool, bool] | None:
        """Return the values that pods must match: the stored ones, unless all pods are submitted again while the group
        is pending."""
        plan = self._plan
        if plan.group is None or plan.workload is None:
            return None
        submitted = {pod.submitted.spec.meta.name for pod in plan.pods}
        if not self._holds and all(member.row.name in submitted for member in plan.members if member.counts):
            return None
        spec = plan.group.manifest["spec"]
        return (plan.workload.queue_name, spec["totalCount"], spec["fastAdmission"], spec["serving"])

    def _check_places(self) -> None:
        """Each pod needs a place: in its role if the pod sets are fixed, else below the total count.

        Found pods without a place are deleted in the cluster instead of being refused, as in Kueue.
        """
        plan, first = self._plan, self._plan.pods[0].group
        submitted = {pod.submitted.spec.meta.name for pod in plan.pods}
        kept = [member for member in plan.members if member.counts and member.row.name not in submitted]
        roles = {member.role for member in kept} | {pod.group.role for pod in plan.pods}
        if len(roles) > MAX_POD_SETS and not first.fast_admission:
            rule = f"Too many: a group has at most {MAX_POD_SETS} roles, and with this pod it has {len(roles)}"
            plan.pods[-1].refuse("spec", None, rule, "Use fewer different pods.", MistakeReason.TOO_MANY)
        if plan.is_fixed:
            self._check_roles()
        if not self._found:
            self._refuse_surplus()
        if not self._holds and plan.preview.composed:
            self._check_pod_set_groups(kept)

    def _check_pod_set_groups(self, kept: Sequence[Member]) -> None:
        """Check roles that must be placed together, once the group is complete."""
        pod_sets = sized_pod_sets([*kept, *self._plan.coming], self._plan.preview.sizes)
        for name, rule in pod_set_group_mistakes(pod_sets or ()):
            path = f"metadata.annotations[{keys.POD_SET_GROUP}]"
            remedy = "Set it on two roles, one of them a single pod, or on none."
            self._plan.pods[-1].refuse(path, name, rule, remedy, MistakeReason.INVALID)

    def _check_roles(self) -> None:
        """Refuse pods of a shape that no pod set of the workload has."""
        workload = self._plan.workload
        known = {each.name for each in workload.pod_sets.all()} if workload is not None else self._plan.preview.sizes
        for pod in self._plan.pods:
            if pod.group.role not in known:
                rule = f"has another shape ({pod.group.role}) than the pods of the group ({', '.join(sorted(known))})"
                remedy = "Use the same resources as the pod that it replaces."
                pod.refuse("spec", None, rule, remedy, MistakeReason.INVALID)

    def _refuse_surplus(self) -> None:
        """Refuse the pods that the pass would delete."""
        pairs = zip(self._plan.pods, self._plan.coming, strict=True)
        for pod in (pod for pod, coming in pairs if coming.row.name in self._plan.preview.surplus):
            total, role = pod.group.total_count, pod.group.role
            if self._plan.is_fixed:
                rule = f"the group already has all its pods of this shape ({role})"
                pod.refuse("metadata.name", None, rule, "Leave the pod out.", MistakeReason.TOO_MANY)
            else:
                path, rule = (
                    f"metadata.annotations[{keys.POD_GROUP_TOTAL_COUNT}]", f"the group already has its {total} pods",
                )  # fmt: skip
                remedy = "Leave the pod out, or raise the count."
                pod.refuse(path, str(total), rule, remedy, MistakeReason.TOO_MANY)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _retriable(row: Job) -> bool:
    annotations = (row.manifest.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(keys.RETRIABLE_IN_GROUP) != "false")
