"""Kueue's flavor assigner: chooses a flavor for each resource of each pod set, and grades how well it fits.

Pod sets are assigned group by group (a group shares flavors); usage of the workload's earlier groups counts for later
groups. For each resource group, flavors are tried in order, from where the last attempt stopped, until one satisfies
the ClusterQueue's flavor fungibility.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from scheduling.cycle.assignment import Assignment, Choice, Mode, PodSetResult, Refusal, RefusalKind
from scheduling.cycle.flavor_devices import DeviceAssigner
from scheduling.model.resources import PODS
from scheduling.model.vocabulary import (
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    FungibilityPreference,
    PendingReason,
    ReclaimWithinCohortPolicy,
)
from scheduling.quota.cells import Cell
from scheduling.state.cluster_queue import ClusterQueueState, FlavorSlot, GroupState
from scheduling.state.flavor_matching import FlavorMatcher
from scheduling.state.workload_info import PodSetRequests, WorkloadInfo

Pins = Sequence[Mapping[str, str]]
"""Per pod set, the nominated flavor of each resource. A recomputation may use no other."""

MAY_NOT_BORROW = "a workload that is never preempted may not borrow"

_UNEXPLAINED = Refusal(RefusalKind.DEVICES, PendingReason.WAITING_FOR_DEVICES)
"""A flavor that has quota but no place for the pods. Most are not explained, because another flavor fits."""

NO_FIT, NO_CANDIDATES, PREEMPT, RECLAIM, FIT = Mode.NO_FIT, Mode.NO_CANDIDATES, Mode.PREEMPT, Mode.RECLAIM, Mode.FIT


class Oracle(Protocol):
    """Decides whether preemption could make room in one cell."""

    def __call__(
        self, cq: ClusterQueueState, info: WorkloadInfo, cell: Cell, amount: int, level: int
    ) -> tuple[Mode, int]:
        """Return NO_CANDIDATES, PREEMPT or RECLAIM, and the borrowing level after the victims are gone."""


class FlavorAssigner:
    """Assigns flavors against the current usage, without changing it."""

    def __init__(
        self,
        matcher: FlavorMatcher,
        oracle: Oracle,
        devices: DeviceAssigner,
        *,
        ignore_undeclared: bool,
        fair_sharing: bool,
        fungible: bool = True,
    ) -> None:
        """`ignore_undeclared`: do not check resources that no resource group covers. `fungible`: apply the
        ClusterQueue's flavor fungibility; otherwise take the first flavor that fits, or else the first flavor with
        the best mode."""
        self._matcher = matcher
        self._devices = devices
        self._oracle = oracle
        self._ignore_undeclared = ignore_undeclared
        self._fair_sharing = fair_sharing
        self.fungible = fungible

    def assign(
        self,
        cq: ClusterQueueState,
        info: WorkloadInfo,
        pod_sets: Sequence[PodSetRequests],
        pins: Pins | None = None,
    ) -> Assignment:
        """Assign flavors to the pod sets, whose counts may be reduced. Stop at the first group that does not fit."""
        assignment = Assignment()
        for group in info.groups:
            members = [pod_sets[index] for index in group]
            results = [PodSetResult(ps, _with_pods(ps, cq)) for ps in members]
            assignment.pod_sets.extend(results)
            search = _GroupSearch(self, cq, info, assignment, results, group, pins)
            if not search.run():  # a workload is admitted whole, so the other groups cannot help
                break
        assignment.mode = min((ps.mode for ps in assignment.pod_sets), default=FIT)
        if assignment.mode is not NO_FIT and (cq.topology_only or info.asks_for_topology):
            self._require_topologies(cq, assignment)
        return assignment

    def _require_topologies(self, cq: ClusterQueueState, assignment: Assignment) -> None:
        """Refuse a pod set that needs a topology unless exactly one of its flavors has one."""
        for result in assignment.pod_sets:
            # A pod set without pods has none to place, and takes whichever flavor it got.
            if result.pod_set.count == 0 or not self._matcher.needs_topology(cq, result.pod_set):
                continue
            names = self._matcher.with_topology(choice.flavor for choice in result.flavors.values())
            if len(names) != 1:
                assignment.refusals.append([_topology_refusal(result.name, names)])
                result.fits = False
                assignment.mode = NO_FIT

    def fit(
        self, cq: ClusterQueueState, info: WorkloadInfo, cell: Cell, wanted: int, refusals: list[Refusal], *, ask: bool
    ) -> tuple[Mode, int]:
        """Return how well an amount fits one cell, and its borrowing level. Without `ask`, an amount that does not
        fit counts as having no preemption candidates."""
        if not info.may_borrow:
            return self._fit_own_quota(cq, info, cell, wanted, refusals, ask=ask)
        available = max(0, cell.available())
        if wanted <= available and wanted <= cell.potential:
            return FIT, 0 if cell.usage + wanted <= cell.subtree else cell.borrow_level(wanted)[0]
        level, may_reclaim = cell.borrow_level(wanted)
        if wanted > cell.potential:  # not even an idle cohort has that much
            refusals.append(_refusal(RefusalKind.EXCEEDS_MAXIMUM, cell, wanted, cell.potential))
            return NO_FIT, level
        # A preemptor needs a claim to the quota: its own nominal quota, that of its part of the tree, or a policy.
        preemptible = cell.nominal >= wanted or may_reclaim or self._can_preempt_while_borrowing(cq)
        refusals.append(_refusal(RefusalKind.LACKS, cell, wanted, available, preemptible))
        if not preemptible:
            return NO_FIT, level
        if not ask or not cq.can_preempt:
            return NO_CANDIDATES, level
        return self._oracle(cq, info, cell, wanted, level)

    def _fit_own_quota(
        self, cq: ClusterQueueState, info: WorkloadInfo, cell: Cell, wanted: int, refusals: list[Refusal], *, ask: bool
    ) -> tuple[Mode, int]:
        """Do the work of `fit` for a workload that is never reclaimed. It must not borrow, because the lender could not
        get the quota back.

        An amount that fits the ClusterQueue's own quota also fits every cohort above, which has at least the quota that
        its ClusterQueues lend.
        """
        available = max(0, cell.room(borrowing=False))
        if wanted <= available:
            return FIT, 0
        most = min(cell.potential, cell.kept)
        if wanted > most:
            refusal = _refusal(RefusalKind.EXCEEDS_MAXIMUM, cell, wanted, most)
            refusals.append(refusal._replace(text=MAY_NOT_BORROW))
            return NO_FIT, 0
        refusal = _refusal(RefusalKind.LACKS, cell, wanted, available, preemptible=True)
        refusals.append(refusal._replace(text=MAY_NOT_BORROW))
        if not ask or not cq.can_preempt:
            return NO_CANDIDATES, 0
        return self._oracle(cq, info, cell, wanted, 0)

    def _can_preempt_while_borrowing(self, cq: ClusterQueueState) -> bool:
        preemption = cq.spec.preemption
        if preemption.borrow_within_cohort.policy is not BorrowWithinCohortPolicy.NEVER:
            return True
        return self._fair_sharing and preemption.reclaim_within_cohort is not ReclaimWithinCohortPolicy.NEVER

    def with_topology(self, found: Mapping[str, Choice]) -> list[str]:
        """Return the chosen flavors that have a topology."""
        return self._matcher.with_topology(choice.flavor for choice in found.values())

    def skips(self, amount: int) -> bool:
        """Return whether an uncovered resource is ignored rather than refused: its amount is 0, or undeclared
        resources are ignored."""
        return amount == 0 or self._ignore_undeclared

    def uncovered(self, cq: ClusterQueueState, requests: Iterable[Mapping[str, int]]) -> list[str]:
        """Return the requested resources that no resource group covers and that therefore cause a refusal."""
        missing = {
            name: None
            for amounts in requests
            for name, amount in amounts.items()
            if name not in cq.group_of and not self.skips(amount)
        }
        return list(missing)

    def has_place(
        self,
        info: WorkloadInfo,
        cq: ClusterQueueState,
        assignment: Assignment,
        results: Sequence[PodSetResult],
        group: GroupState,
        slot: FlavorSlot,
    ) -> bool:
        """Return whether a flavor whose quota fits has a place for the pods. A single flavor is not checked here,
        because the whole assignment is placed afterwards anyway."""
        if not group.last or not slot.selective or not self._devices.concerns(info):
            return True
        return self._devices.has_place(info, cq, assignment, results, slot)

    def device_refusal(
        self,
        info: WorkloadInfo,
        cq: ClusterQueueState,
        assignment: Assignment,
        results: Sequence[PodSetResult],
        slot: FlavorSlot,
    ) -> Refusal:
        """Return why a flavor for which `has_place` is false has no place for the pods."""
        return self._devices.refusal_of(info, cq, assignment, results, slot).refusal(slot.name)

    def mismatch(
        self, cq: ClusterQueueState, results: Sequence[PodSetResult], group: GroupState, slot: FlavorSlot
    ) -> str | None:
        """Return why the flavor does not suit the pods of one of the pod sets, or None."""
        for result in results:
            problem = self._matcher.mismatch(cq, result.pod_set, group, slot)
            if problem is not None:
                return problem
        return None


class _Best(NamedTuple):
    """The best flavor so far. `mode` and `level` are those of its worst resource; `attempted` is the index of the
    last flavor tried."""

    slot: FlavorSlot | None
    mode: Mode
    level: int
    fits: dict[str, tuple[Mode, int]]
    attempted: int


class _GroupSearch:
    """The flavor search for one group of pod sets."""

    __slots__ = ("_assigner", "_assignment", "_cq", "_indexes", "_info", "_pins", "_requests", "_results")

    def __init__(
        self,
        assigner: FlavorAssigner,
        cq: ClusterQueueState,
        info: WorkloadInfo,
        assignment: Assignment,
        results: list[PodSetResult],
        indexes: Sequence[int],
        pins: Pins | None,
    ) -> None:
        self._assigner = assigner
        self._cq = cq
        self._info = info
        self._assignment = assignment
        self._results = results
        self._indexes = indexes
        self._pins = pins
        self._requests = results[0].requests if len(results) == 1 else _sum([ps.requests for ps in results])

    def run(self) -> bool:
        """Find flavors for every resource of the group and add their usage to the assignment. Return False at the
        first failure."""
        found: dict[str, Choice] = {}
        for resource, amount in self._requests.items():
            if resource in found:  # a flavor is chosen for all resources of a group at once
                continue
            group = self._cq.group_of.get(resource)
            refusals: list[Refusal] = []
            if group is None:
                if self._assigner.skips(amount):
                    continue
                refusals.append(_undeclared(self._assigner.uncovered(self._cq, (self._requests,))))
                return self._fail(refusals)
            choices, fits = self._find_flavor(group, resource, refusals)
            if not choices:
                return self._fail(refusals)
            found.update(choices)
            # A flavor that needs preemption is kept with its reasons: they are told if no victims are found.
            if not fits:
                self._assignment.refusals.append(refusals)
                for result in self._results:
                    result.fits = False
        self._charge(found)
        if len(self._results) > 1:
            self._share_topology(found)
        return True

    def _fail(self, refusals: list[Refusal]) -> bool:
        # As in Kueue: a pod set that gets no flavor for one resource shows none for the others either.
        self._assignment.refusals.append(refusals)
        for result in self._results:
            result.fits = False
            result.flavors = {}
        return False

    def _share_topology(self, found: dict[str, Choice]) -> None:
        """Copy the flavors with a topology to each pod set of the named group that requests no covered resource."""
        names = self._assigner.with_topology(found)
        for result in self._results:
            request = result.pod_set.pod_set.topology_request
            if not result.flavors and request is not None and request.group:
                result.flavors = {name: choice for name, choice in found.items() if choice.flavor in names}

    def _charge(self, found: dict[str, Choice]) -> None:
        usage = self._assignment.usage
        for result in self._results:
            for resource, amount in result.requests.items():
                choice = found.get(resource)
                if choice is None:
                    continue
                result.flavors[resource] = choice
                self._assignment.level = max(self._assignment.level, choice.level)
                if choice.cell is not None:
                    usage[choice.cell] = usage.get(choice.cell, 0) + amount

    def _start(self, resource: str) -> int:
        # The last attempt stopped at a flavor and did not get it: continue after that flavor.
        last = self._info.last_assignment
        first = self._indexes[0]
        if last is None or first >= len(last.tried) or not self._assigner.fungible:
            return 0
        return last.tried[first].get(resource, -1) + 1

    def _find_flavor(self, group: GroupState, trigger: str, refusals: list[Refusal]) -> tuple[dict[str, Choice], bool]:
        """Return the best flavor of a resource group, and whether its worst resource fits.

        If a flavor that fits always wins over a flavor that needs preemption, victims matter only when no flavor fits.
        So the first search does not look for victims, and a second search does.
        """
        fungibility = self._cq.spec.flavor_fungibility
        a_fit_wins = not self._assigner.fungible or (
            fungibility.when_can_preempt is FungibilityPolicy.TRY_NEXT_FLAVOR
            and fungibility.preference is not FungibilityPreference.PREEMPTION_OVER_BORROWING
        )
        # The search for victims is by far the most expensive part of a cycle.
        may_wait = self._cq.can_preempt and a_fit_wins
        found = self._search(group, trigger, refusals, ask=not may_wait)
        if may_wait and found.mode is not FIT:
            refusals.clear()  # the second search finds them again
            found = self._search(group, trigger, refusals, ask=True)
        if found.mode is not FIT:
            self._explain_devices(group, refusals)
        if found.slot is None:
            return {}, False
        # After the last flavor of the group, the next attempt starts again with the first one.
        tried = -1 if found.attempted == group.last or not self._assigner.fungible else found.attempted
        name, cells = found.slot.name, found.slot.cells
        choices = {
            resource: Choice(name, cells.get(resource), mode, level, tried)
            for resource, (mode, level) in found.fits.items()
        }
        return choices, found.mode is FIT

    def _search(self, group: GroupState, trigger: str, refusals: list[Refusal], *, ask: bool) -> _Best:
        """Try flavors from where the last attempt stopped until one is good enough."""
        fungibility = self._cq.spec.flavor_fungibility
        by_level = fungibility.preference is FungibilityPreference.PREEMPTION_OVER_BORROWING
        requested = {name: self._requests[name] for name in group.covered if name in self._requests}
        best = _Best(None, NO_FIT, 0, {}, -1)
        attempted = -1
        for attempted in range(self._start(trigger), len(group.flavors)):
            slot = group.flavors[attempted]
            problem = self._problem(group, slot, trigger)
            if problem is not None:
                refusals.append(_mismatch(slot, problem))
                continue
            mode, level, fits = self._fit_flavor(slot, requested, by_level, refusals, ask)
            if mode is FIT:
                mode, fits = self._check_devices(group, slot, fits, refusals)
            if self._assigner.fungible:
                stop = not _tries_next(mode, level, fungibility.when_can_borrow, fungibility.when_can_preempt)
                better = _is_preferred(mode, level, best.mode, best.level, by_level)
            else:
                stop, better = mode is FIT, mode > best.mode
            if stop or better:
                best = _Best(slot, mode, level, fits, attempted)
            if stop:
                break
        return best._replace(attempted=attempted)

    def _problem(self, group: GroupState, slot: FlavorSlot, trigger: str) -> str | None:
        """Return why this workload cannot use the flavor at all, or None."""
        if not self._may_use(slot, trigger):
            return f"flavor {slot.name} is currently not available to this workload"
        if slot.selective or self._info.asks_for_topology:
            return self._assigner.mismatch(self._cq, self._results, group, slot)
        return None

    def _check_devices(
        self, group: GroupState, slot: FlavorSlot, fits: dict[str, tuple[Mode, int]], refusals: list[Refusal]
    ) -> tuple[Mode, dict[str, tuple[Mode, int]]]:
        """Downgrade a flavor that has quota but no place: it needs preemption if the ClusterQueue allows it for
        devices, otherwise it does not fit. `_explain_devices` gives the reason if no other flavor fits.
        """
        if self._assigner.has_place(self._info, self._cq, self._assignment, self._results, group, slot):
            return FIT, fits
        refusals.append(_UNEXPLAINED._replace(flavor=slot.name))
        mode = PREEMPT if self._cq.spec.preempt_for_devices else NO_FIT
        return mode, {name: (mode, level) for name, (_, level) in fits.items()}

    def _explain_devices(self, group: GroupState, refusals: list[Refusal]) -> None:
        """Say for each flavor that has quota but no place why it has none."""
        for slot in group.flavors:
            unexplained = _UNEXPLAINED._replace(flavor=slot.name)
            if unexplained in refusals:
                found = self._assigner.device_refusal(self._info, self._cq, self._assignment, self._results, slot)
                refusals[refusals.index(unexplained)] = found

    def _may_use(self, slot: FlavorSlot, trigger: str) -> bool:
        allowed = self._info.workload.allowed_flavors
        if allowed and slot.name not in allowed:
            return False
        if self._pins is None:
            return True
        return any(self._pins[index].get(trigger) == slot.name for index in self._indexes if index < len(self._pins))

    def _fit_flavor(
        self, slot: FlavorSlot, requested: Mapping[str, int], by_level: bool, refusals: list[Refusal], ask: bool
    ) -> tuple[Mode, int, dict[str, tuple[Mode, int]]]:
        """Return the mode and level of the worst resource, and those of each resource."""
        usage = self._assignment.usage
        worst_mode, worst_level = FIT, 0
        fits: dict[str, tuple[Mode, int]] = {}
        for name, amount in requested.items():
            cell = slot.cells.get(name)
            if cell is None:  # the quota does not limit this resource
                fits[name] = (FIT, 0)
                continue
            wanted = usage.get(cell, 0) + amount if usage else amount
            may_fit = worst_mode is not NO_FIT  # otherwise only the other resources' refusals matter
            mode, level = self._assigner.fit(self._cq, self._info, cell, wanted, refusals, ask=ask and may_fit)
            fits[name] = (mode, level)
            if _is_preferred(worst_mode, worst_level, mode, level, by_level):
                worst_mode, worst_level = mode, level
        return worst_mode, worst_level, fits


def _with_pods(pod_set: PodSetRequests, cq: ClusterQueueState) -> dict[str, int]:
    if PODS in cq.group_of:
        return {**pod_set.requests, PODS: pod_set.count}
    return pod_set.requests


def _sum(requests: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in requests:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


def _tries_next(mode: Mode, level: int, when_borrow: FungibilityPolicy, when_preempt: FungibilityPolicy) -> bool:
    """Return whether the search continues after a flavor of this mode and level (Kueue's shouldTryNext)."""
    if mode <= NO_CANDIDATES:  # preemption cannot help here, so whatever the policies say, another flavor is no worse
        return True
    if mode is not FIT and when_preempt is FungibilityPolicy.TRY_NEXT_FLAVOR:
        return True
    return level > 0 and when_borrow is FungibilityPolicy.TRY_NEXT_FLAVOR


def _is_preferred(mode: Mode, level: int, other_mode: Mode, other_level: int, by_level: bool) -> bool:
    """Return whether the first mode and level are strictly better than the others (Kueue's isPreferred)."""
    if mode is NO_FIT:  # of two flavors that do not fit, the first stays
        return False
    if other_mode is NO_FIT:
        return True
    # A flavor in which preemption cannot help is worse than one in which it can, however much the latter borrows.
    if (mode is NO_CANDIDATES) != (other_mode is NO_CANDIDATES):
        return other_mode is NO_CANDIDATES
    # Which is dearer for the cohort, borrowing from it or ending its workloads, is the ClusterQueue's preference.
    if by_level:
        return (level, -mode) < (other_level, -other_mode)
    return (-mode, level) < (-other_mode, other_level)


def _refusal(kind: RefusalKind, cell: Cell, wanted: int, limit: int, preemptible: bool = False) -> Refusal:
    exceeds = kind is RefusalKind.EXCEEDS_MAXIMUM
    reason = PendingReason.EXCEEDS_MAX_QUOTA if exceeds else PendingReason.WAITING_FOR_QUOTA
    return Refusal(kind, reason, cell.key.flavor, cell.key.resource, wanted, limit, preemptible=preemptible)


def _mismatch(slot: FlavorSlot, text: str) -> Refusal:
    return Refusal(RefusalKind.MISMATCH, PendingReason.NO_MATCHING_FLAVOR, slot.name, text=text)


def _topology_refusal(pod_set: str, flavors: Sequence[str]) -> Refusal:
    found = f"it got several: {', '.join(flavors)}" if flavors else "it got none"
    text = f"pod set {pod_set} needs one flavor with a topology, and {found}"
    return Refusal(RefusalKind.NO_TOPOLOGY, PendingReason.NO_MATCHING_FLAVOR, text=text)


def not_covered(resources: Sequence[str]) -> str:
    """Return `cpu and memory are not covered` for these resources."""
    listed = " and ".join(part for part in (", ".join(resources[:-1]), resources[-1]) if part)
    return f"{listed} {'is' if len(resources) == 1 else 'are'} not covered"


def _undeclared(resources: Sequence[str]) -> Refusal:
    return Refusal(
        RefusalKind.UNAVAILABLE,
        PendingReason.NO_MATCHING_FLAVOR,
        resource=resources[0],
        text=not_covered(resources),
    )
