"""Builds the parts of a cycle for a state and its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduling.cycle.admission import Admitter
from scheduling.cycle.assignment import Mode
from scheduling.cycle.cycle import Cycle
from scheduling.cycle.flavor_assigner import FlavorAssigner, Oracle
from scheduling.cycle.flavor_devices import DeviceAssigner
from scheduling.cycle.flavor_placement import PlacementAssigner
from scheduling.cycle.flavor_topology import TopologyAssigner
from scheduling.cycle.node_replacement import NodeReplacer
from scheduling.cycle.nomination import Entry, Nominator, PreemptionOracle
from scheduling.cycle.planned_starts import Planner
from scheduling.cycle.preemption import Preemptor
from scheduling.cycle.preemption_candidates import CandidateFinder
from scheduling.model.decisions import CycleResult
from scheduling.model.placement import NodeFilters
from scheduling.model.vocabulary import QuotaCheckStrategy
from scheduling.quota.cells import Cell
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.pending_queue import UsageOf
from scheduling.state.state import State
from scheduling.state.workload_info import PodSetRequests, WorkloadInfo


class CycleParts:
    """The parts of a cycle. They are built again when the configuration changes."""

    def __init__(self, state: State) -> None:
        self._state = state
        configuration = state.configuration
        fair = configuration.fair_sharing
        finder = CandidateFinder(state.cluster_queues, state.simulation, state.wake_at, self._usage_of())
        strategies = fair.preemption_strategies if fair else None
        features = configuration.features
        preemptor = Preemptor(
            finder,
            state.simulation,
            strategies,
            state.preemption_loops,
            within_nominal=features.preempts_within_nominal,
        )
        self._devices = DeviceAssigner(state)
        self._topology = TopologyAssigner(state.topology_flavors, state.simulation, state.device_resources)
        placement = PlacementAssigner(self._topology, self._devices)
        self.planner = Planner(state, self._assigner(_no_victims), placement, self._devices)
        assigner = self._assigner(PreemptionOracle(state, preemptor))
        self._nominator = Nominator(state, assigner, self._topology, self._devices, preemptor, self.planner)
        self._admitter = Admitter(state)
        for cq in state.cluster_queues.values():
            self.queue_usage(cq)

    def _assigner(self, oracle: Oracle) -> FlavorAssigner:
        configuration = self._state.configuration
        return FlavorAssigner(
            self._state.matcher,
            oracle,
            self._devices,
            ignore_undeclared=configuration.quota_check_strategy is QuotaCheckStrategy.IGNORE_UNDECLARED,
            fair_sharing=configuration.fair_sharing is not None,
            fungible=configuration.features.flavor_fungibility,
        )

    def queue_usage(self, cq: ClusterQueueState) -> None:
        """Return the order of a ClusterQueue's LocalQueues by usage, if admission fair sharing is on for it."""
        cq.queue.order_by_usage(self._usage_of() if cq.usage_based else None)

    def _usage_of(self) -> UsageOf | None:
        history = self._state.history
        return (lambda info: history.usage(info.queue_key)) if history is not None else None

    def is_blocked(self) -> bool:
        """Return whether no workload may be admitted until the pods of admitted ones are ready."""
        return self._state.readiness.is_stopped

    def run_cycle(self) -> CycleResult:
        """Run one cycle. Workloads with failed nodes come first, even while admission is blocked."""
        replacer = NodeReplacer(self._state, self._devices)
        self._state.cycle += 1
        replacer.run()
        cycle = Cycle(self._state, self._nominator, self._topology, self._devices, self._admitter)
        result = cycle.run(blocked=self.is_blocked(), placed=[found.workload for found in replacer.replacements])
        replacer.close()
        if not replacer.decided:
            return result
        return replace(
            result,
            evictions=(*replacer.evictions, *result.evictions),
            replacements=tuple(replacer.replacements),
            progressed=True,
        )

    def nominate(self, info: WorkloadInfo, cq: ClusterQueueState) -> Entry:
        """Return the entry that a pending workload would get now, ignoring where its flavor search stopped. Change
        nothing."""
        last, info.last_assignment = info.last_assignment, None
        entry = self._nominator.nominate(info, cq, self._state.cycle)
        info.last_assignment = last
        return entry

    def in_order(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the heads in the order in which one cycle would decide them."""
        return list(
            Cycle(self._state, self._nominator, self._topology, self._devices, self._admitter).in_order(entries)
        )

    def filters(self, info: WorkloadInfo, cq: ClusterQueueState, flavors: Sequence[str]) -> NodeFilters | None:
        """Return the constraints that keep a workload's pods off the nodes of these flavors.

        None if there are no such constraints, if the pods request no devices, or if the pods are placed only after the
        admission checks; quota alone decides then.
        """
        waits = any(self._devices.waits_for_checks(info, cq, flavor) for flavor in flavors)
        return self._devices.filters(info, flavors) if not waits and self._devices.concerns(info) else None

    def fits_empty_nodes(
        self, info: WorkloadInfo, cq: ClusterQueueState, pod_set: PodSetRequests, flavors: Sequence[str]
    ) -> bool:
        """Return whether empty nodes of these flavors, one flavor of each resource group, would take the pod set's
        pods. True if its admission checks may add nodes, and for pods that are not placed here."""
        waits = any(self._devices.waits_for_checks(info, cq, flavor) for flavor in flavors)
        return waits or self._devices.fits_empty_nodes(info, pod_set, flavors)


def _no_victims(cq: ClusterQueueState, info: WorkloadInfo, cell: Cell, amount: int, level: int) -> tuple[Mode, int]:
    """Return the oracle of planned starts, which preempt nothing."""
    return Mode.NO_CANDIDATES, level
