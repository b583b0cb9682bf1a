"""Predicts the decisions of the next cycles and undoes them, so that a change of quota can be judged before it is
made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduling.model.decisions import CycleResult
from scheduling.model.vocabulary import ConditionType, EvictionReason, StopPolicy
from scheduling.run_until_idle import run_until_idle
from scheduling.state.status import Usage
from scheduling.world import World


class NodeKind(StrEnum):
    """The kind of node in the quota tree to which an amount belongs."""

    COHORT = "Cohort"
    CLUSTER_QUEUE = "ClusterQueue"


@dataclass(frozen=True, slots=True)
class Place:
    """One resource of one flavor, in a ClusterQueue or a cohort."""

    kind: NodeKind
    name: str
    flavor: str
    resource: str


@dataclass(frozen=True, slots=True)
class Load:
    """Amounts in base units. `over` is the usage that exceeds the node's own quota plus the quota it may borrow."""

    nominal: int = 0
    used: int = 0
    over: int = 0


@dataclass(frozen=True, slots=True)
class Eviction:
    """A workload that loses its quota. `reason` is a PreemptionReason or an EvictionReason; `preemptor` is empty
    unless another workload takes its place. `ran_seconds` is how long it was admitted, `devices` how many devices, or
    shares of devices, it holds: their product is the work that is lost without a checkpoint."""

    workload: str
    cluster_queue: str
    reason: str
    preemptor: str = ""
    preemptor_cluster_queue: str = ""
    ran_seconds: float = 0.0
    devices: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """The decisions of the next cycles. `complete` is false if the time ran out before the cycles became idle."""

    loads: Mapping[Place, Load]
    """The loads before those cycles."""
    inactive: Mapping[str, str]
    """ClusterQueues that admit nothing, and why."""
    starts: Mapping[str, str] = field(default_factory=dict)
    """Workloads that would get quota, with their ClusterQueue."""
    preempted: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    """Workloads that end because their queue is drained."""
    evictions: Mapping[str, Eviction] = field(default_factory=dict)
    """The preempted and stopped workloads, and workloads evicted for another reason."""
    cycles: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class LoadChange:
    """A quota that changes, or whose excess usage changes."""

    place: Place
    nominal_before: int
    load: Load


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of a change, compared with no change. Workloads are given by key, with their ClusterQueue."""

    starts: Mapping[str, str]
    waits: Mapping[str, str]
    """Workloads that would start without the change."""
    preempted: Mapping[str, str]
    stopped: Mapping[str, str]
    quotas: tuple[LoadChange, ...]
    inactive: Mapping[str, str]
    """ClusterQueues that would no longer admit anything, or are inactive for another reason than before."""
    complete: bool


def present_state(world: World) -> tuple[dict[Place, Load], dict[str, str]]:
    """Return the present loads of all quotas, and the ClusterQueues that admit no workloads, with the reason."""
    inactive = {
        name: status.message or str(status.reason)
        for name in world.cluster_queue_names()
        if not (status := world.cluster_queue_status(name)).active
    }
    return dict(_loads(world)), inactive


def effects(before: Outlook, after: Outlook) -> Effects:
    """Return the differences between the outlook without a change and the outlook with it."""
    complete = before.complete and after.complete
    return Effects(
        starts=_beyond(after.starts, before.starts),
        waits=_beyond(before.starts, after.starts) if complete else {},
        preempted=_beyond(after.preempted, before.preempted),
        stopped=_beyond(after.stopped, before.stopped),
        quotas=tuple(_changed(before.loads, after.loads)),
        inactive={name: why for name, why in after.inactive.items() if before.inactive.get(name) != why},
        complete=complete,
    )


def decide_ahead(world: World, now: float, go_on: Callable[[], bool] = lambda: True) -> Outlook:
    """Run cycles until they are idle or `go_on` returns False, which is called between cycles. The caller undoes them.

    A workload that is preempted or drained counts as stopped in the next cycle. The outlook has no loads.
    """
    stopped = dict(world.drained_workloads())
    evictions = {key: eviction(world, key, queue, stop_reason(world, queue), now) for key, queue in stopped.items()}
    for key in stopped:
        world.finish_workload(key, now)
    seen = _Decisions(world, now, evictions)
    cycles, complete = 0, True
    for result in run_until_idle(world, now):
        cycles += 1
        seen.note(result)
        for key in [*(each.workload for each in result.preemptions), *(each.workload for each in result.evictions)]:
            world.release_workload(key, now)
        if not go_on():
            complete = False
            break
    return Outlook({}, {}, seen.starts, seen.preempted, stopped, evictions, cycles, complete)


class _Decisions:
    """The decisions of cycles, by workload; variants count as their parent."""

    def __init__(self, world: World, now: float, evictions: dict[str, Eviction]) -> None:
        self._world = world
        self._now = now
        self._evictions = evictions
        self.starts: dict[str, str] = {}
        self.preempted: dict[str, str] = {}

    def note(self, result: CycleResult) -> None:
        """Add a cycle, before its victims are released."""
        for admission in result.admissions:
            job = _job(self._world, admission.workload)
            if not admission.second_pass and not self._runs(job):
                self.starts[job] = admission.cluster_queue
        for victim in result.preemptions:
            job = _job(self._world, victim.workload)
            if self.starts.pop(job, None) is None:
                self.preempted[job] = victim.cluster_queue
                by = (victim.preemptor, victim.preemptor_cluster_queue)
                lost = eviction(self._world, victim.workload, victim.cluster_queue, victim.reason, self._now, by)
                self._evictions[job] = replace(lost, workload=job)
        for failed in result.evictions:
            lost = eviction(self._world, failed.workload, failed.cluster_queue, failed.reason, self._now)
            self._evictions.setdefault(failed.workload, lost)

    def _runs(self, job: str) -> bool:
        """Return whether it is the parent of variants and runs already, so that another of these is a migration."""
        found = self._world.workload(job)
        return found is not None and found.admission is not None and not found.is_charged


def eviction(
    world: World, key: str, cluster_queue: str, reason: str, now: float, preemptor: tuple[str, str] = ("", "")
) -> Eviction:
    """Return the eviction of a workload that still holds its quota. `preemptor` is a workload and its ClusterQueue."""
    found = world.workload(key)
    admitted = found.condition(ConditionType.ADMITTED) if found is not None else None
    ran = max(0.0, now - admitted.last_transition_time) if admitted is not None else 0.0
    devices = world.objects.device_count(key) if found is not None else 0
    return Eviction(key, cluster_queue, str(reason), *preemptor, ran, devices)


def stop_reason(world: World, cluster_queue: str) -> EvictionReason:
    """Return why the workloads of a drained ClusterQueue, or of one of its LocalQueues that is drained, are evicted."""
    spec = world.objects.cluster_queue(cluster_queue)
    if spec is not None and spec.stop_policy is StopPolicy.HOLD_AND_DRAIN:
        return EvictionReason.CLUSTER_QUEUE_STOPPED
    return EvictionReason.LOCAL_QUEUE_STOPPED


def _job(world: World, key: str) -> str:
    """Return the parent of a variant (concurrent admission); any other workload itself."""
    found = world.workload(key)
    return found.parent or key if found is not None else key


def _loads(world: World) -> Iterator[tuple[Place, Load]]:
    for name in world.cohort_names():
        cohort = world.cohort_status(name)
        yield from _of_node(NodeKind.COHORT, name, cohort.usage, is_root=not cohort.parent)
    for name in world.cluster_queue_names():
        queue = world.cluster_queue_status(name)
        yield from _of_node(NodeKind.CLUSTER_QUEUE, name, queue.usage, is_root=not queue.cohort)


def _of_node(kind: NodeKind, name: str, usage: tuple[Usage, ...], *, is_root: bool) -> Iterator[tuple[Place, Load]]:
    for row in usage:
        limit = row.subtree_quota if is_root else None
        if not is_root and row.borrowing_limit is not None:
            limit = (row.subtree_quota if row.deserved is None else row.nominal) + row.borrowing_limit
        over = 0 if limit is None else max(0, row.used - limit)
        yield Place(kind, name, row.flavor, row.resource), Load(row.nominal, row.used, over)


def _beyond(these: Mapping[str, str], those: Mapping[str, str]) -> dict[str, str]:
    return {key: queue for key, queue in these.items() if key not in those}


def _changed(before: Mapping[Place, Load], after: Mapping[Place, Load]) -> Iterator[LoadChange]:
    for place in (*after, *(gone for gone in before if gone not in after)):
        was, load = before.get(place, Load()), after.get(place, Load())
        if was.nominal != load.nominal or load.over > was.over:
            yield LoadChange(place, was.nominal, load)
