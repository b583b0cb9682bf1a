"""HAMi's node lock, and the handshake of device plugins. Times are seconds since the epoch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from gpus.annotations.errors import AnnotationError
from scheduling.model.times import rfc3339

MUTEX_LOCK = "hami.io/mutex.lock"
LOCK_TIMEOUT_SECONDS = 300.0
HANDSHAKE_TIMEOUT_SECONDS = 60.0

_HANDSHAKE_TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class NodeLock:
    """The holder of a node's allocation mutex and its time. The older form is a bare time without a holder."""

    taken_at: float
    namespace: str = ""
    pod: str = ""

    def encode(self) -> str:
        """Return the value of `hami.io/mutex.lock`."""
        moment = rfc3339(self.taken_at, whole_seconds=True)
        return f"{moment},{self.namespace},{self.pod}" if self.pod else moment

    @classmethod
    def decode(cls, text: str) -> NodeLock:
        """Read a lock. Raises AnnotationError; such a lock blocks the node until an operator removes it."""
        fields = text.split(",")
        if len(fields) not in (1, 3):
            raise AnnotationError(f"expected a time, or a time, a namespace and a pod: {text!r}")
        try:
            moment = datetime.fromisoformat(fields[0])
        except ValueError as error:
            raise AnnotationError(f"{fields[0]!r} is not a time in RFC 3339") from error
        if moment.tzinfo is None:
            raise AnnotationError(f"{fields[0]!r} has no time zone")
        return cls(moment.timestamp(), *fields[1:])

    def free_for(
        self,
        namespace: str,
        pod: str,
        now: float,
        *,
        holder_exists: bool,
        timeout_seconds: float = LOCK_TIMEOUT_SECONDS,
    ) -> bool:
        """Return whether a pod may take the lock: it holds the lock already, the lock has expired, or its holder no
        longer exists."""
        if (self.namespace, self.pod) == (namespace, pod):
            return True
        if now - self.taken_at > timeout_seconds:
            return True
        return bool(self.pod) and not holder_exists


def plugin_answers(handshake: str | None, allocatable_count: int, now: float) -> bool:
    """Return whether a vendor's device plugin on a node counts as alive (HAMi's rule).

    A request younger than 60 s, or an unreadable one, leaves it alive; with an older one it is alive while the node
    still has the vendor's resource. Any other value is an answer, except the older mark `Deleted_`.
    """
    if handshake is None:
        return True
    if handshake.startswith("Deleted"):
        return allocatable_count > 0
    match = re.search(r"Requesting_(.*)", handshake)
    if match is None:
        return True
    try:
        asked = datetime.strptime(match[1], _HANDSHAKE_TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return True
    return now - asked < HANDSHAKE_TIMEOUT_SECONDS or allocatable_count > 0
