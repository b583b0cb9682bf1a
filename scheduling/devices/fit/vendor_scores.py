"""What vendors add to a node's score for the cards that a pod would get there (HAMi's ScoreNode).

The sum over the vendors in the pod's result joins the node's own score, under whatever policy: with `spread`, where the
lowest score wins, it counts against the node, but for the vendors that turn theirs around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from scheduling.devices.fit.device_state import DeviceState
from scheduling.devices.fit.groups import tasks_to_fill
from scheduling.devices.fit.vendor_rules import app_class_score
from scheduling.devices.requests.policy import Policy
from scheduling.model.device import DeviceSlice
from scheduling.model.node import CountScores, Node
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import DeviceVendor, NodeScore

BEST_FILL = 3000
"""Kunlun: the score of a node that one task fewer would fill afterwards; each task more costs 1000."""
_FILL_STEP = 1000
COUNT_TABLE_TOP = 2000
"""MetaX: what a table's loss or score is subtracted from."""
TENANTS_WEIGHT = 10_000
"""MetaX sGPU: what outweighs the node's own score whatever the policy."""

Containers = Sequence[Sequence[DeviceSlice]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pod would get on a node: its slices per container, the node's cards before, and its own wishes."""

    node: Node
    states: Sequence[DeviceState]
    containers: Containers
    node_policy: str

    def slices(self, vendor: str) -> list[DeviceSlice]:
        """The slices of one vendor's cards."""
        return [part for container in self.containers for part in container if part.vendor == vendor]


def vendor_score(outcome: Outcome, vendor: DeviceVendor, constraints: DeviceConstraints) -> float:
    """The vendor's part of the node's score; 0 where the pod gets none of its cards."""
    held = outcome.slices(vendor.common_word)
    if not held:
        return 0.0
    match vendor.rules.node_score:
        case NodeScore.SAME_GROUP:
            return _same_group(outcome, vendor)
        case NodeScore.BUBBLES:
            return _bubbles(outcome, vendor.common_word, held)
        case NodeScore.COUNT_TABLE:
            table = outcome.node.count_scores.get(vendor.common_word, CountScores())
            return _from_table(table, len(held), outcome.node_policy)
        case NodeScore.TENANTS:
            score = TENANTS_WEIGHT * _tenants(outcome, vendor, held, constraints)
            return -score if outcome.node_policy == Policy.SPREAD else score
        case NodeScore.NONE:
            return 0.0


def _same_group(outcome: Outcome, vendor: DeviceVendor) -> float:
    """Per container the share of its cards that are of the largest group; 0 where a card is of none."""
    groups = _attributes(outcome.states, vendor.rules.group_attribute)
    shares = 0.0
    for container in outcome.containers:
        held = Counter(groups.get(part.uuid) for part in container if part.vendor == vendor.common_word)
        if None in held:
            return 0.0
        if held:
            shares += max(held.values()) / held.total()
    return shares * vendor.rules.group_weight


def _bubbles(outcome: Outcome, word: str, held: Sequence[DeviceSlice]) -> float:
    unused = unused_indexes(outcome.states, word)
    grown = tasks_to_fill(unused.difference(part.index for part in held)) - tasks_to_fill(unused)
    return max(0, BEST_FILL - _FILL_STEP * (grown + 1))


def unused_indexes(states: Iterable[DeviceState], word: str) -> frozenset[int]:
    """The indexes of a vendor's cards that nobody holds."""
    return frozenset(state.index for state in states if state.device.vendor == word and not state.used_slots)


def _from_table(table: CountScores, count: int, policy: str) -> float:
    value = (table.scores if policy == Policy.SPREAD else table.losses).get(count)
    return 0.0 if value is None else COUNT_TABLE_TOP - value


def _tenants(
    outcome: Outcome, vendor: DeviceVendor, held: Sequence[DeviceSlice], constraints: DeviceConstraints
) -> float:
    if constraints.app_class:
        by_uuid = {state.device.uuid: state for state in outcome.states}
        return sum(app_class_score(constraints.app_class, by_uuid[part.uuid].tenants) for part in held)
    if not constraints.zones or not all(part.cores_percent == 100 for part in held):
        return 0.0
    zones = _attributes(outcome.states, vendor.rules.group_attribute)
    taken = {part.uuid for part in held}
    available = [
        state.device.uuid
        for state in outcome.states
        if state.device.vendor == vendor.common_word and not state.used_slots
    ]
    before, group = _pairs(available, zones), _pairs(taken, zones)
    rest = _pairs([uuid for uuid in available if uuid not in taken], zones)
    return 10 * group - (before - group - rest)


def _pairs(uuids: Iterable[str], zones: Mapping[str, str]) -> int:
    """How many pairs of these cards are of one zone."""
    return sum(left in zones and zones[left] == zones.get(right) for left, right in combinations(uuids, 2))


def _attributes(states: Iterable[DeviceState], name: str) -> dict[str, str]:
    """The attribute of each card that has it, by UUID."""
    return {state.device.uuid: state.device.attributes[name] for state in states if name in state.device.attributes}
