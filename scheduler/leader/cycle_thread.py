"""Runs cycles in a thread of their own, in a worker that has other tasks, too."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

_STOP_SECONDS: Final = 10.0
"""How long `stop` waits for a run, which takes about a second."""

_log = logging.getLogger(__name__)


class CycleThread:
    """Runs one task at a time, always in the same thread.

    Only this thread has the Worlds and the database session that decides. `run` schedules the named cluster, or all for
    None; a request that was not taken yet replaces later ones for the same cluster. An error ends a run but not the
    thread.
    """

    def __init__(self, run: Callable[[str | None], None]) -> None:
        self._run = run
        self._wanted: dict[str | None, None] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="cycles", daemon=True)
        self._thread.start()

    def request(self, cluster: str | None = None) -> None:
        """Have the cluster scheduled, or all, and do not wait for it."""
        with self._changed:
            self._wanted.setdefault(cluster)
            self._changed.notify()

    def stop(self) -> None:
        """End the thread after the present run; requested runs do not start."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(_STOP_SECONDS)

    def _work(self) -> None:
        while self._is_wanted():
            with self._changed:
                cluster = next(iter(self._wanted))
                del self._wanted[cluster]
            try:
                self._run(cluster)
            except Exception:  # noqa: BLE001 (whatever it is, the next run may succeed)
                _log.exception("A run of cycles failed; the next tick starts another")

    def _is_wanted(self) -> bool:
        """Wait for a request; False if the thread must end instead."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._wanted)
            return not self._stopped
