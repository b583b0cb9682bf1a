"""Results of the flavor assigner: a flavor per resource of each pod set, how well it fits, and its refusals."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from scheduling.model.admission_check import AdmissionCheckState
from scheduling.model.placement import Placement
from scheduling.model.resources import FlavorResource
from scheduling.model.topology import TopologyAssignment
from scheduling.model.vocabulary import PendingReason
from scheduling.quota.cells import Cell, QuotaNode
from scheduling.state.second_pass import PENDING
from scheduling.state.workload_info import PodSetRequests, TopologyCharge, WorkloadInfo


class Mode(IntEnum):
    """How well a flavor or a workload fits; greater is better."""

    NO_FIT = 0
    """Cannot be assigned, not even with preemption."""
    NO_CANDIDATES = 1
    """Preemption is allowed, but there are no candidates."""
    PREEMPT = 2
    """Fits once victims have stopped, at least one of them in the preemptor's own ClusterQueue. A whole assignment has
    this mode whichever ClusterQueues its victims are in, and also if there are none."""
    RECLAIM = 3
    """Preemption in other ClusterQueues only, none in its own."""
    DEFERRED_FIT = 4
    """Fits once the workloads that others preempted in this cycle have stopped."""
    FIT = 5
    """Fits now. Of one flavor and resource: the free quota, which may be borrowed, is enough."""


class RefusalKind(IntEnum):
    """The subject of a refusal; selects its wording."""

    MISMATCH = 0
    """The flavor's taints or node labels exclude the pods."""
    UNAVAILABLE = 1
    """No flavor can be tried, for example for a resource that the queue does not cover; the text gives the reason."""
    EXCEEDS_MAXIMUM = 2
    """The request is larger than the quota that could ever be free: waiting does not help."""
    LACKS = 3
    """The request is larger than the quota that is free now."""
    TOPOLOGY = 4
    """The quota is enough, but no topology domain takes the pods."""
    DEVICES = 5
    """The quota is enough, but the nodes have too few free devices."""
    NAMESPACE_QUOTA = 6
    """The namespace's ResourceQuota does not leave enough devices."""
    NO_TOPOLOGY = 7
    """A pod set needs exactly one flavor with a topology, and got none or several."""
    NODES = 8
    """No node takes pods that request no devices."""
    USER_LIMIT = 9
    """The workload's user would hold more than a limit by user allows; the text gives the limit."""
    PLANNED_START = 10
    """The workload would delay a planned start (backfill); the text says in which queue."""
    RESERVATION = 11
    """The workload would fit on nodes that a reservation keeps free; the text names the reservation."""


class Refusal(NamedTuple):
    """The reason why one flavor, or one resource of it, does not fit. Amounts are in base units.

    `wanted` includes the usage of the workload's earlier pod sets. `limit` is the highest possible amount
    (EXCEEDS_MAXIMUM) or the free amount (LACKS). `preemptible`: preemption may help.
    """

    kind: RefusalKind
    reason: PendingReason
    flavor: str = ""
    resource: str = ""
    wanted: int = 0
    limit: int = 0
    text: str = ""
    preemptible: bool = False


SEVERITY = {
    PendingReason.NO_MATCHING_FLAVOR: 5,
    PendingReason.EXCEEDS_MAX_QUOTA: 4,
    PendingReason.WAITING_FOR_USER_LIMIT: 3,
    PendingReason.WAITING_FOR_PLANNED_START: 3,
    PendingReason.WAITING_FOR_QUOTA: 3,
    PendingReason.TOPOLOGY_PLACEMENT_FAILED: 2,
    PendingReason.WAITING_FOR_RESERVATION: 2,
    PendingReason.WAITING_FOR_DEVICES: 1,
    PendingReason.WAITING_FOR_NODES: 1,
}
"""Pending reasons by severity."""
_OF_NODES = frozenset({RefusalKind.DEVICES, RefusalKind.NODES, RefusalKind.NAMESPACE_QUOTA})


class Choice:
    """The flavor chosen for one resource of a pod set. `cell` is None if the flavor does not limit the resource."""

    __slots__ = ("cell", "flavor", "level", "mode", "tried")

    def __init__(self, flavor: str, cell: Cell | None, mode: Mode, level: int, tried: int) -> None:
        """`level` is the borrowing level. `tried` is the index to continue from; -1 if it was the group's last
        flavor."""
        self.flavor = flavor
        self.cell = cell
        self.mode = mode
        self.level = level
        self.tried = tried


class PodSetResult:
    """The result for one pod set. `fits`: every resource group has a flavor in which all its resources fit."""

    __slots__ = ("delayed", "fits", "flavors", "gained", "kept", "leaving", "name", "pod_set", "requests", "topology")

    def __init__(self, pod_set: PodSetRequests, requests: dict[str, int]) -> None:
        """`requests` includes `pods` where the ClusterQueue covers it."""
        self.pod_set = pod_set
        self.name = pod_set.name
        self.requests = requests
        self.flavors: dict[str, Choice] = {}
        self.fits = True
        self.topology: TopologyAssignment | None = None
        self.kept: TopologyAssignment | None = None
        """The part of `topology` that running pods occupy: pods of the slice that it replaces, or placed in the first
        pass."""
        self.leaving: TopologyAssignment | None = None
        """Domains of pods of the replaced slice that are to be removed. They are not part of `topology`, and not free
        yet."""
        self.gained: TopologyAssignment | None = None
        """The part of `topology` for new pods."""
        self.delayed = False
        """Whether the pods are placed in a second pass, after the admission checks."""

    @property
    def mode(self) -> Mode:
        """FIT, PREEMPT or NO_FIT."""
        if self.fits:
            return Mode.FIT
        if not self.flavors:
            return Mode.NO_FIT
        worst = min(choice.mode for choice in self.flavors.values())
        return Mode.PREEMPT if Mode.NO_FIT < worst < Mode.FIT else worst


class Assignment:
    """The assignment of a whole workload. `usage` is per cell of the ClusterQueue; `level` is the highest borrowing
    level."""

    __slots__ = (
        "checks",
        "closed_nodes",
        "delayed",
        "level",
        "mode",
        "placement",
        "pod_sets",
        "refusals",
        "topology_usage",
        "usage",
    )

    def __init__(self) -> None:
        self.pod_sets: list[PodSetResult] = []
        self.usage: dict[Cell, int] = {}
        self.level = 0
        self.mode = Mode.FIT
        self.refusals: list[list[Refusal]] = []
        """The refusals for each pair of pod set group and resource group that does not fit."""
        self.topology_usage: list[TopologyCharge] = []
        self.placement: Placement | None = None
        self.delayed = False
        """Whether pods are placed in a second pass. If some are, all are, because a gang is placed whole."""
        self.checks: tuple[AdmissionCheckState, ...] = ()
        """The admission checks of a workload in its second pass."""
        self.closed_nodes: frozenset[str] = frozenset()
        """The nodes that reservations close to the workload, once it is placed."""

    def refuse(self, refusal: Refusal) -> None:
        """Mark the whole workload as not fitting, for one reason that holds for any flavor.

        No other flavor is left to try, so the workload does not stay at the head of its queue, and the next search
        starts with the first flavor again.
        """
        self.mode = Mode.NO_FIT
        self.refusals = [[refusal]]
        for pod_set in self.pod_sets:
            for choice in pod_set.flavors.values():
                choice.tried = -1

    @property
    def tried(self) -> list[dict[str, int]]:
        """Return, for each pod set, the index of the last flavor tried per resource (`LastAssignment.tried`)."""
        return [{name: choice.tried for name, choice in ps.flavors.items()} for ps in self.pod_sets]

    @property
    def no_fit_reason(self) -> PendingReason:
        """Return why the workload cannot be admitted now.

        A flavor is as bad as its worst resource, a resource group is as good as its best flavor, and the workload is as
        bad as its worst resource group. Flavors that only need preemption do not count. A topology that can never hold
        the pods outranks missing quota, because no freed quota would help.
        """
        reasons = [reason for refusals in self.refusals if (reason := _mildest_flavor(refusals)) is not None]
        if PendingReason.TOPOLOGY_PLACEMENT_FAILED in reasons:
            return PendingReason.TOPOLOGY_PLACEMENT_FAILED
        return max(reasons, key=SEVERITY.__getitem__, default=PendingReason.WAITING_FOR_QUOTA)

    @property
    def reason_without_victims(self) -> PendingReason:
        """The pending reason of a workload that needs preemption but has no victims: devices or nodes if only these
        are short."""
        kinds = {refusal.kind for refusals in self.refusals for refusal in refusals}
        if kinds == {RefusalKind.NODES}:
            return PendingReason.WAITING_FOR_NODES
        if RefusalKind.RESERVATION in kinds and kinds <= {*_OF_NODES, RefusalKind.RESERVATION}:
            return PendingReason.WAITING_FOR_RESERVATION
        devices = bool(kinds) and kinds <= _OF_NODES
        return PendingReason.WAITING_FOR_DEVICES if devices else PendingReason.WAITING_FOR_QUOTA

    def cells_to_preempt(self) -> set[Cell]:
        """Return the cells whose flavor needs preemption."""
        return {
            choice.cell
            for ps in self.pod_sets
            for choice in ps.flavors.values()
            if choice.cell is not None and choice.mode is not Mode.FIT
        }

    def flavor_names(self) -> list[dict[str, str]]:
        """Return the flavor of each resource, per pod set."""
        return [{name: choice.flavor for name, choice in ps.flavors.items()} for ps in self.pod_sets]


def _mildest_flavor(refusals: Sequence[Refusal]) -> PendingReason | None:
    """Return the reason of the flavor that comes closest to fitting; None if preemption may help with every flavor."""
    by_flavor: dict[str, PendingReason] = {}
    for refusal in refusals:
        known = by_flavor.get(refusal.flavor)
        if not refusal.preemptible and (known is None or SEVERITY[known] < SEVERITY[refusal.reason]):
            by_flavor[refusal.flavor] = refusal.reason
    return min(by_flavor.values(), key=SEVERITY.__getitem__, default=None)


def reserved_assignment(info: WorkloadInfo, node: QuotaNode) -> Assignment:
    """Return the assignment of a workload that holds quota. Every flavor fits, and each pod set whose placement was
    not delayed has its topology."""
    assert info.admission is not None  # it already holds quota
    pod_sets = {pod_set.name: pod_set for pod_set in info.pod_sets}
    assignment = Assignment()
    assignment.usage = dict(info.usage)
    assignment.checks = info.workload.admission_checks
    for held in info.admission.pod_set_assignments:
        pod_set = pod_sets[held.name]
        result = PodSetResult(pod_set.scaled_to(min(held.count, pod_set.count)), dict(held.resource_usage))
        for resource, flavor in held.flavors.items():
            cell = node.cell(FlavorResource(flavor, resource))
            result.flavors[resource] = Choice(flavor, cell, Mode.FIT, 0, -1)
        if held.delayed_topology_request != PENDING:
            result.kept = held.topology_assignment
        assignment.pod_sets.append(result)
    return assignment
