"""Typical pods: the most frequent pod shapes and their frequencies.

Policies that look ahead use them. They are given, or counted from the known pods; the result depends only on the set
of pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scheduling.model.device import DeviceRequest
from scheduling.model.node import CPU
from scheduling.model.placement import NO_CONSTRAINTS, DeviceConstraints, PodSetToPlace

COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class PodShape:
    """The shape of a pod: cpu in milli, and one container's device request if any. Pods of one shape are alike."""

    cpu_milli: int
    request: DeviceRequest | None = None
    constraints: DeviceConstraints = NO_CONSTRAINTS


@dataclass(frozen=True, slots=True)
class TypicalPod:
    """A shape and its frequency, as a share of all typical pods."""

    shape: PodShape
    share: float


@dataclass(slots=True)
class PodMix:
    """The typical pods used by a fleet's policies: set once, or read from a `source` each time.

    A source returns the same tuple until they change. `version` counts the changes seen.
    """

    pods: tuple[TypicalPod, ...] = ()
    source: Callable[[], tuple[TypicalPod, ...]] | None = None
    version: int = 0
    _seen: tuple[TypicalPod, ...] = ()

    def now(self) -> tuple[TypicalPod, ...]:
        """Return the present typical pods."""
        pods = self.pods if self.source is None else self.source()
        if pods != self._seen:
            self._seen = pods
            self.version += 1
        return self._seen


def pod_shape(pod_set: PodSetToPlace) -> PodShape:
    """Return the shape of a pod set's pods. Of several device requests, the one for the most devices counts, then the
    one for the most memory."""
    pod = pod_set.devices
    asked = [request for container in (*pod.containers, *pod.init_containers) for request in container]
    cpu = pod_set.requests.get(CPU, 0)
    if not asked:
        return PodShape(cpu)
    largest = max(asked, key=lambda request: (request.count, request.memory_mib, request.memory_percentage % 101))
    return PodShape(cpu, largest, pod.constraints_of(largest.vendor))


def typical_pods(shapes: Iterable[PodShape], coverage: float = COVERAGE) -> tuple[TypicalPod, ...]:
    """Return the most frequent shapes that make up `coverage` of the pods; their shares add up to 1."""
    return most_frequent(Counter(shapes), coverage)


def most_frequent(counts: Mapping[PodShape, int], coverage: float = COVERAGE) -> tuple[TypicalPod, ...]:
    """`typical_pods` for counted shapes. Equal counts are ordered by shape."""
    wanted = coverage * sum(counts.values())
    chosen: list[tuple[PodShape, int]] = []
    covered = 0
    for shape, count in sorted(counts.items(), key=lambda item: (-item[1], repr(item[0]))):
        if covered >= wanted:
            break
        covered += count
        chosen.append((shape, count))
    return tuple(TypicalPod(shape, count / covered) for shape, count in chosen)


def rounded_count(count: int) -> int:
    """Return a count rounded to two binary digits (1, 2, 3, 4, 6, 8, 12, ...), so that one pod seldom changes it."""
    unit = 1 << max(count.bit_length() - 2, 0)
    return (count + unit // 2) // unit * unit
