"""Parents and their variants by key, for ClusterQueues with a concurrentAdmissionPolicy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from scheduling.lifecycle.variants import Family, family_refusal
from scheduling.model.workload import Workload
from scheduling.world import World

if TYPE_CHECKING:
    from scheduler.store.row_index import RowIndex


class VariantIndex:
    """The variants among the indexed workloads. Without a policy it is empty and costs nothing."""

    def __init__(self, rows: RowIndex, world: World) -> None:
        self._rows = rows
        self._world = world
        self._by_parent: dict[str, dict[str, None]] = {}
        """Parents -> their unfinished variants."""
        self.changed: dict[str, None] = {}
        """Parents whose variants may differ from the wanted ones."""
        self._gone: dict[str, None] = {}
        """Deleted workloads that had finished before, and may leave finished variants."""

    # -- Changes -------------------------------------------------------------------------------------------------------

    def add(self, workload: Workload) -> None:
        """Note an unfinished workload, if it is a variant."""
        if workload.parent:
            self._by_parent.setdefault(workload.parent, {})[workload.key] = None

    def remove(self, workload: Workload) -> None:
        """Note that a workload finished or was deleted."""
        siblings = self._by_parent.get(workload.parent) if workload.parent else None
        if siblings is None:
            return
        siblings.pop(workload.key, None)
        if not siblings:
            del self._by_parent[workload.parent]
        self.changed[workload.parent] = None

    def note_gone(self, key: str) -> None:
        """Note that a workload was deleted after it had finished."""
        if self._rows.features.concurrent_admission:
            self._gone[key] = None

    def forget_changes(self) -> None:
        """Stop tracking changes of variants, because this process neither creates nor removes variants."""
        self.changed.clear()
        self._gone.clear()

    # -- Queries -------------------------------------------------------------------------------------------------------

    def is_parent(self, workload: Workload) -> bool:
        """Return whether the workload is the parent of variants, one for each flavor of its ClusterQueue."""
        if not self._rows.features.concurrent_admission:
            return False
        queue = self._rows.cluster_queues.get(self._rows.cluster_queue_of(workload))
        has_policy = queue is not None and queue.concurrent_admission is not None
        return has_policy and not workload.parent and not workload.is_charged

    def parent_of(self, key: str) -> str:
        """Return the key of the parent, if the workload is one or a variant of one; else empty."""
        if not (self._rows.features.concurrent_admission or self._by_parent):
            return ""
        workload = self._world.workload(key)
        if workload is None or workload.parent:
            return workload.parent if workload is not None else ""
        return key if key in self._by_parent or self.is_parent(workload) else ""

    def keys_below(self, key: str) -> Iterable[str]:
        """Return the unfinished variants of a parent."""
        return self._by_parent.get(key, ())

    def family(self, key: str, is_wanted: Callable[[str], bool]) -> Family | None:
        """Return a parent with its variants; None if it is unknown, finished or set aside, or if its queue gives it no
        variants."""
        rows = self._rows
        parent = self._world.workload(key)
        if parent is None or key not in rows.workloads or key in rows.aside or not self.is_parent(parent):
            return None
        queue = rows.cluster_queues[rows.cluster_queue_of(parent)]
        variants = self._variants_of(key)
        wanted = {each for each in (key, *(found.key for found in variants)) if is_wanted(each)}
        return Family.of(parent, variants, wanted, queue)

    def left(self, key: str) -> tuple[Workload | None, list[Workload]]:
        """Return a workload that should have no variants (None if it ended), and its variants; no variants while it is
        set aside."""
        parent = self._parent(key)
        if key in self._rows.aside or (parent is not None and self.is_parent(parent)):
            return parent, []
        return parent, self._variants_of(key)

    def take_gone(self, limit: int) -> list[str]:
        """Return some of the deleted workloads that may leave finished variants behind, without repetitions."""
        taken = list(islice(self._gone, limit))
        for key in taken:
            del self._gone[key]
        return [key for key in taken if key not in self._rows.workloads]

    def unkept(self, key: str) -> tuple[str, ...] | None:
        """Return the flavors for which a workload should have variants; None if it has exactly these, and they are up
        to date."""
        rows = self._rows
        parent = self._parent(key)
        if key in rows.aside or (parent is not None and rows.workloads[key].deletion_requested):
            return None
        flavors: tuple[str, ...] = ()
        if parent is not None and self.is_parent(parent):
            queue = rows.cluster_queues[rows.cluster_queue_of(parent)]
            flavors = () if self.refusal(parent) else queue.flavor_order
        variants = self._variants_of(key)
        if parent is not None and any(
            (each.queue_name, each.priority, each.submitted_by, each.pod_sets)
            != (parent.queue_name, parent.priority, parent.submitted_by, parent.pod_sets)
            for each in variants
        ):
            return flavors
        return flavors if sorted(each.variant_flavor for each in variants) != sorted(flavors) else None

    def refusal(self, workload: Workload) -> str:
        """Return why a parent cannot have variants; empty if it can, or if it is not a parent."""
        if not self.is_parent(workload):
            return ""
        queue = self._rows.cluster_queues[self._rows.cluster_queue_of(workload)]
        return family_refusal(
            workload,
            queue,
            self._rows.vendors if self._rows.devices else (),
            with_topology=[name for name in queue.flavor_order if self._world.has_topology(name)],
            placed=[name for name in queue.flavor_order if self._world.places_all_pods_in(name)],
            hands_over=self._world.hands_over(queue.name),
            is_elastic=self._rows.workloads[workload.key].elastic,
        )

    def waits_for_parent(self, workload: Workload) -> bool:
        """Return whether the workload is a variant that gives its quota back when its parent has stopped."""
        parent = self._parent(workload.parent)
        return parent is not None and self.is_parent(parent)

    def _parent(self, key: str) -> Workload | None:
        return self._world.workload(key) if key in self._rows.workloads else None

    def _variants_of(self, key: str) -> list[Workload]:
        keys = [each for each in self.keys_below(key) if each in self._rows.workloads]
        return [found for each in keys if (found := self._world.workload(each)) is not None]
