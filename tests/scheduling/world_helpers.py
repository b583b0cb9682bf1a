"""Short ways to build worlds, and to say what a cycle decided, in the words of the specification's examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scheduling.model.cluster_queue import (
    BorrowWithinCohort,
    ClusterQueue,
    ClusterQueuePreemption,
    FlavorFungibility,
)
from scheduling.model.cohort import Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.configuration import Configuration, FairSharing
from scheduling.model.decisions import CycleResult
from scheduling.model.local_queue import LocalQueue
from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import parse_amount
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import LabelSelector
from scheduling.model.topology import TopologyRequest
from scheduling.model.vocabulary import (
    BorrowWithinCohortPolicy,
    ConditionStatus,
    ConditionType,
    FungibilityPolicy,
    FungibilityPreference,
    PreemptionStrategy,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
)
from scheduling.model.workload import Admission, Condition, PodSet, PodSetAssignment, Workload
from scheduling.outlook import Outlook, decide_ahead, present_state
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World

NAMESPACE = "team"
Cell = int | str | tuple[int | str, int | str | None, int | str | None]
"""Nominal quota, or (nominal, borrowing limit, lending limit)."""
Requests = int | str | dict[str, Any] | list[PodSet]
"""Requests of one pod (a bare number is cpu), or whole pod sets."""
Quotas = Mapping[str, Cell | Mapping[str, Cell]]
"""Flavor -> cell of cpu, or flavor -> resource -> cell."""


def _quota(resource: str, cell: Cell) -> ResourceQuota:
    nominal, borrowing, lending = cell if isinstance(cell, tuple) else (cell, None, None)
    return ResourceQuota(
        parse_amount(resource, nominal),
        None if borrowing is None else parse_amount(resource, borrowing),
        None if lending is None else parse_amount(resource, lending),
    )


def group(quotas: Quotas) -> ResourceGroup:
    """A resource group; the flavors cover the same resources."""
    cells = {flavor: cell if isinstance(cell, Mapping) else {"cpu": cell} for flavor, cell in quotas.items()}
    covered = tuple(dict.fromkeys(resource for cell in cells.values() for resource in cell))
    return ResourceGroup(
        covered,
        tuple(
            FlavorQuotas(flavor, {resource: _quota(resource, quota) for resource, quota in cell.items()})
            for flavor, cell in cells.items()
        ),
    )


def preemption(
    within: str = "Never", reclaim: str = "Never", borrow: str = "Never", threshold: int | None = None
) -> ClusterQueuePreemption:
    """`spec.preemption` in Kueue's words."""
    return ClusterQueuePreemption(
        WithinClusterQueuePolicy(within),
        ReclaimWithinCohortPolicy(reclaim),
        BorrowWithinCohort(BorrowWithinCohortPolicy(borrow), threshold),
    )


def fungibility(borrow: str = "MayStopSearch", preempt: str = "TryNextFlavor", prefer: str = "") -> FlavorFungibility:
    """`spec.flavorFungibility` in Kueue's words."""
    preference = FungibilityPreference(prefer) if prefer else None
    return FlavorFungibility(FungibilityPolicy(borrow), FungibilityPolicy(preempt), preference)


class Builder:
    """A world under construction: flavors and LocalQueues come by themselves with the ClusterQueues that name them."""

    def __init__(self, *, fair: Sequence[str] | bool = False, **configuration: Any) -> None:
        strategies = [] if isinstance(fair, bool) else [PreemptionStrategy(strategy) for strategy in fair]
        if fair is not False:
            configuration["fair_sharing"] = FairSharing(tuple(strategies)) if strategies else FairSharing()
        self.world = World(Configuration(**configuration))
        self.world.set_namespace(NAMESPACE, {})
        self._flavors: set[str] = set()

    def flavor(self, name: str, **fields: Any) -> Builder:
        """A flavor with labels, taints or a topology."""
        self._flavors.add(name)
        self.world.set_resource_flavor(ResourceFlavor(name, **fields))
        return self

    def queue(
        self, name: str, quotas: Quotas | Sequence[Quotas], cohort: str = "", strict: bool = False, **fields: Any
    ) -> Builder:
        """A ClusterQueue and a LocalQueue of the same name."""
        groups = [quotas] if isinstance(quotas, Mapping) else quotas
        for flavor in (flavor for cells in groups for flavor in cells):
            if flavor not in self._flavors:
                self.flavor(flavor)
        fields.setdefault("namespace_selector", LabelSelector())
        strategy = QueueingStrategy.STRICT_FIFO if strict else QueueingStrategy.BEST_EFFORT_FIFO
        self.world.set_cluster_queue(
            ClusterQueue(name, cohort, tuple(group(cells) for cells in groups), strategy, **fields)
        )
        self.world.set_local_queue(LocalQueue(NAMESPACE, name, name))
        return self

    def cohort(self, name: str, parent: str = "", quotas: Quotas | None = None, **fields: Any) -> Builder:
        """A cohort with or without quota of its own."""
        groups = (group(quotas),) if quotas else ()
        self.world.set_cohort(Cohort(name, parent, groups, **fields))
        return self

    def pending(self, name: str, queue: str, cpu: Requests, **fields: Any) -> Builder:
        """A waiting workload."""
        self.world.set_workload(workload(name, queue, cpu, **fields), fields.get("now", 0.0))
        return self

    def running(self, name: str, queue: str, cpu: Requests, flavor: str = "default", **fields: Any) -> Builder:
        """An admitted workload of one pod set, all its resources in one flavor."""
        self.world.set_workload(admitted(workload(name, queue, cpu, **fields), queue, flavor), 0.0)
        return self


def pod_set(requests: int | str | Mapping[str, Any], count: int = 1, name: str = "main", **fields: Any) -> PodSet:
    """A pod set; `requests` of one pod, a bare number being cpu."""
    amounts = requests if isinstance(requests, Mapping) else {"cpu": requests}
    resources = {resource: str(amount) for resource, amount in amounts.items()}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": resources}}]}
    spec.update(fields.pop("spec", {}))
    manifest: dict[str, Any] = {"spec": spec}
    if "annotations" in fields:
        manifest["metadata"] = {"annotations": fields.pop("annotations")}
    topology = fields.pop("topology", None)
    return PodSet(
        name,
        count,
        PodTemplate.from_manifest(manifest),
        topology_request=TopologyRequest.from_manifest(topology),
        **fields,
    )


def workload(name: str, queue: str, cpu: Requests, **fields: Any) -> Workload:
    """A workload of one pod set (or of those given); `at` is its creation time, `now` is ignored."""
    fields.pop("now", None)
    keys = ("count", "min_count", "topology", "spec", "annotations")
    options = {key: fields.pop(key) for key in keys if key in fields}
    pod_sets = (pod_set(cpu, **options),) if isinstance(cpu, int | str | dict) else tuple(cpu)
    created_at = fields.pop("at", 0.0)
    return Workload(NAMESPACE, name, name, queue, pod_sets, created_at=created_at, **fields)


def admitted(pending: Workload, queue: str, flavor: str = "default", at: float = 0.0) -> Workload:
    """The workload with quota in a flavor, reserved and admitted at its creation or `at`."""
    assignments = tuple(
        PodSetAssignment(
            ps.name,
            ps.count,
            dict.fromkeys(ps.template.effective_requests(), flavor),
            {
                resource: parse_amount(resource, f"{amount}n") * ps.count
                for resource, amount in ps.template.effective_requests().items()
            },
        )
        for ps in pending.pod_sets
    )
    since = at or pending.created_at
    conditions = {
        type_: Condition(type_, ConditionStatus.TRUE, type_.value, "", since)
        for type_ in (ConditionType.QUOTA_RESERVED, ConditionType.ADMITTED)
    }
    fields = {name: getattr(pending, name) for name in pending.__slots__}
    fields |= {"admission": Admission(queue, assignments), "conditions": conditions}
    return Workload(**fields)


def names(keys: Any) -> list[str]:
    """Workload names without the namespace, sorted."""
    return sorted(key.removeprefix(f"{NAMESPACE}/") for key in keys)


def admissions(result: CycleResult) -> list[str]:
    """Who was admitted."""
    return names(decision.workload for decision in result.admissions)


def preemptions(result: CycleResult) -> dict[str, str]:
    """Who was preempted, and why."""
    return {p.workload.removeprefix(f"{NAMESPACE}/"): p.reason.value for p in result.preemptions}


def outcomes(result: CycleResult) -> dict[str, str]:
    """Why the others wait, those only whose reason or message is new."""
    return {o.workload.removeprefix(f"{NAMESPACE}/"): o.reason.value for o in result.outcomes}


def messages(result: CycleResult) -> dict[str, str]:
    """The messages of the same."""
    return {o.workload.removeprefix(f"{NAMESPACE}/"): o.message for o in result.outcomes}


def flavors(result: CycleResult, name: str) -> dict[str, str]:
    """Resource -> flavor of an admitted workload with one pod set."""
    found = next(a for a in result.admissions if a.workload == f"{NAMESPACE}/{name}")
    return dict(found.pod_sets[0].flavors)


def cycle(world: World, now: float = 1000.0) -> CycleResult:
    """One cycle."""
    return world.run_cycle(now)


def settled(world: World, now: float = 1000.0, *, stop: bool = True) -> list[CycleResult]:
    """Cycles until nothing more happens; with `stop`, preempted workloads stop after each."""
    results = []
    for result in run_until_idle(world, now):
        results.append(result)
        for decision in result.preemptions if stop else ():
            world.release_workload(decision.workload, now)
    return results


def reason_of(world: World, name: str) -> str:
    """The reason of QuotaReserved=False."""
    found = world.workload(f"{NAMESPACE}/{name}")
    assert found is not None
    condition = found.condition(ConditionType.QUOTA_RESERVED)
    return condition.reason if condition is not None and condition.status is ConditionStatus.FALSE else ""


def look_ahead(world: World, now: float, go_on: Callable[[], bool] = lambda: True) -> Outlook:
    """Return the outlook with its loads, and undo the cycles."""
    point = world.savepoint()
    try:
        loads, inactive = present_state(world)
        return replace(decide_ahead(world, now, go_on), loads=loads, inactive=inactive)
    finally:
        world.undo(point)
