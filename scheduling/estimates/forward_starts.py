"""Runs a queue forward: best-effort FIFO, and best fit among places, for many draws of the run times at once."""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NEVER: Final = np.iinfo(np.int64).max


class ForwardRun:
    """A queue over places, in D draws side by side.

    `free` is (P, K): P places with K resources. `ends` is (D, R): when each of R running workloads ends, in seconds
    from now; `held_place` is (R,), `held` (R, K). `lasts` is (D, Q): how long each of Q waiting workloads runs; `asked`
    is (Q, K), in the order of the queue.
    """

    def __init__(self, free: Ints, ends: Floats, held_place: Ints, held: Ints, lasts: Floats, asked: Ints) -> None:
        draws, self._waiting_count = lasts.shape
        self._running_count = ends.shape[1]
        self._free = np.repeat(free[None], draws, axis=0)
        self._ends = np.hstack([ends, np.full(lasts.shape, np.inf)])
        self._place = np.hstack(
            [np.repeat(held_place[None], draws, axis=0), np.zeros(lasts.shape, dtype=np.int64)],
        )
        self._amounts = np.vstack([held, asked])
        self._lasts = lasts
        self._kinds, self._kind_of = np.unique(asked, axis=0, return_inverse=True)
        self._kind_of = self._kind_of.reshape(-1)
        self._waits = np.ones(lasts.shape, dtype=np.bool_)
        self._now = np.zeros(draws)
        self.starts = np.full(lasts.shape, np.inf)

    def run(self, until: int | None = None) -> Floats:
        """Return (D, Q) starts in seconds from now, infinite if a workload never starts. With `until`, draws end as
        soon as the waiting workload of that index has started.
        """
        active = np.arange(self._now.size)
        while active.size:
            self._start_fitting(active)
            waits = self._waits[active]
            active = active[waits.any(axis=1) if until is None else waits[:, until]]
            active = self._release_next(active)
        return self.starts

    def _start_fitting(self, active: Ints) -> None:
        """Start the first workload in queue order that fits, until none fits. Free capacity only shrinks, so one pass
        over the queue is enough.
        """
        while active.size:
            free = self._free[active]
            fits = self._fits(free)
            ready = np.take(fits.any(axis=1), self._kind_of, axis=1)
            ready &= self._waits[active]
            first = ready.argmax(axis=1)
            found = np.nonzero(ready[np.arange(active.size), first])[0]
            if not found.size:
                return
            active, first = active[found], first[found]
            fitting = fits[found, :, self._kind_of[first]]
            place = np.where(fitting, free[found].sum(axis=2), _NEVER).argmin(axis=1)
            self._free[active, place] -= self._amounts[self._running_count + first]
            self._waits[active, first] = False
            self.starts[active, first] = self._now[active]
            column = self._running_count + first
            self._place[active, column] = place
            self._ends[active, column] = self._now[active] + self._lasts[active, first]

    def _fits(self, free: Ints) -> npt.NDArray[np.bool_]:
        """Return (draws, P, kinds of requests): whether the request fits in the free amounts of the place."""
        fits: npt.NDArray[np.bool_] = free[:, :, :1] >= self._kinds[:, 0]
        for resource in range(1, self._kinds.shape[1]):
            fits &= free[:, :, resource, None] >= self._kinds[:, resource]
        return fits

    def _release_next(self, active: Ints) -> Ints:
        """End the next workload of each draw; return the draws in which one ended."""
        ends = self._ends[active]
        column = ends.argmin(axis=1)
        at = ends[np.arange(active.size), column]
        alive = np.isfinite(at)
        active, column, at = active[alive], column[alive], at[alive]
        self._now[active] = at
        self._free[active, self._place[active, column]] += self._amounts[column]
        self._ends[active, column] = np.inf
        return active
