"""The order in which devices are tried, and which node is best: HAMi's policies, as sort keys.

HAMi sorts devices ascending and walks from the end; the keys here give the walk directly, the first device to try
first. Full ties go to the device that comes last in the node's inventory (in a chain of policies: to the higher index
first), ties between nodes to the smaller name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import numpy as np

from scheduling.model.placement import ScoringWeights


class Policy(StrEnum):
    """Policy words. For nodes every other word means binpack, for devices spread, as in HAMi; `fgd` and `bid-price` are
    kueueweb's own.
    """

    BINPACK = "binpack"
    """The most used first, so that others stay whole."""
    SPREAD = "spread"
    """The least used first, so that slices disturb each other least."""
    MUTEX = "mutex"
    """Only unused devices."""
    NUMA = "numa"
    """Devices by NUMA node, the highest number first, so that the devices of one NUMA node are adjacent."""
    TOPOLOGY_AWARE = "topology-aware"
    """The devices with the best links to each other."""
    FGD = "fgd"
    """The place that increases fragmentation least, for the pods that are typical of the cluster."""
    BID_PRICE = "bid-price"
    """The node and devices that lose the least value to the typical pods."""


NODE_POLICIES = (Policy.BINPACK, Policy.SPREAD, Policy.FGD, Policy.BID_PRICE)
DEVICE_POLICIES = (
    Policy.BINPACK,
    Policy.SPREAD,
    Policy.MUTEX,
    Policy.NUMA,
    Policy.TOPOLOGY_AWARE,
    Policy.FGD,
    Policy.BID_PRICE,
)


class RankedDevice(Protocol):
    """A device in an order: its used slots, and its position in the node's inventory."""

    used_slots: int
    numa: int
    index: int
    position: int
    score: float


RANKED = "ranked"

SortKey = Callable[[RankedDevice], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class DevicePolicy:
    """A resolved device policy: the order of devices, and the filters that it implies."""

    order: tuple[str, ...]
    mutex: bool = False
    topology_aware: bool = False

    @property
    def ranked(self) -> bool:
        """Whether device scores come from a `Ranking` instead of HAMi's formula."""
        return self.order == (RANKED,)

    def sort_key(self, numa_bind: bool) -> SortKey:
        """Return the key that sorts devices into the order of trying."""
        return _sort_key(self.order, numa_bind)


@lru_cache(maxsize=256)
def device_policy(text: str) -> DevicePolicy:
    """Resolve the policy's words. An unknown word means spread, as in HAMi."""
    if "," not in text and text != Policy.NUMA:
        if text == Policy.MUTEX:
            return DevicePolicy((Policy.MUTEX,), mutex=True)
        if text == Policy.TOPOLOGY_AWARE:
            return DevicePolicy((Policy.SPREAD,), topology_aware=True)
        return DevicePolicy((Policy.BINPACK if text == Policy.BINPACK else Policy.SPREAD,))
    words = [word.strip() for word in text.split(",")]
    keys = [word for word in dict.fromkeys(words) if word in (Policy.BINPACK, Policy.SPREAD, Policy.NUMA)]
    return DevicePolicy(("chain", *(keys or [Policy.SPREAD])), Policy.MUTEX in words, Policy.TOPOLOGY_AWARE in words)


BY_RANKING = DevicePolicy((RANKED,))


@lru_cache(maxsize=256)
def _sort_key(order: tuple[str, ...], numa_bind: bool) -> SortKey:
    head, *chain = order
    if head == RANKED:
        return lambda device: (-device.score, device.position)
    if head == "chain":
        words = ([Policy.NUMA] if numa_bind else []) + [
            word for word in chain if not (numa_bind and word == Policy.NUMA)
        ]
        parts = tuple(_PARTS[word] for word in words)
        return lambda device: (*(part(device) for part in parts), -device.index, -device.position)
    if head == Policy.MUTEX:
        return lambda device: (device.used_slots, -device.numa, -device.position)
    if head == Policy.BINPACK:
        if numa_bind:
            return lambda device: (device.numa, -device.score, -device.position)
        return lambda device: (-device.score, -device.numa, -device.position)
    if numa_bind:
        return lambda device: (-device.numa, device.score, -device.position)
    return lambda device: (device.score, -device.numa, -device.position)


_PARTS: dict[str, Callable[[RankedDevice], float]] = {
    Policy.BINPACK: lambda device: -device.score,
    Policy.SPREAD: lambda device: device.score,
    Policy.NUMA: lambda device: -device.numa,
}


def device_scores(
    used: Sequence[tuple[int, int, int]], totals: Sequence[tuple[int, int, int]], weights: ScoringWeights
) -> list[float]:
    """HAMi's score of each device: ten times the weighted sum of used shares of slots, cores and memory.

    `used` and `totals` are (slots, cores, memory) per device. 32-bit floats, as in HAMi, so that ties are the same; a
    device with a zero total scores 0.
    """
    if not used:
        return []
    total = np.array(totals, dtype=np.float32)
    empty = (total == 0).any(axis=1)
    total[empty] = 1
    shares = np.array(used, dtype=np.float32) / total
    score = np.float32(10) * (
        np.float32(weights.slot) * shares[:, 0]
        + np.float32(weights.core) * shares[:, 1]
        + np.float32(weights.memory) * shares[:, 2]
    )
    score[empty] = 0
    return [float(value) for value in score]
