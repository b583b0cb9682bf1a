"""Explains as data why a workload waits: the deciding rule, what each flavor lacks, which nodes and devices refuse
it, what is ahead of it, and what holds the missing resources.

Read only, and computed from the present state: what a cycle would find now, not what the last one found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from itertools import islice, product

from scheduling.advice.waiting_rules import (
    BEYOND_EMPTY_NODES,
    BEYOND_USER_LIMIT,
    NEVER,
    OF_NODES,
    REMEDIES,
    RULES,
    UNPLANNED,
    Rule,
    WaitState,
)
from scheduling.cycle.assignment import SEVERITY, Mode, Refusal, RefusalKind
from scheduling.cycle.closed_nodes import closing_windows_in
from scheduling.cycle.explain import describe_refusals
from scheduling.cycle.flavor_topology import topology_request
from scheduling.cycle.nomination import Entry
from scheduling.cycle.planned_starts import PlannedStart
from scheduling.cycle.preemption import Target
from scheduling.cycle.reservation_refusals import limit_to_start
from scheduling.cycle.wiring import CycleParts
from scheduling.model.placement import NodeFilters, RefusedBy
from scheduling.model.resources import PODS, FlavorResource
from scheduling.model.vocabulary import ConditionType, PendingReason, QueueingStrategy
from scheduling.policies.multifactor import PriorityFactors
from scheduling.quota.cells import Cell
from scheduling.reservations.reserved_nodes import ReservedWindow
from scheduling.state.cluster_queue import ClusterQueueState, FlavorSlot, GroupState
from scheduling.state.state import State
from scheduling.state.workload_info import PodSetRequests, QueueState, WorkloadInfo

MAX_AHEAD = 20
MAX_HOLDERS = 10
MAX_CHOICES = 16
"""With more choices of flavors, a pod set is assumed to fit on empty nodes, because a user waits for the answer."""
MAX_CONTENDERS = 64
"""At most this many heads of other ClusterQueues are nominated to find their order. Each costs as much as in a
cycle."""


@dataclass(frozen=True, slots=True)
class ResourceNeed:
    """One resource in one flavor, in base units.

    `free` is what the workload could still use, including borrowing; `borrowable` is the part of it beyond the
    ClusterQueue's own quota; `maximum` is the most that it could ever have. `deserved`: the quota that the cohort's
    sharing policy gives to the ClusterQueue now; None without a policy.
    """

    resource: str
    asked: int
    nominal: int
    used: int
    borrowable: int
    free: int
    lacking: int
    maximum: int
    deserved: int | None = None


@dataclass(frozen=True, slots=True)
class FlavorVerdict:
    """One flavor for one group of pod sets: the rule that refuses it (`Rule.NONE`: none), and the figures of each
    resource."""

    pod_sets: tuple[str, ...]
    flavor: str
    rule: Rule
    message: str
    resources: tuple[ResourceNeed, ...]
    nodes: NodeFilters | None = None
    domains: int = 0
    """The number of domains of its topology; 0 without one."""
    domains_refused: Mapping[str, int] = field(default_factory=dict)
    """Reason -> the number of the topology's domains without room for a pod."""


@dataclass(frozen=True, slots=True)
class Waiting:
    workload: str
    cluster_queue: str
    priority: int


@dataclass(frozen=True, slots=True)
class QueueHolder:
    """A ClusterQueue that uses the resources that the workload lacks; amounts in base units."""

    flavor: str
    resource: str
    cluster_queue: str
    used: int
    nominal: int
    borrowed: int


@dataclass(frozen=True, slots=True)
class WorkloadHolder:
    """A workload that holds the resources that the workload lacks; `amount` in base units."""

    flavor: str
    resource: str
    workload: str
    cluster_queue: str
    priority: int
    amount: int


@dataclass(frozen=True, slots=True)
class Victim:
    """A workload that would be preempted, and the rule that allows it."""

    workload: str
    cluster_queue: str
    priority: int
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation why a workload waits.

    `position` counts from 1 in its ClusterQueue (0: it is in no queue). `ahead` are the first of the workloads before
    it; `contenders` are the heads of the cohort's other ClusterQueues that a cycle decides before it.
    """

    state: WaitState
    rule: Rule
    reason: str
    message: str
    remedy: str = ""
    cluster_queue: str = ""
    strict: bool = False
    """Whether no workload of its ClusterQueue may overtake those ahead (StrictFIFO)."""
    position: int = 0
    waiting: int = 0
    ahead: tuple[Waiting, ...] = ()
    contenders: tuple[Waiting, ...] = ()
    flavors: tuple[FlavorVerdict, ...] = ()
    queue_holders: tuple[QueueHolder, ...] = ()
    workload_holders: tuple[WorkloadHolder, ...] = ()
    victims: tuple[Victim, ...] = ()
    factors: PriorityFactors | None = None
    """The parts of its multifactor priority, as of the last calculation; None if its class orders it."""
    planned_start: PlannedStart | None = None
    """The workload's own planned start (backfill), which others must not delay."""
    would_delay: PlannedStart | None = None
    """The planned start that it would delay if it started now."""
    reservations: tuple[ReservedWindow, ...] = ()
    """The windows of reservations that close nodes to it, in order of their ends, if its rule is RESERVATION."""
    limit_to_start: int | None = None
    """The longest declared time limit, in seconds, with which it would start now beside these reservations."""


def explain(state: State, parts: CycleParts, key: str, variants: Sequence[str] = ()) -> Explanation:
    """Explain why the workload waits: by its variants, if it has some (concurrent admission). Raises KeyError for an
    unknown workload."""
    info = state.workloads[key]
    if variants and info.workload.admission is None:
        return _of_variants([(state.workloads[each], explain(state, parts, each)) for each in variants])
    if variants:
        queue = info.workload.admission.cluster_queue if info.workload.admission is not None else ""
        return Explanation(WaitState.HOLDS_QUOTA, Rule.NONE, "", "It holds quota.", cluster_queue=queue)
    if info.queue_state is QueueState.RESERVING:
        return Explanation(WaitState.HOLDS_QUOTA, Rule.NONE, "", "It holds quota.", cluster_queue=info.cluster_queue)
    cq = state.cluster_queues.get(info.cluster_queue)
    if info.queue_state is QueueState.NOWHERE or cq is None or not cq.active:
        return _not_queued(info, cq)
    entry = parts.nominate(info, cq)
    if entry.refused:
        known = WaitState.CANNOT_START if entry.reason is PendingReason.MISCONFIGURED else WaitState.WAITS
        order = _Order(state, parts, info, cq)
        return order.explanation(known, Rule.VALIDATION, str(entry.reason), _sentence(entry.message))
    return _Search(state, parts, info, cq, entry).explanation()


_BEST_FIRST = (
    WaitState.HOLDS_QUOTA, WaitState.FITS_NOW, WaitState.PREEMPTS, WaitState.WAITS, WaitState.CANNOT_START,
    WaitState.NOT_QUEUED,
)  # fmt: skip


def _of_variants(found: Sequence[tuple[WorkloadInfo, Explanation]]) -> Explanation:
    """Return the explanation of the variant that is nearest to its start, with the verdict and the sentence of each."""
    _, best = min(found, key=lambda each: _BEST_FIRST.index(each[1].state))
    verdicts = [
        verdict for info, each in found for verdict in each.flavors if verdict.flavor == info.workload.variant_flavor
    ]
    said = " ".join(f"{info.workload.variant_flavor}: {each.message}" for info, each in found)
    return replace(best, message=f"Its variants pursue one flavor each. {said}", flavors=tuple(verdicts))


def _not_queued(info: WorkloadInfo, cq: ClusterQueueState | None) -> Explanation:
    if cq is not None and info.queue_state is not QueueState.NOWHERE:
        reason, message = str(cq.inactive_reason), f"ClusterQueue {cq.name}: {cq.inactive_message}"
    else:
        said = info.current().condition(ConditionType.QUOTA_RESERVED)
        reason = said.reason if said is not None else ""
        message = said.message if said is not None else "Not evaluated yet."
    return Explanation(
        WaitState.NOT_QUEUED, Rule.QUEUEING, str(reason), _sentence(message), cluster_queue=cq.name if cq else ""
    )


class _Order:
    """The workloads ahead of a workload."""

    def __init__(self, state: State, parts: CycleParts, info: WorkloadInfo, cq: ClusterQueueState) -> None:
        self._state = state
        self._parts = parts
        self._info = info
        self._cq = cq
        self._queue = cq.queue.in_order()
        self.place = next(number for number, other in enumerate(self._queue) if other is info)

    def explanation(
        self,
        state: WaitState,
        rule: Rule,
        reason: str,
        message: str,
        *,
        flavors: tuple[FlavorVerdict, ...] = (),
        queue_holders: tuple[QueueHolder, ...] = (),
        workload_holders: tuple[WorkloadHolder, ...] = (),
        victims: tuple[Victim, ...] = (),
        remedy: str = "",
        planned_start: PlannedStart | None = None,
        would_delay: PlannedStart | None = None,
        reservations: tuple[ReservedWindow, ...] = (),
        limit_to_start: int | None = None,
    ) -> Explanation:
        """Return the explanation, completed with the order of the queue and of the cohort. `remedy` replaces the rule's
        remedy."""
        return Explanation(
            state=state,
            rule=rule,
            reason=reason,
            message=message,
            remedy=remedy or REMEDIES.get(rule, ""),
            cluster_queue=self._cq.name,
            strict=self._cq.spec.queueing_strategy is QueueingStrategy.STRICT_FIFO,
            position=self.place + 1,
            waiting=len(self._queue),
            ahead=tuple(_waiting(other) for other in self._queue[: self.place][:MAX_AHEAD]),
            contenders=tuple(self._contenders()),
            flavors=flavors,
            queue_holders=queue_holders,
            workload_holders=workload_holders,
            victims=victims,
            factors=self._state.multifactor.factors(self._info, self._cq),
            planned_start=planned_start,
            would_delay=would_delay,
            reservations=reservations,
            limit_to_start=limit_to_start,
        )

    def _contenders(self) -> Iterator[Waiting]:
        """Yield the heads of the cohort's other ClusterQueues that are decided before the head of its own."""
        entries: list[Entry] = []
        for cq in self._state.tree_of(self._cq)[:MAX_CONTENDERS]:
            head = next(iter(cq.queue.in_order()), None) if cq is not self._cq else self._queue[0]
            if head is not None and cq.active:
                entries.append(self._parts.nominate(head, cq))
        for entry in self._parts.in_order(entries):
            if entry.cq is self._cq:
                return
            yield _waiting(entry.info)


class _Search:
    """The flavors that a ClusterQueue offers to a workload that may be admitted there."""

    def __init__(
        self, state: State, parts: CycleParts, info: WorkloadInfo, cq: ClusterQueueState, entry: Entry
    ) -> None:
        self._state = state
        self._parts = parts
        self._info = info
        self._cq = cq
        self._entry = entry
        self._refusals = [refusal for group in entry.assignment.refusals for refusal in group]

    def explanation(self) -> Explanation:
        """Return the flavors, the missing resources, and the workloads that hold them."""
        mode = self._entry.assignment.mode
        order = _Order(self._state, self._parts, self._info, self._cq)
        if mode is Mode.FIT:
            return order.explanation(
                WaitState.FITS_NOW,
                Rule.QUEUE_ORDER,
                str(PendingReason.PENDING_EVALUATION),
                "Quota and devices are free for it.",
                flavors=tuple(self._flavors()),
            )
        assignment = self._entry.assignment
        reason = assignment.no_fit_reason if mode is Mode.NO_FIT else assignment.reason_without_victims
        rule = self._rule()
        never = rule in NEVER or reason is PendingReason.TOPOLOGY_PLACEMENT_FAILED
        flavors = tuple(self._flavors())
        lacking = {
            FlavorResource(verdict.flavor, need.resource): None
            for verdict in flavors
            for need in verdict.resources
            if need.lacking and verdict.rule in (Rule.QUOTA, Rule.MAXIMUM_QUOTA)
        }
        victims = tuple(_victim(target) for target in self._entry.targets)
        remedy = ""
        if rule is Rule.USER_LIMIT and reason is PendingReason.EXCEEDS_MAX_QUOTA:
            never = True
            remedy = BEYOND_USER_LIMIT
        if not victims and not never and rule in OF_NODES and self._exceeds_empty_nodes(flavors):
            never = True
            remedy = BEYOND_EMPTY_NODES
        closed = [verdict.flavor for verdict in flavors if verdict.rule is Rule.RESERVATION]
        reserved = tuple(closing_windows_in(self._state, self._info, closed)) if rule is Rule.RESERVATION else ()
        limit = limit_to_start(self._state, self._info, reserved, self._fits_now) if reserved else None
        if limit is not None:
            remedy = f"{REMEDIES[rule]} With a time limit of at most {limit:,} seconds it would start now."
        planned, unplanned = self._planned_start(rule) if not victims and not never else (None, "")
        return order.explanation(
            WaitState.PREEMPTS if victims else WaitState.CANNOT_START if never else WaitState.WAITS,
            rule,
            str(reason),
            _sentence(describe_refusals(self._entry.assignment)) + unplanned,
            flavors=flavors,
            queue_holders=tuple(self._queue_holders(lacking)),
            workload_holders=tuple(self._workload_holders(lacking)),
            victims=victims,
            remedy=remedy,
            planned_start=planned,
            would_delay=self._would_delay() if rule is Rule.PLANNED_START else None,
            reservations=reserved,
            limit_to_start=limit,
        )

    def _fits_now(self) -> bool:
        return self._parts.nominate(self._info, self._cq).assignment.mode is Mode.FIT

    def _planned_start(self, rule: Rule) -> tuple[PlannedStart | None, str]:
        """Return its protected planned start, or a sentence why it has none; neither without backfill."""
        if self._cq.spec.backfill is None or rule in (Rule.PLANNED_START, Rule.USER_LIMIT):
            return None, ""
        found = self._parts.planner.planned_start(self._info, self._cq)
        if found is not None:
            return found, ""
        if self._parts.planner.plans_before(self._info, self._cq):
            return None, " Its start is not planned: only the first workload that waits has a planned start."
        return None, UNPLANNED

    def _would_delay(self) -> PlannedStart | None:
        return self._parts.planner.delayed_by(self._info, self._cq, self._entry.assignment)

    def _exceeds_empty_nodes(self, verdicts: Sequence[FlavorVerdict]) -> bool:
        """Return whether some pod set has no choice of flavors whose nodes would take it even if they were empty. A
        choice is one flavor of each resource group that it requests."""
        flavors: dict[str, dict[int, list[str]]] = {}
        for verdict in verdicts:
            for name in verdict.pod_sets if verdict.resources else ():
                group = id(self._cq.group_of[verdict.resources[0].resource])
                open_to_it = flavors.setdefault(name, {}).setdefault(group, [])
                if verdict.rule not in NEVER:
                    open_to_it.append(verdict.flavor)
        pod_sets = {each.name: each for each in self._info.pod_sets}
        return any(not self._fits_empty(pod_sets[name], groups.values()) for name, groups in flavors.items())

    def _fits_empty(self, pod_set: PodSetRequests, groups: Iterable[Sequence[str]]) -> bool:
        choices = list(islice(product(*groups), MAX_CHOICES + 1))
        return len(choices) > MAX_CHOICES or any(
            self._parts.fits_empty_nodes(self._info, self._cq, pod_set, choice) for choice in choices
        )

    def _rule(self) -> Rule:
        """Return the mildest refusal of the pod set group that is refused worst."""
        worst: Refusal | None = None
        for refusals in self._entry.assignment.refusals:
            mildest = min(refusals, key=lambda refusal: (SEVERITY[refusal.reason], -refusal.kind), default=None)
            if mildest is not None and (worst is None or SEVERITY[mildest.reason] > SEVERITY[worst.reason]):
                worst = mildest
        return RULES[worst.kind] if worst is not None else Rule.QUOTA

    def _flavors(self) -> Iterator[FlavorVerdict]:
        taken: dict[Cell, int] = {}
        results = {result.name: result for result in self._entry.assignment.pod_sets}
        for indexes in self._info.groups:
            pod_sets = [self._info.pod_sets[index] for index in indexes]
            requests = _total(pod_sets, PODS in self._cq.group_of)
            for group in self._cq.groups:
                asked = {name: requests[name] for name in group.covered if requests.get(name)}
                for slot in group.flavors if asked else ():
                    yield self._verdict(pod_sets, group, slot, asked, taken)
            for pod_set in pod_sets:
                result = results.get(pod_set.name)
                for resource, choice in result.flavors.items() if result is not None else ():
                    if choice.cell is not None and result is not None:
                        taken[choice.cell] = taken.get(choice.cell, 0) + result.requests.get(resource, 0)

    def _verdict(
        self,
        pod_sets: Sequence[PodSetRequests],
        group: GroupState,
        slot: FlavorSlot,
        asked: Mapping[str, int],
        taken: Mapping[Cell, int],
    ) -> FlavorVerdict:
        names = tuple(pod_set.name for pod_set in pod_sets)
        needs = tuple(
            _need(resource, amount, cell, taken.get(cell, 0), self._info.may_borrow)
            for resource, amount in asked.items()
            if (cell := slot.cells.get(resource)) is not None
        )
        problem = self._mismatch(pod_sets, group, slot)
        if problem is not None:
            return FlavorVerdict(names, slot.name, Rule.FLAVOR_MATCH, _sentence(problem), needs)
        domains, domains_refused = self._domains(pod_sets, slot)
        nodes = self._parts.filters(self._info, self._cq, self._with_others(group, slot))
        rule, message = self._flavor_rule(slot, needs, nodes)
        return FlavorVerdict(names, slot.name, rule, message, needs, nodes, domains, domains_refused)

    def _mismatch(self, pod_sets: Sequence[PodSetRequests], group: GroupState, slot: FlavorSlot) -> str | None:
        allowed = self._info.workload.allowed_flavors
        if allowed and slot.name not in allowed:
            return f"the workload allows only the flavors {', '.join(allowed)}"
        problems = (self._state.matcher.mismatch(self._cq, pod_set, group, slot) for pod_set in pod_sets)
        return next((problem for problem in problems if problem is not None), None)

    def _flavor_rule(
        self, slot: FlavorSlot, needs: Sequence[ResourceNeed], nodes: NodeFilters | None
    ) -> tuple[Rule, str]:
        if any(need.asked > need.maximum for need in needs):
            return Rule.MAXIMUM_QUOTA, ""
        if any(need.lacking for need in needs):
            return Rule.QUOTA, ""
        for refusal in self._refusals:
            if refusal.kind is RefusalKind.RESERVATION and refusal.flavor in ("", slot.name):
                return Rule.RESERVATION, _sentence(refusal.text)
        if nodes is not None:
            return _rule_of_nodes(nodes), nodes.message
        for refusal in self._refusals:
            if refusal.kind is RefusalKind.TOPOLOGY and refusal.flavor == slot.name:
                return Rule.TOPOLOGY, _sentence(refusal.text)
        return Rule.NONE, ""

    def _with_others(self, group: GroupState, slot: FlavorSlot) -> list[str]:
        """Return the flavor and those found for the other resource groups, whose labels select nodes, too."""
        others = {
            choice.flavor
            for result in self._entry.assignment.pod_sets
            for resource, choice in result.flavors.items()
            if self._cq.group_of.get(resource) is not group
        }
        return [slot.name, *sorted(others - {slot.name})]

    def _domains(self, pod_sets: Sequence[PodSetRequests], slot: FlavorSlot) -> tuple[int, dict[str, int]]:
        flavor = self._state.topology_flavors.get(slot.name)
        if flavor is None:
            return 0, {}
        refused: dict[str, int] = {}
        for pod_set in pod_sets:
            refused |= flavor.exclusions(topology_request(pod_set, self._state.device_resources()))
        return flavor.leaf_count, refused

    def _queue_holders(self, lacking: Iterable[FlavorResource]) -> Iterator[QueueHolder]:
        for key in lacking:
            found = []
            for cq in self._state.tree_of(self._cq):
                cell = cq.node.cells.get(key)
                if cell is not None and cell.usage > 0:
                    found.append((cell, cq.name))
            for cell, name in nlargest(MAX_HOLDERS, found, key=lambda item: (item[0].usage, item[1])):
                borrowed = max(0, cell.usage - cell.subtree)
                yield QueueHolder(key.flavor, key.resource, name, cell.usage, cell.nominal, borrowed)

    def _workload_holders(self, lacking: Iterable[FlavorResource]) -> Iterator[WorkloadHolder]:
        wanted = dict.fromkeys(lacking)
        held: dict[FlavorResource, list[tuple[int, WorkloadInfo]]] = {key: [] for key in wanted}
        for cq in self._state.tree_of(self._cq):
            for info in cq.workloads.values():
                for cell, amount in info.usage:
                    if cell.key in held and amount > 0:
                        held[cell.key].append((amount, info))
        for key, found in held.items():
            for amount, info in nlargest(MAX_HOLDERS, found, key=lambda item: (item[0], -item[1].priority)):
                yield WorkloadHolder(key.flavor, key.resource, info.key, info.cluster_queue, info.priority, amount)


def _need(resource: str, asked: int, cell: Cell, taken: int, may_borrow: bool) -> ResourceNeed:
    free = max(0, cell.room(borrowing=may_borrow) - taken)
    own = max(0, cell.subtree - cell.usage - taken)
    return ResourceNeed(
        resource=resource,
        asked=asked,
        nominal=cell.nominal,
        used=cell.usage,
        borrowable=max(0, free - own),
        free=free,
        lacking=max(0, asked - free),
        maximum=max(0, (cell.potential if may_borrow else min(cell.potential, cell.subtree)) - taken),
        deserved=cell.deserved,
    )


def _total(pod_sets: Iterable[PodSetRequests], with_pods: bool) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod_set in pod_sets:
        for name, amount in pod_set.requests.items():
            total[name] = total.get(name, 0) + amount
        if with_pods:
            total[PODS] = total.get(PODS, 0) + pod_set.count
    return total


def _waiting(info: WorkloadInfo) -> Waiting:
    return Waiting(info.key, info.cluster_queue, info.priority)


def _victim(target: Target) -> Victim:
    return Victim(target.info.key, target.info.cluster_queue, target.info.priority, str(target.reason))


def _sentence(text: str) -> str:
    """Return the text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def _rule_of_nodes(nodes: NodeFilters) -> Rule:
    if nodes.lacks_room:
        return Rule.NODES
    return Rule.NAMESPACE_QUOTA if nodes.namespace_quota else Rule.DEVICES


__all__ = ["Explanation", "FlavorVerdict", "NodeFilters", "RefusedBy", "ResourceNeed", "Rule", "WaitState", "explain"]
