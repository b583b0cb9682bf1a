"""The state of a wait or a watch between two answers: the same for both clients, without any waiting."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from typing import Any, Final, Literal

from kueueweb_client import calls
from kueueweb_client.calls import Call
from kueueweb_client.errors import ApiError, ClientError, Failed, Timeout, Unreachable
from kueueweb_client.types import Object, WorkloadDetail

Goal = Literal["admitted", "finished", "deleted"]

PAUSE_SECONDS: Final = 1.0
_MAX_PAUSE_SECONDS: Final = 60
_POLL_SECONDS: Final = 25
"""How long the server may hold one request; proxies often close connections that are silent for a minute."""
_PATIENCE_SECONDS: Final = 60.0
_NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
_LATER: Final = (_TOO_MANY, 503)
_REACHED_AT: Final[Mapping[Goal, tuple[str, ...]]] = {
    "admitted": ("Admitted", "Finished"),
    "finished": ("Finished",),
    "deleted": (),
}
_log = logging.getLogger("kueueweb_client")


class _Reconnects:
    """The time of the next request after an error: once there was an answer, for a while, and never in silence."""

    def __init__(self) -> None:
        self._last_answer: float | None = None

    def answered(self) -> None:
        self._last_answer = time.monotonic()

    def pause(self, error: ClientError) -> float:
        """Return the seconds until the next attempt. Raises the error if another attempt is pointless."""
        passing = isinstance(error, Unreachable) or (isinstance(error, ApiError) and error.status in _LATER)
        if not passing or self._last_answer is None or time.monotonic() - self._last_answer > _PATIENCE_SECONDS:
            raise error
        asked = error.retry_after_seconds if isinstance(error, ApiError) else None
        seconds = min(asked or PAUSE_SECONDS, _MAX_PAUSE_SECONDS)
        _log.warning("retrying in %g s: %s", seconds, error)
        return seconds


class Wait:
    """One wait for a workload: each question is answered when the workload has changed."""

    def __init__(self, namespace: str, name: str, until: Goal, timeout_seconds: float) -> None:
        self.found: WorkloadDetail | None = None
        self._namespace = namespace
        self._name = name
        self._until = until
        self._deadline = time.monotonic() + timeout_seconds
        self._may_stay = True
        self._reconnects = _Reconnects()

    def call(self) -> Call[WorkloadDetail | None]:
        """Return the next call."""
        left = max(0.0, min(self._deadline - time.monotonic(), _POLL_SECONDS))
        version = self.found["resource_version"] if self.found and self._may_stay else ""
        return calls.changed_workload(self._namespace, self._name, version, math.ceil(left))

    def is_over(self, answer: WorkloadDetail | None) -> bool:
        """Return whether the workload has reached the goal. Raises `Failed` if it ended otherwise, `Timeout` if it is
        late."""
        self._reconnects.answered()
        self._may_stay = True
        self.found = found = answer or self.found
        assert found is not None, "the first request names no version, so the answer is a workload"
        status = found["status"]
        if status == "Finished" and found["reason"] != "Succeeded" and self._until != "deleted":
            raise Failed(f"Workload {self._key} ended: {found['reason']}: {found['message']}")
        if status in _REACHED_AT[self._until]:
            return True
        self._check_time(f"{status}. {found['message']}".strip())
        return False

    def pause(self, error: ClientError) -> float | None:
        """Return the seconds until the next attempt; None if the workload was deleted and the caller waited for that.
        Otherwise raises."""
        if isinstance(error, ApiError) and error.status == _NOT_FOUND and self._until == "deleted":
            self.found = None
            return None
        seconds = self._reconnects.pause(error)
        self._check_time(str(error))
        # If too many clients watch already, poll instead.
        self._may_stay = not (isinstance(error, ApiError) and error.status == _TOO_MANY)
        return seconds

    @property
    def _key(self) -> str:
        return f"{self._namespace}/{self._name}"

    def _check_time(self, state: str) -> None:
        if time.monotonic() > self._deadline:
            raise Timeout(f"Workload {self._key} is not {self._until} yet: {state}")


class Watch:
    """One watch of a workload, which reconnects as often as necessary."""

    def __init__(self, namespace: str, name: str) -> None:
        self.has_ended = False
        self._namespace = namespace
        self._name = name
        self._version = ""
        self._shown: Mapping[str, Any] = {}
        self._reconnects = _Reconnects()

    def call(self) -> Call[str]:
        """Return the next call."""
        return calls.watch_workload(self._namespace, self._name, self._version)

    def take(self, line: str) -> WorkloadDetail | None:
        """Return the state in a line of the stream, if it is new. Raises `ApiError` if the server ends the stream with
        a refusal."""
        self._reconnects.answered()
        event = json.loads(line)
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(found["status"], found["reason"], found["message"])
        if kind == "DELETED":
            self.has_ended = True
            return None
        self._version = found["resource_version"]
        if kind == "BOOKMARK":
            return None
        self.has_ended = found["status"] == "Finished"
        shown = {name: value for name, value in found.items() if name != "resource_version"}
        if shown == self._shown:
            return None
        self._shown = shown
        state: WorkloadDetail = found
        return state

    def pause(self, error: ClientError) -> float:
        """Return the seconds until the next attempt. Raises the error if another attempt is pointless."""
        if isinstance(error, ApiError) and error.status == _NOT_FOUND and self._version:
            self.has_ended = True
            return 0
        return self._reconnects.pause(error)


class ObjectWatch:
    """One watch of a list in Kubernetes' wire format, over as many connections as it takes."""

    def __init__(self, address: str, plural: str, version: str, selection: Mapping[str, Any]) -> None:
        self._address = address
        self._plural = plural
        self._version = version
        self._selection = selection
        self._reconnects = _Reconnects()

    def call(self) -> Call[str]:
        """Return the next call."""
        return calls.watch_objects(self._address, self._plural, resourceVersion=self._version, **self._selection)

    def take(self, line: str) -> tuple[str, Object] | None:
        """Return the type and the object of an event. Raises `ApiError` if the server ends the stream with a
        refusal."""
        self._reconnects.answered()
        event = json.loads(line)
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(found.get("code", 0), found.get("reason", ""), found.get("message", ""))
        self._version = found["metadata"]["resourceVersion"]
        return None if kind == "BOOKMARK" else (kind, found)

    def pause(self, error: ClientError) -> float:
        """Return the seconds until the next attempt. Raises the error if another attempt is pointless."""
        return self._reconnects.pause(error)
