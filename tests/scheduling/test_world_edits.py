"""Whatever is edited in whatever order: the world is the one that would be built from what is there at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.workload import Workload
from scheduling.state.status import Usage
from scheduling.world import World
from tests.scheduling.world_helpers import Builder
from tests.scheduling.worlds import Plan, plans


def rows(world: World) -> dict[str, list[Usage]]:
    """Usage of every node that is in use or has a quota, in a fixed order."""
    found = {f"queue {name}": world.cluster_queue_status(name).usage for name in world.cluster_queue_names()}
    found |= {f"cohort {name}": world.cohort_status(name).usage for name in world.cohort_names()}
    return {
        name: sorted(
            (row for row in usage if row.subtree_quota or row.used), key=lambda row: (row.flavor, row.resource)
        )
        for name, usage in found.items()
    }


def shares(world: World) -> dict[str, float]:
    """Weighted shares of the ClusterQueues."""
    return {name: world.cluster_queue_status(name).weighted_share for name in world.cluster_queue_names()}


class Editor:
    """A world under edits, and what is there now."""

    def __init__(self, plan: Plan) -> None:
        self.builder = plan.build()
        self.cohorts = {name: (parent, quotas) for name, parent, quotas in plan.cohorts}
        self.queues = {name: (quotas, cohort, fields) for name, quotas, cohort, fields in plan.queues}
        self.workloads = {each.key for each in plan.workloads}
        self.fair = plan.fair

    def set_queue(self, name: str, quotas: Any, cohort: str, fields: dict[str, Any]) -> None:
        """Edit a ClusterQueue, or bring it back."""
        self.queues[name] = (quotas, cohort, fields)
        self.builder.queue(name, quotas, cohort, **fields)

    def delete_queue(self, name: str) -> None:
        """Delete a ClusterQueue while it may be in use."""
        self.queues.pop(name, None)
        self.builder.world.delete_cluster_queue(name)

    def set_cohort(self, name: str, parent: str, quotas: Any) -> None:
        """Edit a cohort, or bring it back."""
        self.cohorts[name] = (parent, quotas)
        self.builder.cohort(name, parent, quotas)

    def delete_cohort(self, name: str) -> None:
        """Delete a cohort; it may still be named."""
        self.cohorts.pop(name, None)
        self.builder.world.delete_cohort(name)

    def run(self) -> None:
        """A cycle; who is preempted stops."""
        for preemption in self.builder.world.run_cycle(1000.0).preemptions:
            self.builder.world.release_workload(preemption.workload, 1000.0)

    def finish(self, key: str) -> None:
        """A workload is done."""
        self.workloads.discard(key)
        self.builder.world.finish_workload(key, 1000.0)

    def fresh(self) -> World:
        """A world built from what is there now."""
        builder = Builder(fair=self.fair)
        for name, (parent, quotas) in self.cohorts.items():
            builder.cohort(name, parent, quotas)
        for name, (quotas, cohort, fields) in self.queues.items():
            builder.queue(name, quotas, cohort, **fields)
        for key in sorted(self.workloads):
            found = self.builder.world.workload(key)
            assert isinstance(found, Workload)
            builder.world.set_workload(found, 1000.0)
        return builder.world


def edit(editor: Editor, other: Plan, choice: int, number: int) -> None:
    """One edit, taken from another plan."""
    queue, cohort = other.queues[number % len(other.queues)], other.cohorts[number % len(other.cohorts)]
    keys = sorted(editor.workloads)
    edits: list[Callable[[], None]] = [
        editor.run,
        lambda: editor.set_queue(*queue),
        lambda: editor.delete_queue(queue[0]),
        lambda: editor.set_cohort(*cohort),
        lambda: editor.delete_cohort(cohort[0]),
        lambda: editor.finish(keys[number % len(keys)]) if keys else None,
    ]
    edits[choice % len(edits)]()


@given(plans(), plans(), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=12))
def test_the_world_after_edits_is_the_world_built_afresh(plan: Plan, other: Plan, steps: list[tuple[int, int]]) -> None:
    editor = Editor(plan)
    for choice, number in steps:
        edit(editor, other, choice, number)
    world, fresh = editor.builder.world, editor.fresh()
    assert rows(world) == rows(fresh)
    assert shares(world) == shares(fresh)
    world.has_active()  # reads the workloads again that waited for a queue that came back
    for name in world.cluster_queue_names():
        waiting = {entry.workload for entry in world.pending(name)}
        assert waiting == {entry.workload for entry in fresh.pending(name)}
