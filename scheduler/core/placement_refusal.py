"""Why no node takes a pod: HAMi's reason words with counts per node, the node that came nearest, and a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.core.device import DeviceRequest
from scheduler.core.device_vendor import DeviceVendor
from scheduler.core.placement_fit import Card, CardRefusals, of_vendor
from scheduler.core.placement_model import (
    DeviceConstraints,
    DeviceRefusal,
    NodeRefusal,
    PlacementRefusal,
    PodSetToPlace,
)
from scheduler.core.placement_table import CORES, MEMORY_MIB, SLOTS, DeviceTable

_ORDER = tuple(DeviceRefusal)
_RANK = {reason: number for number, reason in enumerate(_ORDER)}
_SERVING, _OTHER_VENDOR = -1, -2

_WORDS = {
    DeviceRefusal.CARD_NOT_HEALTH: "unhealthy",
    DeviceRefusal.CARD_CORDONED: "cordoned",
    DeviceRefusal.CARD_TYPE_MISMATCH: "of a type that the pod does not accept",
    DeviceRefusal.NUMA_NOT_FIT: "in a NUMA node with too few others",
    DeviceRefusal.CARD_UUID_MISMATCH: "excluded by UUID",
    DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED: "without a free slot",
    DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: "in use while the pod wants a card to itself",
    DeviceRefusal.RESOURCE_QUOTA_NOT_FIT: "beyond the namespace's ResourceQuota",
    DeviceRefusal.CARD_INSUFFICIENT_MEMORY: "short of memory",
    DeviceRefusal.CARD_INSUFFICIENT_CORE: "short of cores",
    DeviceRefusal.CARD_COMPUTE_UNITS_EXHAUSTED: "with all cores reserved",
    DeviceRefusal.CARD_MIG_TOPOLOGY_INFEASIBLE: "without a place for a MIG instance",
    DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE: "ruled out by the vendor",
    DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST: "free",
}


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """What one candidate node lacked; `cards` holds the device part, `free_memory_mib` its emptiest usable card."""

    node: str
    reason: str
    cards: CardRefusals | None = None
    free_memory_mib: int = 0

    @property
    def nearness(self) -> tuple[int, int, int]:
        """Larger is nearer: nodes with room before those without, then free cards, then how far the others came."""
        if self.cards is None:
            return (0, 0, 0)
        counts = self.cards.counts
        free = counts.get(DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, 0)
        return (1 if counts else 0, free, sum(_RANK[reason] * count for reason, count in counts.items()))


def refused_cards(
    table: DeviceTable,
    request: DeviceRequest,
    vendor: DeviceVendor,
    constraints: DeviceConstraints,
    mutex: bool,
) -> list[CardRefusals]:
    """Per node what its cards lack for a pod of one request, as the walk over its cards would count it."""
    codes = _codes(table, request, vendor, constraints, mutex)
    width = len(_ORDER) + 2
    rows = np.repeat(np.arange(codes.shape[0]), codes.shape[1])
    flat = np.bincount(rows * width + codes.ravel() + 2, minlength=codes.shape[0] * width)
    per_node = flat.reshape(codes.shape[0], width)
    patterns, which = np.unique(per_node, axis=0, return_inverse=True)
    found = [_pattern(request, pattern) for pattern in patterns]
    return [found[number] for number in which.ravel().tolist()]


def _pattern(request: DeviceRequest, pattern: NDArray[np.int64]) -> CardRefusals:
    serving = int(pattern[_SERVING + 2])
    counts = {reason: int(pattern[number + 2]) for number, reason in enumerate(_ORDER) if pattern[number + 2]}
    cards = serving + sum(counts.values())
    if request.count > cards:
        return CardRefusals(request, cards, Counter())
    if serving:
        counts[DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST] = serving
    return CardRefusals(request, cards, Counter(counts))


def _codes(
    table: DeviceTable, request: DeviceRequest, vendor: DeviceVendor, constraints: DeviceConstraints, mutex: bool
) -> NDArray[np.int64]:
    rules = vendor.rules
    totals, used = table.totals, table.used
    wanted = request.cores_percent
    if rules.exclusive_cores or rules.cores_exhausted:
        wanted = min(wanted, 100)
    if request.memory_mib or request.memory_percentage > 100:
        memory: NDArray[np.int64] | int = request.memory_mib
    else:
        memory = totals[MEMORY_MIB] * request.memory_percentage // 100
    everything = DeviceConstraints()
    types = DeviceConstraints(constraints.use_types, constraints.nouse_types, mode=constraints.mode)
    uuids = DeviceConstraints(use_uuids=constraints.use_uuids, nouse_uuids=constraints.nouse_uuids)
    of_the_vendor = table.card_mask(vendor.word, everything, False)
    never = np.zeros(of_the_vendor.shape, dtype=np.bool_)
    in_use = used[SLOTS] > 0
    checks = [
        (DeviceRefusal.CARD_NOT_HEALTH, ~table.healthy),
        (DeviceRefusal.CARD_CORDONED, table.cordoned),
        (DeviceRefusal.CARD_TYPE_MISMATCH, ~table.card_mask(vendor.word, types, True) if rules.type_filter else never),
        (DeviceRefusal.CARD_UUID_MISMATCH, ~table.card_mask(vendor.word, uuids, False)),
        (DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED, used[SLOTS] >= totals[SLOTS]),
        (DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT, in_use if rules.mutex and mutex else never),
        (DeviceRefusal.CARD_INSUFFICIENT_MEMORY, totals[MEMORY_MIB] - used[MEMORY_MIB] < memory),
        (DeviceRefusal.CARD_INSUFFICIENT_CORE, totals[CORES] - used[CORES] < wanted),
        (
            DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
            in_use & (totals[CORES] == 100) if rules.exclusive_cores and wanted == 100 else never,
        ),
        (
            DeviceRefusal.CARD_COMPUTE_UNITS_EXHAUSTED,
            (used[CORES] == totals[CORES]) & (totals[CORES] > 0) if rules.cores_exhausted and wanted == 0 else never,
        ),
    ]
    codes = np.select(
        [~of_the_vendor, *(mask for _, mask in checks)], [_OTHER_VENDOR, *(_RANK[r] for r, _ in checks)], _SERVING
    )
    return np.asarray(codes, dtype=np.int64)


def free_memory_mib(cards: Iterable[Card], vendor: str, by_model: bool) -> int:
    """The free memory of the emptiest usable card of a vendor."""
    return max(
        (
            card.device.memory_mib - card.used_memory_mib
            for card in cards
            if of_vendor(card.device, vendor, by_model)
            and card.device.health
            and not card.device.cordoned
            and card.used_slots < card.device.slots
        ),
        default=0,
    )


def refusal(
    pod_set: PodSetToPlace, replica: int, placed: int, wanted: int, findings: Sequence[NodeFinding]
) -> PlacementRefusal:
    """The refusal of one pod of a gang, with the nearest node and a sentence; ties go to the smaller name."""
    nearest = max(findings, key=lambda finding: finding.nearness, default=None)
    return PlacementRefusal(
        pod_set.name,
        replica,
        placed,
        wanted,
        {finding.node: finding.reason for finding in findings},
        nearest.node if nearest is not None else None,
        _sentence(pod_set, replica, placed, wanted, nearest, len(findings)),
    )


def _sentence(
    pod_set: PodSetToPlace, replica: int, placed: int, wanted: int, nearest: NodeFinding | None, nodes: int
) -> str:
    who = f"pod {replica} of pod set {pod_set.name}"
    if placed:
        who += f" (after {placed} of {wanted} pods had found a place)"
    if nearest is None:
        return f"No node is a candidate for {who}: none has the labels that its flavor, selector and affinity ask for."
    start = f"None of {nodes} nodes takes {who}" if nodes > 1 else f"Node {nearest.node} does not take {who}"
    if nearest.cards is None:
        return f"{start}; nearest is {nearest.node}: {node_reason_sentence(nearest.reason)}."
    return f"{start}, which asks for {describe(nearest.cards.request)}; nearest is {nearest.node}: {_lack(nearest)}."


def _lack(finding: NodeFinding) -> str:
    refused = finding.cards
    if refused is None or not refused.counts:
        cards = refused.cards if refused is not None else 0
        return f"it has {cards} such card{'' if cards == 1 else 's'}"
    parts = []
    for reason, count in sorted(refused.counts.items(), key=lambda item: (-item[1], item[0])):
        text = f"{count} {'is' if count == 1 else 'are'} {_WORDS[reason]}"
        if reason is DeviceRefusal.CARD_INSUFFICIENT_MEMORY:
            text += f" (at most {finding.free_memory_mib} MiB free on a card)"
        parts.append(text)
    return f"of {refused.cards} card{'' if refused.cards == 1 else 's'} {', '.join(parts)}"


def describe(request: DeviceRequest) -> str:
    """A device request in words."""
    cards = f"{request.count} {request.vendor} card{'' if request.count == 1 else 's'}"
    memory = f"{request.memory_mib} MiB" if request.memory_mib else f"{request.memory_percentage} % of the memory"
    cores = f" and {request.cores_percent} % of the cores" if request.cores_percent else ""
    return f"{cards} with {memory}{cores}{' each' if request.count > 1 else ''}"


def node_reason_sentence(reason: str) -> str:
    """A node's own refusal in words."""
    words: Mapping[str, str] = {
        NodeRefusal.NODE_NOT_READY: "it is not ready",
        NodeRefusal.NODE_UNSCHEDULABLE: "it is cordoned",
        NodeRefusal.NODE_TAINTED: "it has a taint that the pod does not tolerate",
        DeviceRefusal.NODE_UNREGISTERED: "it has no registered devices",
    }
    if reason.startswith(NodeRefusal.INSUFFICIENT_RESOURCE):
        return f"it has too little {reason.removeprefix(NodeRefusal.INSUFFICIENT_RESOURCE).strip()} free"
    return words.get(reason, reason)
