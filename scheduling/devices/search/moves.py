"""Advice: the fewest running pods to move so that a workload can be placed. Nothing is moved here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from scheduling.devices.search.fleet import Fleet
from scheduling.model.placement import Placement, PodPlacement, PodSetToPlace

MAX_MOVES = 3
MAX_TRIES = 5_000

_TARGET = "#target"

Within = Callable[[str, PodPlacement], frozenset[str] | None]
"""The nodes that a running pod of a workload may be moved to; None for no restriction."""


@dataclass(frozen=True, slots=True)
class Move:
    """One running pod that would be moved."""

    workload_key: str
    source: PodPlacement
    target: PodPlacement


@dataclass(frozen=True, slots=True)
class MovePlan:
    """The moves, in an order in which they can be made, and the workload's placement after them."""

    moves: tuple[Move, ...]
    placement: Placement


@dataclass(frozen=True, slots=True)
class Part:
    """Pods that must be placed together on one of several sets of nodes (a slice of a topology); None is any node."""

    pods: PodSetToPlace
    choices: tuple[frozenset[str] | None, ...] = (None,)


def _anywhere(workload_key: str, pod: PodPlacement) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Step:
    """A move, with the planner's name of the pod."""

    name: str
    move: Move


@dataclass(frozen=True, slots=True)
class _Room:
    """The moved workloads and the new reservations of an attempt to place pods."""

    steps: list[_Step]
    placed: list[tuple[str, PodPlacement]]


class MovePlanner:
    """Plans on a copy of a fleet in which every pod has a reservation of its own, so that it can be moved."""

    def __init__(
        self, fleet: Fleet, movable: Mapping[str, Sequence[PodSetToPlace]], within: Within = _anywhere
    ) -> None:
        """`movable` are the workloads that may be moved, with the pod sets for which they were placed."""
        self.fleet = fleet.copy_without_reservations()
        self.tries = 0
        self.within = within
        self.pods: dict[str, tuple[str, PodPlacement, PodSetToPlace | None]] = {}
        for key, placement in sorted(fleet.reservations.items()):
            shapes = {pod_set.name: pod_set for pod_set in movable.get(key, ())}
            for number, pod in enumerate(placement.pods):
                name = f"{key}#{number}"
                self.fleet.reserve(name, Placement((pod,)))
                self.pods[name] = (key, pod, shapes.get(pod.pod_set))
        self.placed = 0

    def plan(self, parts: Sequence[Part], *, max_moves: int = MAX_MOVES, max_tries: int = MAX_TRIES) -> MovePlan | None:
        """Return the plan with the fewest moves after which the pods can be placed; None if there is no plan within the
        limits. The number of moves is minimal for each single pod; for a gang, the total is not proven to be minimal.
        The moves can be made in order: each pod moves into room that the moves before it have freed."""
        self.tries = max_tries
        rooms: list[_Room] = []
        try:
            for part in parts:
                room = self._make_room_for(part, max_moves - sum(len(room.steps) for room in rooms))
                if room is None:
                    return None
                rooms.append(room)
        finally:
            for room in reversed(rooms):
                self._take_back(room)
        moves = tuple(step.move for room in rooms for step in room.steps)
        return MovePlan(moves, Placement(tuple(pod for room in rooms for _, pod in room.placed)))

    def _make_room_for(self, part: Part, max_moves: int) -> _Room | None:
        """Place the pods of a part on the choice that needs the fewest moves. The copy then holds the result."""
        best: tuple[frozenset[str] | None, _Room] | None = None
        for nodes in part.choices:
            found = self._place_all(part.pods, nodes, max_moves)
            if found is None:
                continue
            if not found.steps:
                return found
            self._take_back(found)
            best, max_moves = (nodes, found), len(found.steps) - 1
        if best is not None:
            self._redo(best[1])
        return best[1] if best is not None else None

    def _place_all(self, pods: PodSetToPlace, nodes: frozenset[str] | None, max_moves: int) -> _Room | None:
        room = _Room([], [])
        for replica in range(pods.first_replica, pods.first_replica + pods.count):
            single = replace(pods, count=1, first_replica=replica, allowed_nodes=nodes)
            if not self._make_room(single, max_moves - len(room.steps), room):
                self._take_back(room)
                return None
        return room

    def _take_back(self, room: _Room) -> None:
        for name, _ in reversed(room.placed):
            self.fleet.release(name)
        for step in reversed(room.steps):
            self._put(step.name, step.move.source)

    def _redo(self, room: _Room) -> None:
        for step in room.steps:
            self._put(step.name, step.move.target)
        for name, pod in room.placed:
            self.fleet.reserve(name, Placement((pod,)))

    def _make_room(self, pod_set: PodSetToPlace, max_moves: int, room: _Room) -> bool:
        """Place one pod after the fewest moves, and record it."""
        outcome = self.fleet.place([pod_set])
        if isinstance(outcome, Placement):
            self._take(outcome, room)
            return True
        nodes = list(outcome.reasons)
        for count in range(1, max_moves + 1):
            for node, names in self._choices(nodes, count):
                if self.tries <= 0:
                    return False
                self.tries -= 1
                if self._try(pod_set, node, names, room):
                    return True
        return False

    def _take(self, placement: Placement, room: _Room) -> None:
        self.placed += 1
        name = f"#new{self.placed}"
        self.fleet.reserve(name, placement)
        room.placed.append((name, placement.pods[0]))

    def _choices(self, nodes: Sequence[str], count: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Nodes with sets of movable pods on them: smallest sets first, small pods first."""
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

    def _try(self, pod_set: PodSetToPlace, node: str, names: Sequence[str], room: _Room) -> bool:
        here = replace(pod_set, allowed_nodes=frozenset({node}))
        target = self.fleet.place([here], without=names)
        if not isinstance(target, Placement):
            return False
        self.fleet.reserve(_TARGET, target)  # next to the pods to be moved, so that no pod moves there
        steps: list[_Step] = []
        for name in names:
            move = self._move(name)
            if move is None:
                break
            steps.append(_Step(name, move))
        self.fleet.release(_TARGET)
        if len(steps) == len(names):
            room.steps.extend(steps)
            self._take(target, room)
            return True
        for step in reversed(steps):
            self._put(step.name, step.move.source)
        return False

    def _move(self, name: str) -> Move | None:
        """Move one pod to a node with room now."""
        key, pod, shape = self.pods[name]
        held = self.fleet.release(name)
        outcome = self._elsewhere(key, shape, pod)
        self.fleet.reserve(name, outcome or held)
        if outcome is None:
            return None
        self.pods[name] = (key, outcome.pods[0], shape)
        return Move(key, pod, outcome.pods[0])

    def _put(self, name: str, pod: PodPlacement) -> None:
        self.fleet.release(name)
        self.fleet.reserve(name, Placement((pod,)))
        self.pods[name] = (self.pods[name][0], pod, self.pods[name][2])

    def _elsewhere(self, key: str, shape: PodSetToPlace | None, pod: PodPlacement) -> Placement | None:
        if shape is None:
            return None
        single = replace(shape, count=1, first_replica=pod.replica, allowed_nodes=self.within(key, pod))
        outcome = self.fleet.place([single])
        return outcome if isinstance(outcome, Placement) else None
