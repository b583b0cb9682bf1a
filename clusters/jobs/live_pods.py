"""Runs the controller's pass over plain pods of the live cluster: a single pod, or the pods of a group.

The push writes the pass's changes of the pods to the cluster. The watcher stores in rows how the pods end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusters.api_objects import JsonObject
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import reconcile
from clusters.jobs.framework.errors import JobError, PendingJob
from clusters.jobs.framework.manifest import annotations_of, labels_of, name_of, namespace_of, set_annotation, uid_of
from clusters.jobs.framework.pod_set_info import PodSetInfo, merge_into_template
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.kinds.pod import TERMINATION_TARGET, ManagedPod, Pod, group_name_of, is_gated, start_pod
from clusters.jobs.kinds.pod_group import PodGroup
from clusters.jobs.objects import PLACEMENT_GATE
from clusters.jobs.owned_keys import WORKLOAD_UID_LABEL, owned_keys
from queues.manifests import kueue_keys as keys

_MAX_PASSES: Final = 8
"""A pass ends with the first condition that it changes, and there are few conditions."""

Place = Callable[[JsonObject, PodSetInfo], None]
"""Adds nodes and our labels to the additions of an admission to one pod."""


@dataclass(slots=True)
class PodChanges:
    """The changes that passes make to plain pods.

    * patched: pods before and after the change.
    * deleted: pods before the change, and their last state if they are deleted.
    * cannot_start: why the workload's admission can't be merged into a pod; empty if it can.
    * failure: why a pass ended early.
    """

    patched: list[tuple[JsonObject, JsonObject]] = field(default_factory=list)
    deleted: list[tuple[JsonObject, JsonObject]] = field(default_factory=list)
    cannot_start: str = ""
    failure: str = ""


class _PodStore(ObjectStore):
    """A store that remembers the deleted pods, with their last state."""

    def __init__(self, objects: Sequence[JsonObject]) -> None:
        super().__init__(objects)
        self.deleted: dict[str, JsonObject] = {}

    def delete(self, obj: JsonObject, now: str) -> None:
        found = self.get(obj["kind"], namespace_of(obj), name_of(obj))
        if found is not None:
            self.deleted.setdefault(name_of(obj), found)
        super().delete(obj, now)


class LivePod(ManagedPod):
    """A pod that is a workload of its own."""

    place: Place

    def is_skipped(self) -> bool:
        return False  # its row says that it is managed, whether or not Kueue's webhook has seen it

    def is_equivalent(self, workload: JsonObject) -> bool:
        return True  # a pod's spec can't change, and its row was read from it

    def start_one(self, pod: JsonObject, info: PodSetInfo) -> None:
        _start(pod, info, self.place, self.store)

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        super().stop(workload, reason, message)
        _give_back([self.object], self.store)


@dataclass(slots=True)
class GroupChanges:
    """The changes of the passes to the workload of a group.

    * workload: its new state, None if the group has none; why: the reason for none.
    * surplus: the names of pods that the group has no place for; they are deleted.
    * released: the names of deleted pods and of pods without Kueue's finalizer: the group no longer needs them.
    * acts: whether any pod changes.
    """

    workload: JsonObject | None
    why: str = ""
    surplus: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    acts: bool = False


class SeenPodGroup(PodGroup):
    """Pods that are one workload together, whose workload is stored in a row."""

    why = ""
    """Why the pods are no group yet."""

    def is_skipped(self) -> bool:
        return False

    def is_active(self) -> bool:
        # The push reports when the pods of an evicted workload have stopped.
        return not self.workloads() and super().is_active()

    def new_workload(self) -> JsonObject:
        try:
            return super().new_workload()
        except (JobError, PendingJob) as reason:
            self.why = str(reason)
            raise


class SubmittedPodGroup(SeenPodGroup):
    """Pods of rows that form one workload: the push creates, starts and stops them."""

    def is_suspended(self) -> bool:
        return False  # a row does not say whether its pod runs


class LivePodGroup(SeenPodGroup):
    """Pods that are one workload together, which the push starts and stops."""

    place: Place

    def find_match(self) -> tuple[JsonObject | None, list[JsonObject]]:
        match, others = super().find_match()
        if match is None and others:
            raise PendingJob("its pods do not match its workload yet")
        return match, others

    def start_one(self, pod: JsonObject, info: PodSetInfo) -> None:
        _start(pod, info, self.place, self.store)

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        super().stop(workload, reason, message)
        _give_back(self.pods, self.store)


@dataclass(frozen=True, slots=True)
class Maker:
    """The object whose pods these are, such as a LeaderWorkerSet, and the objects by which its controller creates them:
    for a LeaderWorkerSet its StatefulSets, otherwise none."""

    kind: ServingKind
    object: JsonObject
    parts: Sequence[JsonObject] = ()


def look_at_pods(
    pods: Sequence[JsonObject],
    roles: Sequence[str],
    workload: JsonObject | None,
    context: JobContext,
    place: Place,
    maker: Maker | None = None,
) -> PodChanges:
    """Run passes over the pods of a workload until they change nothing more.

    `roles` are the pods' roles in their group, "" for a single pod or a pod whose owner assigns the role. `workload` is
    None for a group that is not complete yet.
    """
    shown = [_with_role(pod, role) for pod, role in zip(pods, roles, strict=True)]
    made_by = [maker.object, *maker.parts] if maker is not None else []
    store = _PodStore([*copy.deepcopy(made_by), *shown, *([workload] if workload is not None else [])])
    failure = ""
    for _ in range(_MAX_PASSES):
        before = store.writes
        try:
            if maker is not None:
                maker.kind.reconcile_pods(namespace_of(maker.object), name_of(maker.object), context, store)
            live = _live(shown, workload, context, store, place)
            if live is not None:
                reconcile(live)
        except JobError as error:
            failure = str(error)
            break
        if store.writes == before:
            break
    changes = _changes(shown, store, failure)
    if workload is not None and not state.is_finished(workload):
        found = store.get("Workload", namespace_of(workload), name_of(workload)) or workload
        finished = state.condition_of(found, state.FINISHED) or {}
        if finished.get("reason") == "FailedToStart":
            changes.cannot_start = str(finished.get("message") or "")
    return changes


def look_at_pods_without_workload(maker: Maker, pods: Sequence[JsonObject], context: JobContext) -> PodChanges:
    """Run a pass of a set over pods that have no workload: they wait at their gates, as members of a group."""
    store = _PodStore([*copy.deepcopy([maker.object, *maker.parts]), *copy.deepcopy(list(pods))])
    failure = ""
    try:
        maker.kind.reconcile_pods(namespace_of(maker.object), name_of(maker.object), context, store)
    except JobError as error:
        failure = str(error)
    return _changes(pods, store, failure)


def look_at_group(
    pods: Sequence[JsonObject],
    roles: Mapping[str, str],
    workload: JsonObject | None,
    context: JobContext,
    group_class: type[SeenPodGroup] = SeenPodGroup,
) -> GroupChanges:
    """Run passes over the pods of a group until they change nothing more. `roles` are the roles of the pods by name, as
    far as rows have them. `workload` is None for a group that is not complete yet."""
    shown = sorted((_with_role(pod, roles.get(name_of(pod), "")) for pod in pods), key=name_of)
    store = _PodStore([*shown, *([workload] if workload is not None else [])])
    namespace, name = namespace_of(shown[0]), group_name_of(shown[0])
    why = ""
    for _ in range(_MAX_PASSES):
        before = store.writes
        group = group_class(namespace, name, context, store)
        try:
            reconcile(group)
        except JobError as error:
            why = str(error)
            break
        why = group.why
        if store.writes == before:
            break
    left = {name_of(pod): store.get(Pod.kind, namespace, name_of(pod)) for pod in shown}
    return GroupChanges(
        store.get("Workload", namespace, name),
        why,
        {name for name, pod in store.deleted.items() if state.condition_of(pod, TERMINATION_TARGET) is None},
        {name for name, pod in left.items() if pod is None or not _has_finalizer(pod)},
        bool(store.deleted) or any(left[name_of(pod)] != pod for pod in shown),
    )


def _live(
    pods: Sequence[JsonObject], workload: JsonObject | None, context: JobContext, store: ObjectStore, place: Place
) -> LivePod | LivePodGroup | None:
    """Return the pods of the workload as its controller sees them: alone, or as a group; None if the group has none."""
    namespace = namespace_of(pods[0])
    live: LivePod | LivePodGroup
    if workload is not None and annotations_of(workload).get(keys.IS_GROUP_WORKLOAD) == "true":
        live = LivePodGroup(namespace, name_of(workload), context, store)
    elif group_name_of(pods[0]):
        live = LivePodGroup(namespace, group_name_of(pods[0]), context, store)
    else:
        live = LivePod(Pod(), namespace, name_of(pods[0]), context, store)
    live.place = place
    return live if live.found else None


def _with_role(pod: JsonObject, role: str) -> JsonObject:
    """Return the pod with the role in its row, if no webhook has recorded one."""
    shown = copy.deepcopy(pod)
    if role and keys.ROLE_HASH not in (pod["metadata"].get("annotations") or {}):
        set_annotation(shown, keys.ROLE_HASH, role)
    return shown


def _changes(shown: Sequence[JsonObject], store: _PodStore, failure: str) -> PodChanges:
    changes = PodChanges(failure=failure)
    for pod in shown:
        deleted = store.deleted.get(name_of(pod))
        left = store.get(Pod.kind, namespace_of(pod), name_of(pod))
        if deleted is not None and not pod["metadata"].get("deletionTimestamp"):
            released = _without_finalizer(deleted) if left is None or not _has_finalizer(left) else deleted
            changes.deleted.append((pod, released))
        elif left is not None and left != pod:
            changes.patched.append((pod, left))
        elif left is None and deleted is None:  # its finalizer was the last
            changes.patched.append((pod, _without_finalizer(pod)))
    return changes


def _has_finalizer(pod: JsonObject) -> bool:
    return keys.MANAGED in (pod["metadata"].get("finalizers") or ())


def _without_finalizer(pod: JsonObject) -> JsonObject:
    released = copy.deepcopy(pod)
    if _has_finalizer(pod):
        released["metadata"]["finalizers"] = [each for each in pod["metadata"]["finalizers"] if each != keys.MANAGED]
    return released


def _start(pod: JsonObject, info: PodSetInfo, place: Place, store: ObjectStore) -> None:
    """Let a pod be scheduled; one whose node and devices we choose is labelled, and keeps its gates until then.

    Raises CannotStart.
    """
    placed = copy.deepcopy(info)
    place(pod, placed)
    if WORKLOAD_UID_LABEL in labels_of(pod):  # it was labelled for an earlier admission, and did not run
        _remove_owned_keys(pod)
    held = any(gate["name"] == PLACEMENT_GATE for gate in placed.scheduling_gates)
    if not (held and uid_of(pod)):  # a pod that does not exist yet can still get the gate
        start_pod(pod, placed, store)
        return
    merge_into_template(pod, PodSetInfo(info.name, info.count, dict(placed.annotations), dict(placed.labels)))
    store.write(pod)


def _give_back(pods: Sequence[JsonObject], store: ObjectStore) -> None:
    """Let pods that have not run wait as they did before: with HAMi's annotations they would count as users of
    devices."""
    for pod in pods:
        left = store.get(Pod.kind, namespace_of(pod), name_of(pod))
        if left is not None and is_gated(left) and _remove_owned_keys(left):
            store.write(left)


def _remove_owned_keys(pod: JsonObject) -> bool:
    """Remove the labels and annotations that only we write; return whether the pod had any."""
    owned = owned_keys(pod["metadata"])
    for part, names in owned.items():
        for name in names:
            del pod["metadata"][part][name]
    return bool(owned)
