"""Advice: the fewest running pods to move so that a workload finds its place. Nothing is moved here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from scheduler.core.placement import Fleet
from scheduler.core.placement_model import Placement, PodPlacement, PodSetToPlace

MAX_MOVES = 3
MAX_TRIES = 5_000

_TARGET = "#target"


@dataclass(frozen=True, slots=True)
class Move:
    """One running pod that would go elsewhere."""

    workload_key: str
    source: PodPlacement
    target: PodPlacement


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The moves, in an order in which they can be made, and where the workload would then go."""

    moves: tuple[Move, ...]
    placement: Placement


def plan_moves(
    fleet: Fleet,
    pod_sets: Sequence[PodSetToPlace],
    movable: Mapping[str, Sequence[PodSetToPlace]],
    *,
    max_moves: int = MAX_MOVES,
    max_tries: int = MAX_TRIES,
) -> MovePlan | None:
    """The plan with the fewest moves that lets the pod sets in, or None if there is none within the bounds.

    `movable` are the workloads that may be moved, with the pod sets that they were placed for. For each pod in turn the
    plan is the smallest; for a gang of several pods their sum is not proven to be. The moves can be made one after
    another: each pod goes to where there is room once those before it have gone.
    """
    planner = _Planner(fleet, movable, max_tries)
    moves: list[Move] = []
    placed: list[PodPlacement] = []
    for pod_set in pod_sets:
        for replica in range(pod_set.first_replica, pod_set.first_replica + pod_set.count):
            single = replace(pod_set, count=1, first_replica=replica)
            found = planner.make_room(single, max_moves - len(moves))
            if found is None:
                return None
            steps, pod = found
            moves.extend(steps)
            placed.append(pod)
    return MovePlan(tuple(moves), Placement(tuple(placed)))


class _Planner:
    """A copy of the fleet in which every pod is a reservation of its own and can be moved."""

    def __init__(self, fleet: Fleet, movable: Mapping[str, Sequence[PodSetToPlace]], max_tries: int) -> None:
        self.fleet = fleet.copy_without_reservations()
        self.tries = max_tries
        self.pods: dict[str, tuple[str, PodPlacement, PodSetToPlace | None]] = {}
        for key, placement in sorted(fleet.reservations.items()):
            shapes = {pod_set.name: pod_set for pod_set in movable.get(key, ())}
            for number, pod in enumerate(placement.pods):
                name = f"{key}#{number}"
                self.fleet.reserve(name, Placement((pod,)))
                self.pods[name] = (key, pod, shapes.get(pod.pod_set))
        self.placed = 0

    def make_room(self, pod_set: PodSetToPlace, max_moves: int) -> tuple[list[Move], PodPlacement] | None:
        """Place one pod, after the fewest moves; the copy then holds the result."""
        outcome = self.fleet.place([pod_set])
        if isinstance(outcome, Placement):
            return [], self._take(outcome)
        nodes = list(outcome.reasons)
        for count in range(1, max_moves + 1):
            for node, names in self._choices(nodes, count):
                if self.tries <= 0:
                    return None
                self.tries -= 1
                found = self._try(pod_set, node, names)
                if found is not None:
                    return found
        return None

    def _take(self, placement: Placement) -> PodPlacement:
        self.placed += 1
        self.fleet.reserve(f"#new{self.placed}", placement)
        return placement.pods[0]

    def _choices(self, nodes: Sequence[str], count: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Nodes with sets of movable pods on them: nodes with the smallest such sets first, small pods first."""
        here: dict[str, list[str]] = {node: [] for node in nodes}
        for name, (_, pod, shape) in self.pods.items():
            if pod.node in here and pod.slices and shape is not None:
                here[pod.node].append(name)
        enough = [(node, sorted(names, key=self._size)) for node, names in here.items() if len(names) >= count]
        enough.sort(key=lambda found: (sum(self._size(name)[0] for name in found[1][:count]), found[0]))
        for node, names in enough:
            for chosen in combinations(names, count):
                yield node, chosen

    def _size(self, name: str) -> tuple[int, str]:
        return sum(part.memory_mib for part in self.pods[name][1].slices), name

    def _try(self, pod_set: PodSetToPlace, node: str, names: Sequence[str]) -> tuple[list[Move], PodPlacement] | None:
        here = replace(pod_set, allowed_nodes=frozenset({node}))
        target = self.fleet.place([here], without=names)
        if not isinstance(target, Placement):
            return None
        self.fleet.reserve(_TARGET, target)  # over the pods that still are there: nobody moves into its room
        moves: list[Move] = []
        for name in names:
            move = self._move(name)
            if move is None:
                break
            moves.append(move)
        self.fleet.release(_TARGET)
        if len(moves) == len(names):
            return moves, self._take(target)
        for name, move in zip(names, moves, strict=False):
            self._put(name, move.source)
        return None

    def _move(self, name: str) -> Move | None:
        """Move one pod to where there is room now."""
        key, pod, shape = self.pods[name]
        held = self.fleet.release(name)
        outcome = self._elsewhere(shape, pod)
        self.fleet.reserve(name, outcome or held)
        if outcome is None:
            return None
        self.pods[name] = (key, outcome.pods[0], shape)
        return Move(key, pod, outcome.pods[0])

    def _put(self, name: str, pod: PodPlacement) -> None:
        self.fleet.release(name)
        self.fleet.reserve(name, Placement((pod,)))
        self.pods[name] = (self.pods[name][0], pod, self.pods[name][2])

    def _elsewhere(self, shape: PodSetToPlace | None, pod: PodPlacement) -> Placement | None:
        if shape is None:
            return None
        outcome = self.fleet.place([replace(shape, count=1, first_replica=pod.replica)])
        return outcome if isinstance(outcome, Placement) else None
