"""The rules that make a workload wait, and the sentences that tell when it starts."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from scheduling.cycle.assignment import RefusalKind


class WaitState(StrEnum):
    """The state of a workload that may wait: it has or fits its quota, others must end first, or it can never start."""

    HOLDS_QUOTA = "HoldsQuota"
    """It waits for no quota: it runs, or its checks or pods are not ready yet."""
    FITS_NOW = "FitsNow"
    """Nothing is missing: the next cycle that reaches it admits it."""
    PREEMPTS = "Preempts"
    """It fits once the workloads that it may preempt have stopped."""
    WAITS = "Waits"
    """It fits once other workloads end, or another rule lets it pass."""
    CANNOT_START = "CannotStart"
    """It can never start unless the request or the configuration changes."""
    NOT_QUEUED = "NotQueued"
    """It has ended, or no queue has it."""


class Rule(StrEnum):
    """The rule that makes the workload wait."""

    NONE = "None"
    """No rule: it fits, or it holds quota."""
    QUEUEING = "Queueing"
    """The workload is on hold, gated or backs off, or its LocalQueue or ClusterQueue does not admit."""
    VALIDATION = "Validation"
    """Namespace selector, LimitRange, resource limits, device request, admission check, or the replaced slice."""
    COVERED_RESOURCES = "CoveredResources"
    """It requests a resource that no resource group of its ClusterQueue covers."""
    FLAVOR_MATCH = "FlavorMatch"
    """The taints or node labels of every flavor exclude its pods."""
    TOPOLOGY_FLAVOR = "TopologyFlavor"
    """A pod set needs a topology, but its flavors do not include exactly one with a topology."""
    MAXIMUM_QUOTA = "MaximumQuota"
    """It requests more than an idle cohort would give, so that waiting cannot help."""
    QUOTA = "Quota"
    """Other workloads hold the quota."""
    TOPOLOGY = "Topology"
    """Quota is free, but no topology domain takes the pods together."""
    DEVICES = "Devices"
    """Quota is free, but no node has the free devices."""
    NODES = "Nodes"
    """Quota is free, but no node has room for pods without devices."""
    NAMESPACE_QUOTA = "NamespaceQuota"
    """The ResourceQuota of its namespace leaves too few devices."""
    USER_LIMIT = "UserLimit"
    """With it, its user would hold more than its ClusterQueue, or a cohort above, allows one user."""
    PLANNED_START = "PlannedStart"
    """It would fit, but it would delay the planned start of a workload before it (backfill)."""
    RESERVATION = "Reservation"
    """It needs nodes that a reservation keeps free for others, and it may run into a window of it."""
    QUEUE_ORDER = "QueueOrder"
    """It would fit, but workloads before it have their turn first."""


RULES: Final = {
    RefusalKind.MISMATCH: Rule.FLAVOR_MATCH,
    RefusalKind.UNAVAILABLE: Rule.COVERED_RESOURCES,
    RefusalKind.EXCEEDS_MAXIMUM: Rule.MAXIMUM_QUOTA,
    RefusalKind.LACKS: Rule.QUOTA,
    RefusalKind.TOPOLOGY: Rule.TOPOLOGY,
    RefusalKind.DEVICES: Rule.DEVICES,
    RefusalKind.NODES: Rule.NODES,
    RefusalKind.NAMESPACE_QUOTA: Rule.NAMESPACE_QUOTA,
    RefusalKind.NO_TOPOLOGY: Rule.TOPOLOGY_FLAVOR,
    RefusalKind.USER_LIMIT: Rule.USER_LIMIT,
    RefusalKind.PLANNED_START: Rule.PLANNED_START,
    RefusalKind.RESERVATION: Rule.RESERVATION,
}
"""The rule behind each kind of refusal."""
REMEDIES: Final = {
    Rule.NAMESPACE_QUOTA: "It starts when pods of its namespace end, its ResourceQuota is raised, or it requests less.",
    Rule.USER_LIMIT: "It starts when other workloads of its user end, or the limit is raised.",
    Rule.PLANNED_START: "It starts after the planned one, when other workloads end early, or when it declares a time "
    "limit that ends before the planned start.",
    Rule.RESERVATION: "It starts when the window ends, or when other nodes become free.",
    Rule.NODES: "It starts when nodes have room for its pods, or when it requests less.",
    Rule.DEVICES: "It starts when enough devices become free, or when it requests less.",
    Rule.TOPOLOGY: "It starts when enough room becomes free within the requested topology.",
    Rule.QUOTA: "It starts when the missing quota becomes free.",
    Rule.MAXIMUM_QUOTA: "It can never start unless it requests less, or the quota or the borrowing limit is raised.",
    Rule.COVERED_RESOURCES: "It can never start unless the ClusterQueue covers these resources, or the workload does "
    "not request them.",
    Rule.FLAVOR_MATCH: "It can never start unless its node selector, affinity and tolerations match a flavor of the "
    "ClusterQueue.",
    Rule.TOPOLOGY_FLAVOR: "It can never start unless each pod set that needs a topology gets exactly one flavor that "
    "has one.",
    Rule.QUEUE_ORDER: "It starts when the workloads ahead of it are admitted.",
}
"""The sentence for each rule that tells when the workload starts."""
UNPLANNED: Final = (
    " Its start cannot be planned: it would not fit even after the end of all workloads that declare a time limit. So "
    "it holds no other workload back."
)
OF_NODES: Final = frozenset({Rule.DEVICES, Rule.NODES})
"""Rules that depend on the room of nodes."""
BEYOND_USER_LIMIT: Final = "It can never start unless it requests less, or the limit of its user is raised."
BEYOND_EMPTY_NODES: Final = "It can never start on the present nodes, even if they were empty, unless it requests less."
NEVER: Final = frozenset({Rule.MAXIMUM_QUOTA, Rule.COVERED_RESOURCES, Rule.FLAVOR_MATCH, Rule.TOPOLOGY_FLAVOR})
"""Rules that no end of another workload changes."""
