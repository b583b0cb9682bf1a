"""Reproduces Go's `sort.Sort` including the order of equal elements.

HAMi sorts a node's devices with it. Up to twelve elements, the order of equal ones is kept; beyond that it is not, and
the first device decides what a pod gets. The algorithm is a pattern-defeating quicksort without randomness. Only
`as_hami` uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

STABLE_UP_TO = 12
"""Up to this length, insertion sort is used, which keeps the order of equal elements."""
_MEDIAN_OF_MEDIANS_FROM = 50
_BREAK_FROM = 8
_MAX_SWAPS = 12
_WORD = 2**64 - 1


def sort_as_go(items: list[T], less: Callable[[T, T], bool]) -> None:
    """Sort in place."""
    _Sorter(items, less).sort(0, len(items), len(items).bit_length())


class _Sorter(Generic[T]):
    def __init__(self, items: list[T], less: Callable[[T, T], bool]) -> None:
        self._items = items
        self._less = less

    def sort(self, low: int, high: int, limit: int) -> None:
        """Sort a range. After `limit` unbalanced partitions use heap sort."""
        balanced = partitioned = True
        while high - low > STABLE_UP_TO:
            if not limit:
                self._sort_by_heap(low, high)
                return
            if not balanced:
                self._break_pattern(low, high)
                limit -= 1
            pivot, swaps = self._choose_pivot(low, high)
            if swaps == _MAX_SWAPS:
                self._items[low:high] = self._items[low:high][::-1]
                pivot, swaps = high - 1 - (pivot - low), 0
            if balanced and partitioned and not swaps and self._mend(low, high):
                return
            if low and not self._before(low - 1, pivot):
                low = self._pass_equal(low, high, pivot)
                continue
            middle, partitioned = self._partition(low, high, pivot)
            left, right = middle - low, high - middle
            balanced = min(left, right) >= (high - low) // 8
            if left < right:
                self.sort(low, middle, limit)
                low = middle + 1
            else:
                self.sort(middle + 1, high, limit)
                high = middle
        self._insert(low, high)

    def _before(self, left: int, right: int) -> bool:
        return self._less(self._items[left], self._items[right])

    def _swap(self, left: int, right: int) -> None:
        self._items[left], self._items[right] = self._items[right], self._items[left]

    def _insert(self, low: int, high: int) -> None:
        for place in range(low + 1, high):
            while place > low and self._before(place, place - 1):
                self._swap(place, place - 1)
                place -= 1

    def _partition(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Move elements less than the pivot before it. Returns the pivot's position, and whether nothing had to be
        moved."""
        self._swap(low, pivot)
        left, right = low + 1, high - 1
        moved = False
        while True:
            while left <= right and self._before(left, low):
                left += 1
            while left <= right and not self._before(right, low):
                right -= 1
            if left > right:
                break
            self._swap(left, right)
            left, right, moved = left + 1, right - 1, True
        self._swap(right, low)
        return right, not moved

    def _pass_equal(self, low: int, high: int, pivot: int) -> int:
        """Move elements equal to the pivot (the minimum) to the front. Returns where the rest begins."""
        self._swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self._before(low, left):
                left += 1
            while left <= right and self._before(low, right):
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1

    def _mend(self, low: int, high: int) -> bool:
        """Return whether the range is sorted, after at most five corrections in a long one."""
        place = low + 1
        for _ in range(5):
            while place < high and not self._before(place, place - 1):
                place += 1
            if place == high:
                return True
            if high - low < _MEDIAN_OF_MEDIANS_FROM:
                return False
            self._swap(place, place - 1)
            self._shift(low, place, high)
        return False

    def _shift(self, low: int, place: int, high: int) -> None:
        if place - low >= 2:
            for back in range(place - 1, 0, -1):
                if not self._before(back, back - 1):
                    break
                self._swap(back, back - 1)
        if high - place >= 2:
            for ahead in range(place + 1, high):
                if not self._before(ahead, ahead - 1):
                    break
                self._swap(ahead, ahead - 1)

    def _break_pattern(self, low: int, high: int) -> None:
        """Swap three elements in the middle with pseudo-random ones; the generator is seeded with the length."""
        length = high - low
        if length < _BREAK_FROM:
            return
        state, mask = length, (1 << length.bit_length()) - 1
        middle = low + length // 4 * 2 - 1
        for step in range(3):
            state ^= state << 13 & _WORD
            state ^= state >> 7
            state ^= state << 17 & _WORD
            other = state & mask
            self._swap(middle - 1 + step, low + (other - length if other >= length else other))

    def _choose_pivot(self, low: int, high: int) -> tuple[int, int]:
        """Return the median of three or nine elements as the pivot, and a hint about the present order from the number
        of swaps."""
        quarter = (high - low) // 4
        places = [low + quarter, low + 2 * quarter, low + 3 * quarter]
        swaps = 0
        if high - low >= _MEDIAN_OF_MEDIANS_FROM:
            for number, place in enumerate(places):
                places[number], more = self._median(place - 1, place, place + 1)
                swaps += more
        pivot, more = self._median(*places)
        return pivot, swaps + more

    def _median(self, first: int, second: int, third: int) -> tuple[int, int]:
        swaps = 0
        if self._before(second, first):
            first, second, swaps = second, first, swaps + 1
        if self._before(third, second):
            second, third, swaps = third, second, swaps + 1
        if self._before(second, first):
            first, second, swaps = second, first, swaps + 1
        return second, swaps

    def _sort_by_heap(self, low: int, high: int) -> None:
        count = high - low
        for root in range((count - 1) // 2, -1, -1):
            self._sift(low, root, count)
        for last in range(count - 1, -1, -1):
            self._swap(low, low + last)
            self._sift(low, 0, last)

    def _sift(self, low: int, root: int, count: int) -> None:
        while (child := 2 * root + 1) < count:
            if child + 1 < count and self._before(low + child, low + child + 1):
                child += 1
            if not self._before(low + root, low + child):
                return
            self._swap(low + root, low + child)
            root = child
