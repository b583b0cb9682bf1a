"""Tracks each workload in the state that its own status calls for: waiting in a queue, holding quota, or neither."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scheduling.lifecycle.inadmissible import is_of_the_scheduler
from scheduling.model.placement import Placement
from scheduling.model.resources import FlavorResource
from scheduling.model.topology import TopologyDomain, TopologyUsage
from scheduling.model.vocabulary import ConditionType, PendingReason, StopPolicy
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.quota.cells import Cell, QuotaNode
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.journal import Journal
from scheduling.state.second_pass import SecondPass, first_attempt, waits_for_topology
from scheduling.state.state import State
from scheduling.state.workload_info import QueueState, TopologyCharge, WorkloadInfo, owner_fields

_REACTIVATING_CONDITIONS = (ConditionType.EVICTED, ConditionType.REQUEUED)


class WorkloadTracker:
    """Adds workloads to queues and quota usage, and removes them again."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.stranded: dict[str, None] = {}
        """Workloads that hold quota of a ClusterQueue that does not exist."""

    def snapshot(self) -> dict[str, None]:
        """Return a copy of `stranded`."""
        return dict(self.stranded)

    def restore(self, stranded: dict[str, None]) -> None:
        """Go back to a snapshot."""
        self.stranded = stranded

    def track(self, info: WorkloadInfo) -> None:
        """Track a workload that is not tracked yet: queue it, charge its quota, or neither."""
        workload = info.workload
        if self._has_variants(info):
            return  # they wait and hold quota in its place
        if workload.holds_quota:
            self._track_reserving(info)
            return
        cq = self._queue_for(info)
        if cq is not None:
            self._state.enqueue(info, cq)

    def _has_variants(self, info: WorkloadInfo) -> bool:
        """Return whether the workload has variants: as in Kueue, all others if there is a policy. A workload that has
        held its own quota since before the policy has none until it waits again.
        """
        workload = info.workload
        if workload.parent:
            return False
        local_queue = self._state.local_queues.get(info.queue_key)
        cq = self._state.cluster_queues.get(local_queue.cluster_queue) if local_queue is not None else None
        return cq is not None and cq.spec.concurrent_admission is not None and not workload.is_charged

    def untrack(self, info: WorkloadInfo) -> None:
        """Remove a workload from its queue, or discharge its quota."""
        self.stranded.pop(info.key, None)
        if info.queue_state is QueueState.RESERVING:
            self._state.discharge(info)
        else:
            self._state.dequeue(info)
            self._wake_held_back(info)

    def _wake_held_back(self, info: WorkloadInfo) -> None:
        """Decide again about the workloads that were held back for the planned start of one that left its queue."""
        cq = self._state.cluster_queues.get(info.cluster_queue)
        if cq is not None and cq.spec.backfill is not None:
            self._state.dirty_queues.add(cq.name)

    def update_reserving(self, before: WorkloadInfo, workload: Workload) -> bool:
        """Replace a workload that holds quota by a new version that holds the same quota. False if the quota would
        change; then nothing is replaced."""
        if before.queue_state is not QueueState.RESERVING or not workload.holds_quota:
            return False
        known = before.workload
        if workload.admission != before.admission or workload.reclaimable_pods != known.reclaimable_pods:
            return False
        if (workload.submitted_by, workload.user_groups) != (known.submitted_by, known.user_groups):
            return False
        if workload.pod_sets != known.pod_sets or workload.queue_name != known.queue_name:
            return False
        if _replicas(workload.placement) != _replicas(before.placement):
            return False
        state = self._state
        state.journal.note_once(before)
        if before.current() != workload:  # any other change is a removal followed by an addition
            cq = state.cluster_queues[before.cluster_queue]
            state.journal.note_once(cq)
            cq.generation += 1
        before.changes = ()
        was_admitted = before.admitted
        before.set_status(workload, state.configuration)
        state.rank_changed(before)
        state.readiness.watch(before, state.configuration)
        if state.history is not None and before.admitted and not was_admitted:
            state.history.admit(before)
        if before.priority != known.effective_priority or self._moves_a_plan(before, known):
            state.dirty_queues.add(before.cluster_queue)
        self._note_second_pass(before)
        return True

    def _moves_a_plan(self, info: WorkloadInfo, known: Workload) -> bool:
        """Return whether a workload that holds quota got another time limit, and planned starts depend on it."""
        if info.workload.time_left_seconds == known.time_left_seconds:
            return False
        tree = self._state.tree_of(self._state.cluster_queues[info.cluster_queue])
        return any(cq.spec.backfill is not None for cq in tree)

    def _note_second_pass(self, info: WorkloadInfo) -> None:
        waiting, now = self._state.second_pass, self._state.now
        if waits_for_topology(info.workload):
            waiting.setdefault(info.key, first_attempt(info, now))
        elif _lost_a_node(info):
            waiting[info.key] = SecondPass(info, now)
        else:
            waiting.pop(info.key, None)

    def replace_inadmissible(self, before: WorkloadInfo, info: WorkloadInfo) -> bool:
        """Replace an inadmissible workload by a new version if nothing changed that could admit it. False otherwise."""
        state = self._state
        if before.queue_state is not QueueState.INADMISSIBLE or info.workload.holds_quota:
            return False
        if _reactivates(before.workload, info.workload):
            return False
        cq = self._queue_for(info)
        if cq is None or cq.name != before.cluster_queue:
            return False
        sticky, verdict = cq.queue.sticky == before.key, state.unstored_verdict(before, cq)
        state.dequeue(before)
        state.forget(before)
        state.insert(info)
        state.take_into(info, cq)
        cq.queue.set_inadmissible(info, delayed=not info.backoff_expired(state.now))
        if (
            verdict is not None
            and _waits_for_a_cycle(info)
            and (info.outcome is None or info.outcome[0] is not verdict[0])
        ):
            state.refuse_out_of_cycle(info, cq, verdict)
        if sticky:
            cq.queue.sticky = info.key
        return True

    def domain_nodes(self, assignment: PodSetAssignment, domain: TopologyDomain) -> frozenset[str]:
        """Return the nodes of a topology domain that a pod set was assigned; empty when the domain or the topology no
        longer exists."""
        flavor = self._state.topology_flavors.get(topology_flavor(assignment, self._state.topology_flavors) or "")
        return flavor.node_names(domain) if flavor is not None else frozenset()

    def _track_reserving(self, info: WorkloadInfo) -> None:
        state, workload = self._state, info.workload
        admission = workload.admission
        if admission is None:
            return
        info.admission = admission
        info.set_status(workload, state.configuration)
        cq = state.cluster_queues.get(admission.cluster_queue)
        if cq is None:
            self.stranded[info.key] = None
            return
        usage: dict[Cell, int] = {}
        for assignment in admission.pod_set_assignments:
            _add_usage(usage, cq, assignment, _remaining(info, assignment), state.journal)
        info.topology_usage = topology_charges(info, admission, state.topology_flavors)
        info.place_as_stated()
        state.charge(info, cq, tuple(usage.items()))
        self._note_second_pass(info)

    def _queue_for(self, info: WorkloadInfo) -> ClusterQueueState | None:
        """Return the ClusterQueue in which a workload without quota waits; None when it may not be queued."""
        if self._has_variants(info):
            return None
        local_queue = self._state.local_queues.get(info.queue_key)
        if local_queue is None or local_queue.terminating or local_queue.stop_policy is not StopPolicy.NONE:
            return None
        return self._state.cluster_queues.get(local_queue.cluster_queue) if _is_queueable(info) else None


def _is_queueable(info: WorkloadInfo) -> bool:
    return info.claim_refusal is None and is_queueable(info.workload)


def _lost_a_node(info: WorkloadInfo) -> bool:
    """Return whether pods of a running workload may be moved away from a failed node."""
    workload = info.workload
    moves = bool(workload.unhealthy_nodes and info.topology_usage) and not workload.single_pod
    return moves and info.admitted and not info.evicted


def _replicas(placement: Placement | None) -> set[tuple[str, int]]:
    """Return the pods that hold a place, as (pod set, replica). Our own decisions set where each pod is, so the only
    change that can come from outside is that a pod disappeared."""
    return {(pod.pod_set, pod.replica) for pod in placement.pods} if placement is not None else set()


def is_queueable(workload: Workload) -> bool:
    """Return whether the workload's own status allows it to be queued."""
    if not workload.active or workload.admission_gates or workload.is_true(ConditionType.WAITING_FOR_REPLACEMENT_PODS):
        return False
    reserved = workload.condition(ConditionType.QUOTA_RESERVED)
    return reserved is None or reserved.reason != PendingReason.ON_HOLD


def topology_charges(
    info: WorkloadInfo, admission: Admission, topologies: Collection[str]
) -> tuple[TopologyCharge, ...]:
    """Return the topology usage of an admission, per pod set. Pod sets whose pods have all finished use none."""
    requests = {ps.name: ps.node_requests for ps in info.pod_sets}
    charges: list[TopologyCharge] = []
    for assignment in admission.pod_set_assignments:
        topology, flavor = assignment.topology_assignment, topology_flavor(assignment, topologies)
        if topology is not None and flavor is not None and _remaining(info, assignment) > 0:
            usage = TopologyUsage(requests.get(assignment.name, {}), topology.domains)
            charges.append(TopologyCharge(flavor, usage))
    return tuple(charges)


def topology_flavor(assignment: PodSetAssignment, topologies: Collection[str]) -> str | None:
    """Return the flavor whose topology the pod set is assigned in: the first one that has a topology now, else the
    first one."""
    names = assignment.flavors.values()
    return next((name for name in names if name in topologies), next(iter(names), None))


def _remaining(info: WorkloadInfo, assignment: PodSetAssignment) -> int:
    """Return how many pods of an assignment are charged: the pods that may still run, at most the number admitted.

    Pods that were reclaimed before the admission are not part of its count; pods reclaimed later are.
    """
    counts = (ps.count for ps in info.pod_sets if ps.name == assignment.name)
    return min(assignment.count, next(counts, assignment.count))


def _add_usage(
    usage: dict[Cell, int], cq: ClusterQueueState, assignment: PodSetAssignment, remaining: int, journal: Journal
) -> None:
    """Charge the pods that still need their resources: usage / count * remaining, in whole numbers."""
    for resource, flavor in assignment.flavors.items():
        group = cq.group_of.get(resource)
        slot = next((s for s in group.flavors if s.name == flavor), None) if group else None
        if slot is not None and resource not in slot.cells:
            continue
        amount = assignment.resource_usage.get(resource, 0)
        if assignment.count and remaining != assignment.count:
            amount = amount // assignment.count * remaining
        key = FlavorResource(flavor, resource)
        if key not in cq.node.cells:
            above = (cq.node, *cq.node.ancestors())
            journal.note(_forget_cells, key, [node for node in above if key not in node.cells])
        cell = cq.node.cell(key)
        usage[cell] = usage.get(cell, 0) + amount


def _forget_cells(key: FlavorResource, nodes: Sequence[QuotaNode]) -> None:
    """Undo that nodes got a cell without quota."""
    for node in nodes:
        node.cells.pop(key, None)
        if node.parent is not None:
            node.parent.forget_children()


def _waits_for_a_cycle(info: WorkloadInfo) -> bool:
    """Return whether the workload's status shows the scheduler's verdict: a held queue or a gate takes precedence."""
    told = info.workload.condition(ConditionType.QUOTA_RESERVED)
    return told is None or is_of_the_scheduler(told)


def _reactivates(before: Workload, after: Workload) -> bool:
    if any(before.conditions.get(type_) != after.conditions.get(type_) for type_ in _REACTIVATING_CONDITIONS):
        return True
    return _deciding(before) != _deciding(after)


def _deciding(workload: Workload) -> tuple[object, ...]:
    return (*owner_fields(workload), workload.requeue_state, workload.admission_checks, workload.replaces)
