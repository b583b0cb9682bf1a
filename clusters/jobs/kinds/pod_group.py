"""Pods that are one workload together: a pod set for each role, replaced one by one when they fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import WORKLOAD_DELETED
from clusters.jobs.framework.errors import CannotStart, JobError, PendingJob
from clusters.jobs.framework.go_syntax import BadSyntax, is_unsigned, parse_integer
from clusters.jobs.framework.identity import maximum_execution_seconds_of, prebuilt_workload_of, queue_name_of
from clusters.jobs.framework.job_kind import Outcome
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import (
    JsonObject,
    add_owner,
    annotations_of,
    controller_of,
    dig,
    is_being_deleted,
    labels_of,
    mapping_at,
    name_of,
    set_annotation,
)
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.framework.workloads import follow_gates, new_workload
from clusters.jobs.kinds.pod import (
    Pod,
    group_name_of,
    is_gated,
    is_terminated,
    is_unretriable,
    let_go,
    pod_set_of,
    role_of,
    start_pod,
    stop_pods,
    total_count_of,
)
from queues.manifests import kueue_keys as keys
from queues.manifests.workload import MAX_POD_SETS

_PODS_FAILED: Final = ("PodsFailed", "Some Failed pods need replacement")
_PODS_REPLACED: Final = ("PodsReady", "No pods need replacement")


def group_workload(name: str, owner: JsonObject, pod_sets: Sequence[JsonObject]) -> JsonObject:
    """Return a workload whose pods are created one by one."""
    workload = new_workload(name, owner, pod_sets)
    set_annotation(workload, keys.IS_GROUP_WORKLOAD, "true")
    follow_gates(workload, owner)
    return workload


class PodGroup(ManagedJob):
    """The pods with one group name; fields of the whole group are read from the first pod."""

    is_top_level = True
    starts_in_this_cluster_only = True

    def __init__(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        super().__init__(Pod(), namespace, name, context, store)
        self.pods = [pod for pod in store.list("Pod", namespace) if group_name_of(pod) == name]
        self.found = bool(self.pods)
        if self.found:
            self.object = self.pods[0]
        self.absent = 0

    @property
    def is_gone(self) -> bool:
        return not self.found

    @property
    def is_serving(self) -> bool:
        """Whether its pods serve until they are deleted."""
        return annotations_of(self.object).get(keys.POD_GROUP_SERVING) == "true"

    @property
    def _is_fast(self) -> bool:
        """Whether the first pod defines all later pods (fast admission)."""
        return annotations_of(self.object).get(keys.POD_GROUP_FAST_ADMISSION) == "true"

    def is_suspended(self) -> bool:
        return any(is_terminated(pod) or is_gated(pod) for pod in self.pods)

    def is_active(self) -> bool:
        return any(
            dig(pod, "status", "phase") == "Running" and not _is_overdue(pod, self.context.now) for pod in self.pods
        )

    def outcome(self) -> Outcome:
        if self.is_serving:
            return Outcome(False)
        try:
            total = total_count_of(self.object)
        except JobError:
            return Outcome(False, True, "failed to check if pod group is finished")
        succeeded = sum(dig(pod, "status", "phase") == "Succeeded" for pod in self.pods)
        given_up = any(is_unretriable(pod) for pod in self.pods) and all(is_terminated(pod) for pod in self.pods)
        if succeeded != total and not given_up:
            return Outcome(False)
        return Outcome(True, True, f"Pods succeeded: {succeeded}/{total}.")

    def pods_ready(self) -> bool:
        try:
            total = total_count_of(self.object)
        except JobError:
            return False
        return len(self.pods) >= total and all(state.is_true(pod, "Ready") for pod in self.pods)

    def reclaimable_pods(self) -> list[JsonObject]:
        if self.is_serving:
            return []
        done = Counter(role_of(pod) for pod in self.pods if dig(pod, "status", "phase") == "Succeeded")
        return [{"name": role, "count": count} for role, count in done.items()]

    def follows_queue_changes(self) -> bool:
        return not self.is_serving

    # Its workload

    def workloads(self) -> list[JsonObject]:
        workload = self.store.get("Workload", self.namespace, self.name)
        if workload is None or (not _is_of_group(workload) and controller_of(workload) is not None):
            return []
        return [workload]

    def pod_sets(self) -> list[JsonObject]:
        if not self._is_fast:
            return _by_role(self.pods)
        pod = next((pod for pod in self.pods if is_runnable(pod)), None)
        if pod is None:
            raise JobError("failed to find a runnable pod in the group")
        return [pod_set_of(pod, role_of(pod), total_count_of(self.object))]

    def is_equivalent(self, workload: JsonObject) -> bool:
        return self._fits(workload, self.pod_sets())

    def _fits(self, workload: JsonObject, pod_sets: Sequence[JsonObject]) -> bool:
        """Return whether the roles are a part of the workload's, in order, with no more pods than there."""
        if name_of(workload) != (prebuilt_workload_of(self.object) or self.name):
            return False
        finished = state.is_finished(workload)
        remaining = iter(workload["spec"]["podSets"])
        for pod_set in pod_sets:
            its = next((each for each in remaining if each["name"] == pod_set["name"]), None)
            if its is None or (not finished and its["count"] < pod_set["count"]):
                return False
        return True

    def own(self, workload: JsonObject) -> None:
        added = [add_owner(workload, pod) for pod in self.pods]
        if any(added):
            self.store.write(workload)

    def find_match(self) -> tuple[JsonObject | None, list[JsonObject]]:
        workload = self.store.get("Workload", self.namespace, self.name)
        if workload is None:
            return None, []
        active = [pod for pod in self.pods if is_runnable(pod)]
        inactive = [pod for pod in self.pods if not is_runnable(pod)]
        if not _is_of_group(workload):
            self._let_go(inactive)
            raise PendingJob("a workload of the group's name exists, and is not one of a pod group")
        if workload["spec"].get("maximumExecutionTimeSeconds") != maximum_execution_seconds_of(self.object):
            return None, [workload]
        kept: list[JsonObject] = []
        surplus: list[JsonObject] = []
        replaced: list[JsonObject] = []
        absent = 0
        for pod_set in workload["spec"]["podSets"]:
            mine = [pod for pod in active if role_of(pod) == pod_set["name"]]
            ended = [pod for pod in inactive if role_of(pod) == pod_set["name"]]
            count = pod_set["count"]
            absent += self._count_absent(count, len(mine))
            if len(mine) > count:
                mine = _oldest_first(mine)
            due = max(min(len(ended), len(ended) + len(mine) - count), 0)
            if due:
                ended = _latest_first(ended, self.context.now)
            kept += [*mine[:count], *ended[: len(ended) - due]]
            surplus += mine[count:]
            replaced += ended[len(ended) - due :]
        if not kept or not self._fits(workload, _by_role(kept)):
            return None, [workload]
        self.absent, self.pods = absent, kept
        self.own(workload)
        self._remove(surplus)
        self._let_go(replaced)
        return workload, []

    def _count_absent(self, wanted: int, there: int) -> int:
        if self._is_fast:
            return int(wanted > 0 and there == 0)
        return max(0, wanted - there)

    def set_own_conditions(self, workload: JsonObject) -> bool:
        """Set WaitingForReplacementPods: a workload that lacks pods is not admitted again before they exist."""
        kind = state.WAITING_FOR_REPLACEMENT_PODS
        known = state.condition_of(workload, kind)
        if known is None and not self.absent:
            return False
        is_waiting = known is not None and known.get("status") == "True"
        if not self.absent:
            return (known or {}).get("status") != "False" and self._set(workload, False, *_PODS_REPLACED)
        if state.is_evicted(workload):
            eviction = state.condition_of(workload, state.EVICTED) or {}
            return self._set(workload, True, str(eviction.get("reason", "")), str(eviction.get("message", "")))
        return not is_waiting and self._set(workload, True, *_PODS_FAILED)

    def _set(self, workload: JsonObject, status: bool, reason: str, message: str) -> bool:
        kind = state.WAITING_FOR_REPLACEMENT_PODS
        return state.set_condition(workload, kind, status, reason, message, self.context.now)

    def new_workload(self) -> JsonObject:
        active = [pod for pod in self.pods if is_runnable(pod)]
        self._let_go(pod for pod in self.pods if not is_runnable(pod))
        total = total_count_of(self.object)
        self._check_metadata(total, len(active))
        if len(active) > total:
            active = _oldest_first(active)
            self._remove(active[total:])
            self.pods = active[:total]
        pod_sets = self.pod_sets()
        if len(pod_sets) > MAX_POD_SETS:
            raise PendingJob(f"pod group can't include more than {MAX_POD_SETS} roles")
        workload = group_workload(prebuilt_workload_of(self.object) or self.name, self.object, pod_sets)
        for pod in self.pods:
            add_owner(workload, pod)
        mapping_at(workload, "metadata", "labels").update(self._labels_to_copy())
        return workload

    def _labels_to_copy(self) -> dict[str, str]:
        """Labels that some of the pods have. Raises JobError if they differ."""
        found: dict[str, str] = {}
        for pod in self.pods:
            labels = labels_of(pod)
            for key in self.context.settings.label_keys_to_copy:
                if key in labels and found.setdefault(key, labels[key]) != labels[key]:
                    raise JobError("constructing workload: pods have different label values")
        return found

    def _check_metadata(self, total: int, active: int) -> None:
        """Raises PendingJob if the pods don't form a group (yet), JobError for annotations that can't be read."""
        index = labels_of(self.object).get(keys.POD_GROUP_POD_INDEX)
        if index is not None and not (is_unsigned(index) and int(index) < total):
            raise JobError(f"incorrect label value {index!r}: it should be a number less than {total}")
        if not self._is_fast and active < total:
            raise PendingJob(f"'{self.name}' group has fewer runnable pods than expected")
        for pod in self.pods:
            if dig(pod, "status", "phase") == "Failed":
                continue
            if queue_name_of(pod) != queue_name_of(self.object):
                raise PendingJob(f"pods {name_of(self.object)} and {name_of(pod)} have different queue names")
            try:
                stated = parse_integer(annotations_of(pod).get(keys.POD_GROUP_TOTAL_COUNT, ""))
            except BadSyntax as mistake:
                raise JobError(f"failed to extract the total count from the pod {name_of(pod)}: {mistake}") from mistake
            if stated != total:
                raise PendingJob(f"pods {name_of(self.object)} and {name_of(pod)} state different total counts")

    # Start and stop

    def start(self, workload: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        by_role = {info.name: info for info in infos}
        failure: CannotStart | None = None
        for pod in self.pods:
            if not is_gated(pod):
                continue
            role = role_of(pod)
            try:
                if role not in by_role:
                    raise CannotStart(f"invalid podset infos: podSetInfo with the name '{role}' is not found")
                self.start_one(pod, by_role[role])
            except CannotStart as conflict:
                failure = failure or conflict
        if failure is not None:
            raise failure

    def start_one(self, pod: JsonObject, info: PodSetInfo) -> None:
        """Let one of the pods be scheduled. Raises CannotStart."""
        start_pod(pod, info, self.store)

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        stop_pods(self.pods, workload, reason, message, self.context, self.store)
        if reason == WORKLOAD_DELETED:
            self.finalize()

    def finalize(self) -> None:
        group = group_name_of(self.object)
        self._let_go(pod for pod in self.store.list("Pod", self.namespace) if group_name_of(pod) == group)

    def _let_go(self, pods: Iterable[JsonObject]) -> None:
        for pod in list(pods):
            let_go(pod, self.store)

    def _remove(self, pods: Iterable[JsonObject]) -> None:
        for pod in pods:
            let_go(pod, self.store)
            self.store.delete(pod, self.context.now)


def is_runnable(pod: JsonObject) -> bool:
    """Return whether the pod runs, may run, or has completed."""
    if is_being_deleted(pod) and not dig(pod, "spec", "nodeName"):
        return False
    return bool(dig(pod, "status", "phase") != "Failed")


def _is_of_group(workload: JsonObject) -> bool:
    return annotations_of(workload).get(keys.IS_GROUP_WORKLOAD) == "true"


def _by_role(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """Return a pod set for each role of the runnable pods, by name."""
    found: dict[str, JsonObject] = {}
    for pod in pods:
        if not is_runnable(pod):
            continue
        role = role_of(pod)
        if role in found:
            found[role]["count"] += 1
        else:
            found[role] = pod_set_of(pod, role)
    return sorted(found.values(), key=lambda pod_set: str(pod_set["name"]))


def _created_at(pod: JsonObject) -> str:
    return pod["metadata"].get("creationTimestamp") or ""


def _has_finalizer(pod: JsonObject) -> bool:
    return keys.MANAGED in (pod["metadata"].get("finalizers") or ())


def _oldest_first(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """Sort pods so that the first may stay: with their finalizer, started, and older."""
    return sorted(pods, key=lambda pod: (not _has_finalizer(pod), is_gated(pod), _created_at(pod)))


def _latest_first(pods: Iterable[JsonObject], now: str) -> list[JsonObject]:
    """Sort pods that ended: first the ones that have Kueue's finalizer, and among these the last to end first."""
    by_age = sorted(pods, key=_created_at)
    by_end = sorted(by_age, key=lambda pod: _ended_at(pod, now), reverse=True)
    return sorted(by_end, key=lambda pod: not _has_finalizer(pod))


def _ended_at(pod: JsonObject, now: str) -> datetime:
    """When a pod failed, or was deleted; now if neither time is known."""
    failed_at = now
    condition = state.condition_of(pod, "ContainersReady") or {}
    if condition.get("status") == "False" and condition.get("reason") == "PodFailed":
        failed_at = condition.get("lastTransitionTime") or _NEVER
    deleted_at = pod["metadata"].get("deletionTimestamp") or now
    return min(datetime.fromisoformat(failed_at), datetime.fromisoformat(deleted_at))


_NEVER: Final = "0001-01-01T00:00:00Z"


def _is_overdue(pod: JsonObject, now: str) -> bool:
    """Return whether the pod should have been deleted by now."""
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds")
    if not metadata.get("deletionTimestamp") or grace is None:
        return False
    deadline = datetime.fromisoformat(metadata["deletionTimestamp"]) + timedelta(seconds=grace)
    return datetime.fromisoformat(now) > deadline
