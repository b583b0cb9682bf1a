"""Whether the holder of a Lease lives, judged as Kubernetes' leader election does: by when the lease was seen to
change, on a clock of our own that only goes forward. What time the holder writes is never compared with ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from clusters.client import JsonObject


class LeaseWatch:
    """What was seen of one lease, by one process."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._seen: tuple[str, str] | None = None
        self._since = 0.0
        self._lock = threading.Lock()

    def look(self, lease: JsonObject | None) -> float:
        """For how many seconds the lease has been as it is: 0 at the first look, and after each change."""
        now, spec = self._steady(), (lease or {}).get("spec") or {}
        state = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
        with self._lock:
            if state != self._seen:
                self._seen, self._since = state, now
            return now - self._since
