"""Everything that a cycle reads and changes, with the journal that undoes changes.

`State` moves a workload between waiting, inadmissible and holding quota. Other packages use it through
`scheduling.world.World`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scheduling.devices.claims.charges import ClaimRules
from scheduling.devices.claims.evaluations import Evaluations
from scheduling.devices.claims.objects import DeviceObjects
from scheduling.devices.search.fleet import Fleet
from scheduling.lifecycle.conditions import pending
from scheduling.model.admission_check import AdmissionCheck
from scheduling.model.cohort import Cohort
from scheduling.model.configuration import Configuration
from scheduling.model.decisions import Outcome
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod_defaults import PodDefaults
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import matches_node_selector
from scheduling.model.topology import Topology
from scheduling.model.vendor import DeviceVendor
from scheduling.model.vocabulary import DecisionKind, PendingReason, PlacementScope
from scheduling.model.workload import Admission
from scheduling.quota.cells import CellAmounts, add_usage, remove_usage
from scheduling.quota.tree import CohortTree
from scheduling.reservations.reserved_nodes import NO_NODES, Claimant, ReservedNodes
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.flavor_matching import FlavorMatcher
from scheduling.state.journal import Journal
from scheduling.state.pending_queue import Verdict
from scheduling.state.pods_ready import Readiness
from scheduling.state.preemption_loops import PreemptionLoopGuard
from scheduling.state.second_pass import SecondPass
from scheduling.state.shares.admission_fair_sharing import usage_history
from scheduling.state.shares.entitlements import Entitlements
from scheduling.state.shares.multifactor_order import MultifactorOrder
from scheduling.state.shares.user_usage import UserUsage
from scheduling.state.waking import Waking
from scheduling.state.what_if import Simulation
from scheduling.state.workload_index import Workloads
from scheduling.state.workload_info import QueueState, SchedulingHash, TopologyCharge, WorkloadInfo
from scheduling.topology.flavor import TopologyFlavors

_MAX_TOLD_AT_ONCE = 100
"""How many equal workloads get the verdict in one step. Each costs a row to write."""


class State:
    """The mutable data behind a World."""

    def __init__(self, configuration: Configuration, vendors: Sequence[DeviceVendor]) -> None:
        self.configuration = configuration
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.flavors: dict[str, ResourceFlavor] = {}
        self.topologies: dict[str, Topology] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.checks: dict[str, AdmissionCheck] = {}
        self.local_queues: dict[str, LocalQueue] = {}
        self.cluster_queues: dict[str, ClusterQueueState] = {}
        self.workloads = Workloads()
        self.by_local_queue: dict[str, dict[str, None]] = {}
        self.tree = CohortTree()
        self.members: dict[int, list[ClusterQueueState]] = {}
        self.topology_flavors = TopologyFlavors(balanced_placement=configuration.balanced_placement)
        self.matcher = FlavorMatcher(self.topology_flavors)
        self.simulation = Simulation(self.topology_flavors)
        self.vendors = tuple(vendors)
        self.fleet = Fleet(self.vendors)
        self.pod_defaults = PodDefaults()
        self.evaluations = Evaluations()
        self.claims = ClaimRules(DeviceObjects(), configuration, self.evaluations)
        self.claim_users: dict[str, None] = {}
        """The workloads whose pods claim devices of drivers."""
        self.outdated: dict[str, bool] = {}
        """Pending workloads to read again before they are decided; the value is true if their requests must be computed
        again, too. Some may no longer be known.
        """
        self._reported: dict[str, Node] = {}
        """Nodes without the devices that drivers publish for claims."""
        self.reservations = ReservedNodes(self._reported)
        self.has_devices = False
        self.places_by_room = False
        """Whether pods without devices are placed on nodes, too: the configuration requires it, and nodes are known."""
        self.now, self.cycle = 0.0, 0
        self.ready: dict[str, ClusterQueueState] = {}
        """ClusterQueues that may have active workloads, by name."""
        self.dirty_queues: set[str] = set()
        """ClusterQueues in whose cohort tree something changed: the next cycle wakes its inadmissible workloads."""
        self.waiting_for_devices: set[str] = set()
        """ClusterQueues with workloads that lack devices. Any device that becomes free may let them start."""
        self.untold_queues: dict[str, None] = {}
        """ClusterQueues that may have workloads whose status lacks the verdict on an equal one."""
        self.readiness = Readiness()
        self.second_pass: dict[str, SecondPass] = {}  # workloads that hold quota and are decided before the heads
        self.history = usage_history(configuration.admission_fair_sharing)
        """Past usage of LocalQueues; None while admission fair sharing is off."""
        self.multifactor = MultifactorOrder(self)
        self.entitlements = Entitlements(self)
        self.user_usage = UserUsage(self.cluster_queues)
        self.wake_at: dict[str, float] = {}
        """Per ClusterQueue, when to look again at workloads that may not preempt now (every candidate is protected,
        or they are paused)."""
        self.preemption_loops = PreemptionLoopGuard()
        self.waking = Waking(self)
        self.out_of_cycle_outcomes: dict[str, Outcome] = {}
        """Outcomes decided outside a cycle that are not drained yet, by workload. A workload that is removed takes its
        outcome along: an undone batch restores the outcomes that it drained, and the workload may end before the next
        one.
        """
        self.journal = Journal()

    # -- the journal ------------------------------------------------------------------------------------------------

    def start_journal(self) -> None:
        """Start recording how to undo changes."""
        self.journal.open()
        for thing in (self, self.preemption_loops, self.readiness, self.evaluations, self.history):
            if thing is not None:
                self.journal.note_once(thing)

    def snapshot(self) -> tuple[Any, ...]:
        """Return a copy of the scalar fields and small collections that a cycle changes."""
        return (
            self.now,
            self.cycle,
            dict(self.ready),
            set(self.dirty_queues),
            set(self.waiting_for_devices),
            dict(self.second_pass),
            dict(self.out_of_cycle_outcomes),
            dict(self.wake_at),
            dict(self.outdated),
            dict(self.untold_queues),
        )

    def restore(self, values: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        self.now, self.cycle, self.ready, self.dirty_queues = values[:4]
        self.waiting_for_devices, self.second_pass, self.out_of_cycle_outcomes = values[4:7]
        self.wake_at.clear()
        self.wake_at.update(values[7])
        self.outdated, self.untold_queues = values[8:]

    # -- configuration -------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        self.now = max(self.now, now)
        self.evaluations.advance(self.now)

    def set_configuration(self, configuration: Configuration) -> None:
        """Replace the configuration. Only allowed while no workload is known."""
        self.journal.note(
            self._restore_configuration,
            (self.configuration, self.claims, self.history, self.topology_flavors, self.matcher, self.simulation),
            self.places_by_room,
        )
        self.configuration = configuration
        self.places_by_room = self._is_to_place_by_room() and bool(self.fleet.nodes)
        self.claims = ClaimRules(self.claims.objects, configuration, self.evaluations)
        self.history = usage_history(configuration.admission_fair_sharing)
        if self.history is not None:
            for queue in self.local_queues.values():
                self.history.set_local_queue(queue)
        self.topology_flavors = TopologyFlavors(balanced_placement=configuration.balanced_placement)
        self.topology_flavors.set_nodes(self.fleet.nodes.values())
        for name in self.flavors:
            self.sync_topology_flavor(name)
        self.matcher = FlavorMatcher(self.topology_flavors)
        self.simulation = Simulation(self.topology_flavors)

    def _restore_configuration(self, parts: tuple[Any, ...], places_by_room: bool) -> None:
        self.configuration, self.claims, self.history = parts[:3]
        self.topology_flavors, self.matcher, self.simulation = parts[3:]
        self.places_by_room = places_by_room

    def set_vendors(self, vendors: Sequence[DeviceVendor]) -> None:
        """Read device requests by these vendors from now on. Devices that are held stay held."""
        self.journal.note(self._use_vendors, self.vendors, self.fleet)
        self._use_vendors(tuple(vendors), self.fleet.with_vendors(tuple(vendors)))

    def _use_vendors(self, vendors: tuple[DeviceVendor, ...], fleet: Fleet) -> None:
        self.vendors, self.fleet = vendors, fleet
        for info in self.workloads.values():
            for pod_set in info.pod_sets:
                pod_set.devices = None

    def sync_topology_flavor(self, name: str) -> None:
        """Update the flavor's topology tree after the flavor or its topology changed, and keep its usage."""
        self.journal.note_again(self.topology_flavors)
        holders = [
            charge.usage for info in self.workloads.values() for charge in info.topology_usage if charge.flavor == name
        ]
        for usage in holders:
            self.topology_flavors.remove_usage(name, usage)
        flavor = self.flavors.get(name)
        topology = self.topologies.get(flavor.topology_name) if flavor and flavor.topology_name else None
        if flavor is None or topology is None:
            self.topology_flavors.delete_flavor(name)
            return
        self.topology_flavors.set_flavor(name, topology, flavor.node_labels, flavor.tolerations)
        for usage in holders:
            self.topology_flavors.add_usage(name, usage)

    @property
    def reported_nodes(self) -> dict[str, Node]:
        """The nodes as last set, without the devices that drivers publish for claims."""
        return self._reported

    def set_node(self, node: Node) -> None:
        """Add or replace a node, and wake the workloads that wait for a flavor with that node."""
        self._note_node(node.name)
        reported = self._reported.get(node.name)
        self._reported[node.name] = node
        if self.reservations.node_changed(reported, node):
            self.dirty_queues.update(self.cluster_queues)  # it may take the place of a node of any flavor
        node = self.claims.places.on_node(node)
        before = self.fleet.nodes.get(node.name)
        if before != node:
            self.fleet.set_node(node)
            self.topology_flavors.set_node(node)
            self._node_changed(before, node)

    def set_claims(self, objects: DeviceObjects) -> None:
        """Replace the claims and their devices. `set_devices_of_nodes` then updates the nodes."""
        self.journal.note(self._restore_claims, self.claims)
        self.claims = ClaimRules(objects, self.configuration, self.evaluations)

    def _restore_claims(self, claims: ClaimRules) -> None:
        self.claims = claims
        self.evaluations.set_devices(claims.objects.pools)

    def set_devices_of_nodes(self) -> None:
        """Add to the nodes the devices that claims currently request."""
        for node in list(self._reported.values()):
            self.set_node(node)

    def device_resources(self) -> frozenset[str]:
        """Return the resources that are placed as devices instead of being counted per node. Empty while no node has a
        device."""
        return self.fleet.settings.device_resources if self.has_devices else frozenset()

    def delete_node(self, name: str) -> None:
        self._note_node(name)
        self.reservations.node_changed(self._reported.pop(name, None), None)
        before = self.fleet.nodes.get(name)
        if before is not None:
            self.fleet.delete_node(name)
            self.topology_flavors.delete_node(name)
            self._node_changed(before, None)

    def _note_node(self, name: str) -> None:
        """Record how to put the node back into the fleet and the topologies of this moment."""
        known = (self._reported.get(name), self.fleet.nodes.get(name))
        kept = (self.has_devices, self.places_by_room)
        self.journal.note(self._restore_node, name, self.fleet, self.topology_flavors, known, kept)

    def _restore_node(
        self,
        name: str,
        fleet: Fleet,
        topologies: TopologyFlavors,
        known: tuple[Node | None, Node | None],
        kept: tuple[bool, bool],
    ) -> None:
        reported, node = known
        undone = self._reported.pop(name, None)
        if reported is not None:
            self._reported[name] = reported
        self.reservations.node_changed(undone, reported)
        if node is None:
            fleet.delete_node(name)
            topologies.delete_node(name)
        else:
            fleet.set_node(node)
            topologies.set_node(node)
        self.has_devices, self.places_by_room = kept

    def _is_to_place_by_room(self) -> bool:
        return self.configuration.placement is not PlacementScope.DEVICES

    @property
    def places_all_pods(self) -> bool:
        """Whether pods without devices are placed in every flavor, except flavors that leave them to quota alone."""
        return self.places_by_room and self.configuration.placement is PlacementScope.ALL

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        """Wake workloads whose flavors include a node that offers more than before. When the first node or device
        appears or the last one disappears, wake all: placement begins or ceases to matter."""
        had_devices, self.has_devices = self.has_devices, self.fleet.has_devices
        self.places_by_room = self._is_to_place_by_room() and bool(self.fleet.nodes)
        first_or_last = not self.fleet.nodes or (before is None and len(self.fleet.nodes) == 1)
        if had_devices != self.has_devices or (self._is_to_place_by_room() and first_or_last):
            self.dirty_queues.update(self.cluster_queues)
        if before is not None and before.external_usage != (after.external_usage if after is not None else {}):
            self.waking.wake_waiting_for_devices()  # a ResourceQuota may allow more devices now, on any node
        if after is None or (before is not None and not after.offers_more_than(before)):
            return
        reached = {
            flavor.name
            for flavor in self.flavors.values()
            if (self.has_devices or self.places_all_pods or flavor.topology_name is not None)
            and matches_node_selector(flavor.node_labels, after.labels)
        }
        for cq in self.cluster_queues.values():
            if any(slot.name in reached for group in cq.groups for slot in group.flavors):
                self.dirty_queues.add(cq.name)

    # -- workloads come and go -----------------------------------------------------------------------------------------

    def insert(self, info: WorkloadInfo) -> None:
        """Add a workload to the known ones, without queueing or charging it."""
        self._insert_again(info)
        self.journal.note(self._forget, info)

    def forget(self, info: WorkloadInfo) -> None:
        """Remove a workload from the known ones. It must no longer be queued or charged."""
        self._forget(info)
        self.journal.note(self._insert_again, info)

    def _forget(self, info: WorkloadInfo) -> None:
        del self.workloads[info.key]
        self.claim_users.pop(info.key, None)
        self.evaluations.leave(info.workload.namespace, info.device_kinds)
        self.out_of_cycle_outcomes.pop(info.key, None)
        self.by_local_queue.get(info.queue_key, {}).pop(info.key, None)

    def _insert_again(self, info: WorkloadInfo) -> None:
        self.workloads[info.key] = info
        if info.claims_devices:
            self.claim_users[info.key] = None
        self.evaluations.use(info.workload.namespace, info.device_kinds)
        self.by_local_queue.setdefault(info.queue_key, {})[info.key] = None

    def rank_changed(self, info: WorkloadInfo) -> None:
        """Update rankings: a workload that holds quota was asked to stop, or changed its priority."""
        cq = self.cluster_queues[info.cluster_queue]
        cq.forget_ranking()
        self.simulation.note(cq.name)
        self.journal.note(cq.forget_ranking)

    def replaced_slice(self, info: WorkloadInfo, cq: ClusterQueueState) -> WorkloadInfo | None:
        """Return the slice of an elastic job that this workload replaces, if it holds quota in the ClusterQueue."""
        replaced = cq.workloads.get(info.workload.replaces) if info.workload.replaces is not None else None
        return replaced if replaced is not None and not replaced.evicted else None

    def cluster_queue_of(self, info: WorkloadInfo) -> ClusterQueueState | None:
        """Return the ClusterQueue in which a workload holds quota, else the one of its LocalQueue; None if it does not
        exist."""
        if info.queue_state is QueueState.RESERVING and info.admission is not None:
            return self.cluster_queues.get(info.admission.cluster_queue)
        local_queue = self.local_queues.get(info.queue_key)
        return self.cluster_queues.get(local_queue.cluster_queue) if local_queue else None

    def take_into(self, info: WorkloadInfo, cq: ClusterQueueState) -> None:
        """Note the ClusterQueue of a workload that is about to wait there, its order, and which workloads are equal to
        it. If users are limited, only workloads of the same user are equal. With backfill, and if reservations bar the
        workload, only workloads with the same time limit that the same reservations bar are equal."""
        info.cluster_queue = cq.name
        info.order = self.multifactor.order_of(info, cq)
        submitter = (info.workload.submitted_by, info.workload.user_groups) if cq.user_limits else None
        time = info.workload.time_left_seconds if cq.spec.backfill is not None else None
        barred = NO_NODES
        if self.reservations:
            barred = self.reservations.barring(Claimant.of(info.workload, cq.name), self.now)
            time = info.workload.time_left_seconds if barred else time
        if (submitter, time, barred) != (info.limited_submitter, info.limited_time, info.barred_by):
            self.journal.note_again(info)  # the undone removal puts it back by the hash of before
            info.set_limits(submitter, time, barred)

    def enqueue(self, info: WorkloadInfo, cq: ClusterQueueState) -> None:
        """Queue a workload: inadmissible while it backs off or while an equal one is inadmissible, else active."""
        self.journal.note_once(cq)
        self.journal.note_once(info)
        self.take_into(info, cq)
        if not info.backoff_expired(self.now):
            cq.queue.set_inadmissible(info, delayed=True)
        else:
            verdict = cq.queue.push_unless_inadmissible(info)
            if verdict is not None and (info.outcome is None or info.outcome[0] is not verdict[0]):
                self.refuse_out_of_cycle(info, cq, verdict)
        if cq.queue.active_count:
            self.ready[cq.name] = cq
        self.entitlements.touch(cq.name)

    def dequeue(self, info: WorkloadInfo) -> None:
        """Remove a pending workload from its queue."""
        cq = self.cluster_queues.get(info.cluster_queue)
        if cq is None or info.queue_state not in (QueueState.ACTIVE, QueueState.INADMISSIBLE):
            return
        self.journal.note_once(cq)
        self.journal.note_once(info)
        cq.queue.discard(info)
        self.entitlements.touch(cq.name)

    def charge(self, info: WorkloadInfo, cq: ClusterQueueState, usage: CellAmounts, *, charged: bool = False) -> None:
        """Give a workload its quota. `charged`: its cells were charged already."""
        self.journal.note_once(cq)
        self.journal.note_once(info)
        if not charged:
            add_usage(usage)
            self._charge_topology(info.topology_usage)
        if info.placement is not None:
            self.fleet.reserve(info.key, info.placement)
            self.journal.note(self.fleet.release, info.key)
        info.usage = usage
        info.keys = frozenset(cell.key for cell, _ in usage)
        info.cluster_queue = cq.name
        info.queue_state = QueueState.RESERVING
        cq.workloads[info.key] = info
        self.user_usage.add(info, cq, usage)
        cq.forget_ranking()
        self.simulation.note(cq.name)
        cq.generation += 1
        self.journal.note(self._uncharge, info, cq, usage, info.topology_usage)
        self.readiness.watch(info, self.configuration)
        self.entitlements.touch(cq.name)

    def _uncharge(
        self, info: WorkloadInfo, cq: ClusterQueueState, usage: CellAmounts, topology: tuple[TopologyCharge, ...]
    ) -> None:
        remove_usage(usage)
        for flavor, charge in topology:
            self.topology_flavors.remove_usage(flavor, charge)
        del cq.workloads[info.key]
        self.user_usage.add(info, cq, usage, -1)
        cq.forget_ranking()
        self.simulation.note(cq.name)

    def discharge(self, info: WorkloadInfo) -> None:
        """Release the quota, topology and devices of a workload, and note that its cohort tree changed."""
        cq = self.cluster_queues[info.cluster_queue]
        self.journal.note_once(cq)
        self.journal.note_once(info)
        self._uncharge(info, cq, info.usage, info.topology_usage)
        self.journal.note(self._recharge, info, cq, info.usage, info.topology_usage)
        if info.placement is not None:
            placement = self.fleet.release(info.key)
            self.journal.note(self.fleet.reserve, info.key, placement)
            info.placement = None
            self.waking.wake_waiting_for_devices()
        info.usage = ()
        info.keys = frozenset()
        info.topology_usage = ()
        info.queue_state = QueueState.NOWHERE
        cq.generation += 1
        self.readiness.forget(info.key)
        self.second_pass.pop(info.key, None)
        self.dirty_queues.add(cq.name)
        self.entitlements.touch(cq.name)
        if self.history is not None:
            self.history.cancel(info)

    def move(self, info: WorkloadInfo, admission: Admission, topology: tuple[TopologyCharge, ...]) -> None:
        """Charge a workload that holds quota for other topology domains instead."""
        cq = self.cluster_queues[info.cluster_queue]
        self.journal.note_once(cq)
        self.journal.note_once(info)
        before = info.topology_usage
        self._exchange_topology(before, topology)
        self.journal.note(self._exchange_topology, topology, before)
        info.topology_usage = topology
        info.admission = admission
        cq.generation += 1

    def _exchange_topology(self, before: tuple[TopologyCharge, ...], after: tuple[TopologyCharge, ...]) -> None:
        for flavor, charge in before:
            self.topology_flavors.remove_usage(flavor, charge)
        self._charge_topology(after)

    def _recharge(
        self, info: WorkloadInfo, cq: ClusterQueueState, usage: CellAmounts, topology: tuple[TopologyCharge, ...]
    ) -> None:
        add_usage(usage)
        self._charge_topology(topology)
        cq.workloads[info.key] = info
        self.user_usage.add(info, cq, usage)
        cq.forget_ranking()

    def _charge_topology(self, charges: tuple[TopologyCharge, ...]) -> None:
        for flavor, charge in charges:
            self.topology_flavors.add_usage(flavor, charge)

    def refuse(self, info: WorkloadInfo, cq: str, kind: DecisionKind, reason: PendingReason, message: str) -> Outcome:
        """Record in a workload's status why it waits."""
        self.journal.note_once(info)
        info.outcome = (reason, message)
        now = self.now
        info.change(lambda workload: pending(workload, reason.value, message, now))
        queue = self.cluster_queues.get(cq)
        if queue is not None:
            queue.queue.said(info)
        return Outcome(info.key, cq, kind, reason, message, self.cycle)

    def refuse_out_of_cycle(self, info: WorkloadInfo, cq: ClusterQueueState, verdict: Verdict) -> None:
        """Record in a workload's status why it waits, and keep the outcome for the next batch."""
        self.out_of_cycle_outcomes[info.key] = self.refuse(info, cq.name, DecisionKind.INADMISSIBLE, *verdict)

    def unstored_verdict(self, info: WorkloadInfo, cq: ClusterQueueState) -> Verdict | None:
        """Return the verdict on a waiting workload that its stored status does not have yet."""
        outcome = self.out_of_cycle_outcomes.get(info.key)
        return cq.queue.untold(info) if outcome is None else (outcome.reason, outcome.message)

    def refuse_equals(self, cq: ClusterQueueState, equals: Iterable[SchedulingHash], verdict: Verdict) -> list[Outcome]:
        """Make all workloads with these hashes inadmissible, and write the verdict to the first ones whose status has
        another reason."""
        for scheduling_hash in equals:
            cq.queue.set_hash_inadmissible(scheduling_hash, verdict)
        self.untold_queues[cq.name] = None
        return self.tell_equals()

    def tell_equals(self) -> list[Outcome]:
        """Write the verdict on an equal workload to those that lack it, at most `_MAX_TOLD_AT_ONCE` per step: a flood
        of equal workloads must not delay the next cycle."""
        told: list[Outcome] = []
        for name in [*self.untold_queues]:
            cq = self.cluster_queues.get(name)
            while cq is not None and len(told) < _MAX_TOLD_AT_ONCE and (found := cq.queue.next_untold()) is not None:
                info, verdict = found
                told.append(self.refuse(info, name, DecisionKind.INADMISSIBLE, *verdict))
            if len(told) >= _MAX_TOLD_AT_ONCE:
                break
            del self.untold_queues[name]
        return told

    # -- queues --------------------------------------------------------------------------------------------------------

    def tree_of(self, cq: ClusterQueueState) -> list[ClusterQueueState]:
        """Return all ClusterQueues of the cohort tree; without a cohort the ClusterQueue alone."""
        root = cq.node.root
        return [cq] if root is cq.node else self.members.get(id(root), [cq])

    def selected_namespaces(self, cq: ClusterQueueState) -> set[str]:
        """Return the namespaces that the ClusterQueue selects."""
        return {name for name in self.namespaces if self.selects_namespace(cq, name)}

    def namespace_matches(self, info: WorkloadInfo, cq: ClusterQueueState) -> bool:
        """Return whether the ClusterQueue selects the workload's namespace."""
        return self.selects_namespace(cq, info.workload.namespace)

    def selects_namespace(self, cq: ClusterQueueState, namespace: str) -> bool:
        """Return whether the ClusterQueue selects the namespace. An unknown namespace is never selected."""
        labels = self.namespaces.get(namespace)
        selector = cq.spec.namespace_selector
        return labels is not None and selector is not None and selector.matches(labels)

    def ready_queues(self) -> Iterator[ClusterQueueState]:
        """Yield the active ClusterQueues that have an active workload."""
        for name, cq in list(self.ready.items()):
            if not cq.queue.active_count:
                del self.ready[name]
            elif cq.active:
                yield cq
