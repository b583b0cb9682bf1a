"""Wakes inadmissible workloads: each change that may let them start returns them to their active queue."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import cache, partial
from typing import TYPE_CHECKING

from scheduling.state.cluster_queue import ClusterQueueState

if TYPE_CHECKING:
    from scheduling.state.state import State


class Waking:
    """The ways in which workloads of a state are woken."""

    def __init__(self, state: State) -> None:
        self._state = state

    def wake_inadmissible(self) -> None:
        """Activate the inadmissible workloads of cohort trees that changed."""
        state = self._state
        due = [name for name, until in state.wake_at.items() if until <= state.now]
        for name in due:
            del state.wake_at[name]
        dirty, state.dirty_queues = state.dirty_queues.union(due), set()
        self._wake_trees(dirty)

    def wake_held_back(self) -> None:
        """Activate the inadmissible workloads of cohort trees in which a ClusterQueue that backfills changed: a planned
        start that held them back may have left."""
        state = self._state
        known = ((name, state.cluster_queues.get(name)) for name in state.dirty_queues)
        backfilling = {name for name, cq in known if cq is not None and cq.spec.backfill is not None}
        state.dirty_queues -= backfilling
        self._wake_trees(backfilling)

    def _wake_trees(self, dirty: Iterable[str]) -> None:
        state = self._state
        trees: dict[int, list[ClusterQueueState]] = {}
        for cq in filter(None, map(state.cluster_queues.get, dirty)):
            trees.setdefault(id(cq.node.root), state.tree_of(cq))
        for members in trees.values():
            for cq in members:
                if cq.active and cq.queue.may_wake:
                    cq.queue.wake(state.now, cache(partial(state.selects_namespace, cq)))
                    if cq.queue.active_count:
                        state.ready[cq.name] = cq

    def wake_deselected(self, cq: ClusterQueueState, namespaces: AbstractSet[str]) -> None:
        """Wake the workloads of namespaces that are no longer selected. `wake_inadmissible` skips them; without this
        attempt they would keep their old pending reason.
        """
        state = self._state
        if not namespaces or not cq.queue.inadmissible_count:
            return
        cq.queue.wake(state.now, namespaces.__contains__)
        if cq.queue.active_count:
            state.ready[cq.name] = cq

    def wake_waiting_for_devices(self) -> None:
        """Wake workloads that lack devices: devices became free, or a namespace's quota of devices grew."""
        state = self._state
        state.dirty_queues |= state.waiting_for_devices
        state.waiting_for_devices = set()

    def wake_queue_at(self, cluster_queue: str, until: float) -> None:
        """Schedule the next attempt of the inadmissible workloads of a ClusterQueue."""
        state = self._state
        state.wake_at[cluster_queue] = min(until, state.wake_at.get(cluster_queue, until))

    def clear_pauses(self, queues: Iterable[str]) -> None:
        """End preemption pauses in the cohort trees of these ClusterQueues, because something changed that may change
        decisions."""
        state = self._state
        guard = state.preemption_loops
        if not guard:
            return
        known_queues = (state.cluster_queues[name] for name in queues if name in state.cluster_queues)
        reached = {member.name for cq in known_queues for member in state.tree_of(cq)}
        known = ((key, state.workloads.get(key)) for key in guard.known())
        for key in guard.lift([key for key, info in known if info is None or info.cluster_queue in reached]):
            info = state.workloads.get(key)
            if info is not None:
                state.dirty_queues.add(info.cluster_queue)
