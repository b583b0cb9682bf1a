"""Remedies of the kind Quota: the least nominal quota or borrowing limit, per node of the tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from scheduling.advice.waiting_rules import Rule
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort, FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.resources import FlavorResource
from scheduling.state.known_objects import RaisedQuota
from scheduling.studio.halving import least
from scheduling.studio.remedy import Remedy, RemedyKind, tried
from scheduling.studio.trials import Trials
from scheduling.studio.world_changes import SetObject

_MAX_DOUBLINGS = 6
"""Workloads ahead may take the added quota: the computed raise is doubled this often before giving up."""
_QUOTA_RULES = (Rule.QUOTA, Rule.MAXIMUM_QUOTA)

Amounts = dict[str, int]


def quota_raises(trials: Trials) -> Iterator[Remedy]:
    """Find, for each flavor that lacks quota and for each node from the ClusterQueue to the root, the smallest increase
    of its nominal quota, and of its borrowing limit if it has one. The raise is computed along the tree and then tried,
    also with one base unit less of each resource."""
    found = trials.world.explain(trials.key)
    if trials.world.objects.cluster_queue(found.cluster_queue) is None:
        return
    for verdict in found.flavors:
        lacking = {need.resource: need.asked for need in verdict.resources if need.lacking}
        if verdict.rule in _QUOTA_RULES and lacking:
            yield from _of_flavor(trials, found.cluster_queue, verdict.flavor, lacking)


def _of_flavor(trials: Trials, queue: str, flavor: str, asked: Mapping[str, int]) -> Iterator[Remedy]:
    for level in range(1 + len(trials.world.objects.cohorts_above(queue))):
        for field in ("nominalQuota", "borrowingLimit"):
            raises = _Raises(trials, queue, flavor, level, field)
            if trials.has_time() and raises.is_possible(asked):
                yield from raises.remedies(asked)


class _Raises:
    """Raises of one field, of one flavor, at one node of the tree."""

    def __init__(self, trials: Trials, queue: str, flavor: str, level: int, field: str) -> None:
        self._trials = trials
        self._queue = queue
        self._flavor = flavor
        self._level = level
        self._field = field
        objects = trials.world.objects
        name = (queue, *objects.cohorts_above(queue))[level]
        spec = objects.cohorts.get(name) if level else objects.cluster_queue(queue)
        self._spec: ClusterQueue | Cohort = spec if spec is not None else Cohort(name)

    def is_possible(self, asked: Mapping[str, int]) -> bool:
        """Return whether the field can be raised. A cohort without quota of the flavor can get some; an unset limit
        does not limit.
        """
        if self._field == "nominalQuota":
            return self._level > 0 or all(self._quota(resource) is not None for resource in asked)
        limits = [quota.borrowing_limit for quota in map(self._quota, asked) if quota is not None]
        return any(limit is not None for limit in limits)

    def remedies(self, asked: Mapping[str, int]) -> Iterator[Remedy]:
        raised = self._sufficient(asked)
        if raised is None:
            return
        for resource in raised:
            with_less = {**raised}

            def does(value: int, name: str = resource, amounts: Amounts = with_less) -> bool:
                return self._trials.starts(self._changes({**amounts, name: value}))

            raised[resource] = (0 if does(0) else least(does, 0, raised[resource])) or 0
        raised = {resource: amount for resource, amount in raised.items() if amount}
        before = {resource: self._before(resource) for resource in raised}
        remedy = tried(
            self._trials,
            RemedyKind.QUOTA,
            self._field,
            f"{type(self._spec).__name__} {self._spec.name}: {self._flavor}",
            self._changes(raised),
            before=before,
            after={resource: before[resource] + amount for resource, amount in raised.items()},
        )
        if remedy is not None and raised:
            yield remedy

    def _sufficient(self, asked: Mapping[str, int]) -> Amounts | None:
        """Return a raise that starts the workload: the computed one, or a multiple of it."""
        computed = {resource: self._computed(resource, amount) for resource, amount in asked.items()}
        raised = {resource: amount for resource, amount in computed.items() if amount is not None}
        if len(raised) < len(asked):
            return None
        for _ in range(_MAX_DOUBLINGS):
            if not self._trials.has_time():
                return None
            if self._trials.starts(self._changes(raised)):
                return raised
            raised = {resource: 2 * amount for resource, amount in raised.items()}
        return None

    def _computed(self, resource: str, asked: int) -> int | None:
        """Return the least raise that makes room for the amount in the tree; None if no raise here does."""
        key = FlavorResource(self._flavor, resource)
        objects = self._trials.world.objects

        def has_room(raised: int) -> bool:
            field = {"nominal": raised} if self._field == "nominalQuota" else {"borrowing": raised}
            return objects.room_with(self._queue, key, RaisedQuota(self._level, **field)) >= asked

        used = max(0, -objects.room_with(self._queue, key, RaisedQuota(self._level)))
        return least(has_room, 0, 4 * (asked + used)) if not has_room(0) else 0

    def _quota(self, resource: str) -> ResourceQuota | None:
        for group in self._spec.resource_groups:
            for flavor in group.flavors:
                if flavor.name == self._flavor and resource in flavor.resources:
                    return flavor.resources[resource]
        return None

    def _before(self, resource: str) -> int:
        quota = self._quota(resource)
        if quota is None:
            return 0
        return quota.nominal if self._field == "nominalQuota" else quota.borrowing_limit or 0

    def _changes(self, raised: Mapping[str, int]) -> tuple[SetObject, ...]:
        groups = self._spec.resource_groups
        for resource, amount in raised.items():
            groups = self._with(groups, resource, amount)
        return (SetObject(replace(self._spec, resource_groups=groups)),)

    def _with(self, groups: tuple[ResourceGroup, ...], resource: str, amount: int) -> tuple[ResourceGroup, ...]:
        """Return the groups with more quota of one resource. A cohort that lists no such flavor or resource gets it."""
        covering = next((group for group in groups if resource in group.covered_resources), None)
        if covering is None:
            beside = next((g for g in groups if any(f.name == self._flavor for f in g.flavors)), None)
            if beside is None:
                added = ResourceGroup((resource,), (FlavorQuotas(self._flavor, {resource: ResourceQuota(amount)}),))
                return (*groups, added)
            covering = beside
        flavors = covering.flavors
        if all(flavor.name != self._flavor for flavor in flavors):
            flavors = (*flavors, FlavorQuotas(self._flavor))
        changed = replace(
            covering,
            covered_resources=tuple(dict.fromkeys((*covering.covered_resources, resource))),
            flavors=tuple(self._raised(flavor, resource, amount) for flavor in flavors),
        )
        return tuple(changed if group is covering else group for group in groups)

    def _raised(self, flavor: FlavorQuotas, resource: str, amount: int) -> FlavorQuotas:
        if flavor.name != self._flavor:
            return flavor
        quota = flavor.resources.get(resource, ResourceQuota(0))
        if self._field == "nominalQuota":
            quota = replace(quota, nominal=quota.nominal + amount)
        elif quota.borrowing_limit is not None:
            quota = replace(quota, borrowing_limit=quota.borrowing_limit + amount)
        return replace(flavor, resources={**flavor.resources, resource: quota})
