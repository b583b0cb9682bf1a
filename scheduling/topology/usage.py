"""The usage of topology leaves by workloads, with a log of changed leaves.

Code that derives data from leaves reads the log and updates only what changed. Flavors whose leaves are single nodes
share one `LeafUsage`, since they may share nodes.
"""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, Sequence

from scheduling.model.resources import PODS
from scheduling.model.topology import TopologyUsage
from scheduling.topology.tree import LeafKey

_MAX_LOG_LENGTH = 65536


class LeafUsage:
    """Amounts used by leaf and resource, in base units. A leaf may have usage without having nodes."""

    __slots__ = ("_amounts", "_changed", "_forgotten")

    def __init__(self) -> None:
        self._amounts: dict[LeafKey, dict[str, int]] = {}
        self._changed: list[LeafKey] = []
        self._forgotten = 0

    def of(self, leaf: LeafKey) -> Mapping[str, int]:
        """Return the amounts of one leaf, a live view."""
        return self._amounts.setdefault(leaf, {})

    def items(self) -> ItemsView[LeafKey, dict[str, int]]:
        return self._amounts.items()

    def add(self, usage: TopologyUsage) -> None:
        """Charge requests x count, and `pods` with count, to each domain's leaf."""
        self._charge(usage, 1)

    def remove(self, usage: TopologyUsage) -> None:
        """Undo one `add` of the same usage."""
        self._charge(usage, -1)

    def _charge(self, usage: TopologyUsage, sign: int) -> None:
        for domain in usage.domains:
            amounts = self._amounts.setdefault(domain.values, {})
            pods = sign * domain.count
            for resource, amount in usage.requests.items():
                _charge(amounts, resource, amount * pods)
            _charge(amounts, PODS, pods)
            self.note(domain.values)

    def snapshot(self) -> dict[LeafKey, dict[str, int]]:
        """Return a copy of all amounts."""
        return {leaf: dict(amounts) for leaf, amounts in self._amounts.items() if amounts}

    def restore(self, values: Mapping[LeafKey, Mapping[str, int]]) -> None:
        """Restore a snapshot, and log the leaves that change."""
        for leaf in {**self._amounts, **values}:
            amounts, before = self._amounts.setdefault(leaf, {}), values.get(leaf, {})
            if amounts != before:
                amounts.clear()
                amounts.update(before)
                self.note(leaf)

    def note(self, leaf: LeafKey) -> None:
        """Log a change of the leaf."""
        if len(self._changed) >= _MAX_LOG_LENGTH:
            self._forgotten += len(self._changed)
            self._changed.clear()
        self._changed.append(leaf)

    @property
    def position(self) -> int:
        """The current end of the log."""
        return self._forgotten + len(self._changed)

    def changed_since(self, position: int) -> Sequence[LeafKey] | None:
        """Return the leaves that changed since that position, possibly repeated; None if the log does not reach back
        that far."""
        start = position - self._forgotten
        return self._changed[start:] if start >= 0 else None


def _charge(amounts: dict[str, int], resource: str, amount: int) -> None:
    total = amounts.get(resource, 0) + amount
    if total:
        amounts[resource] = total
    else:
        amounts.pop(resource, None)
