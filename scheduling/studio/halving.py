"""Finds the boundary between amounts that do and do not, by halving."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_PROBES = 4
"""Above the boundary, amounts at this many equal distances are tried, to notice that the answer is not monotone."""


class Boundary(NamedTuple):
    """A sufficient amount whose neighbour is insufficient: both were tried. `monotone` is False if more distant amounts
    were found to behave otherwise, so that there may be more such boundaries."""

    amount: int
    monotone: bool


def largest(does: Callable[[int], bool], low: int, beyond: int) -> Boundary | None:
    """Return the largest sufficient amount from `low` on, given that `beyond` is insufficient; None if `low` is
    insufficient, too."""
    if low >= beyond or not does(low):
        return None
    found, monotone = _halve(does, low, beyond), True
    for probe in _probes(found, beyond):
        if probe > found and does(probe):
            found, monotone = _halve(does, probe, beyond), False
    return Boundary(found, monotone)


def least(does: Callable[[int], bool], too_little: int, most: int) -> int | None:
    """Return the smallest sufficient amount up to `most`, given that `too_little` is insufficient; None if `most` is
    insufficient, too."""
    if most <= too_little or not does(most):
        return None
    while most - too_little > 1:
        middle = (most + too_little) // 2
        if does(middle):
            most = middle
        else:
            too_little = middle
    return most


def _halve(does: Callable[[int], bool], low: int, beyond: int) -> int:
    while beyond - low > 1:
        middle = (low + beyond) // 2
        if does(middle):
            low = middle
        else:
            beyond = middle
    return low


def _probes(found: int, beyond: int) -> list[int]:
    span = beyond - 1 - found
    return sorted({found + 1 + span * part // _PROBES for part in range(1, _PROBES)} - {beyond})
