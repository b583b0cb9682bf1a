"""Dominant resource share."""

from __future__ import annotations

import math
from typing import NamedTuple

from scheduling.quota.cells import QuotaNode


class Share(NamedTuple):
    """A dominant resource share with Kueue's order: a borrower of weight 0 is above every other one, and two of them
    compare by their unweighted ratios."""

    infinite: bool
    value: float

    @property
    def weighted(self) -> float:
        """The reported share: infinite for a borrower of weight 0."""
        return math.inf if self.infinite else self.value


NO_SHARE = Share(False, 0.0)


def dominant_resource_share(node: QuotaNode) -> Share:
    """Return the node's borrowed amount of its dominant resource, in thousandths of the lendable amount, divided by
    its weight."""
    if node.parent is None:
        return NO_SHARE
    ratio = 0.0
    for _resource, lendable, cells in node.share_rows:
        borrowed = 0
        for cell in cells:
            if cell.usage > cell.subtree:
                borrowed += cell.usage - cell.subtree
        if borrowed and lendable > 0:
            ratio = max(ratio, borrowed * 1000.0 / lendable)
    if ratio == 0.0:
        return NO_SHARE
    if node.weight == 0:
        return Share(True, ratio)
    return Share(False, ratio / node.weight)


def is_borrowing(node: QuotaNode) -> bool:
    """Return whether the node uses more than its subtree quota of any resource that it has a quota for, lendable or
    not (T53)."""
    if node.parent is None:
        return False
    return any(cell.usage > cell.subtree for _, _, cells in node.share_rows for cell in cells)
