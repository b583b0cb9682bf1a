"""Writes events into a cluster as Kubernetes' own clients do: repeated ones are counted, similar ones combined."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, Generic, TypeVar

from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import EVENTS
from clusters.client import ClusterClient
from clusters.request_threads import carry_out
from scheduling.model.times import rfc3339

_log = logging.getLogger(__name__)

_COMPONENT: Final = "kueueweb"
_HOME: Final = "default"
"""The namespace in which Kubernetes keeps events of objects without a namespace."""
_MAX_MESSAGE: Final = 1024
_MAX_REMEMBERED: Final = 4096
_SIMILAR_SECONDS: Final = 600.0
_MAX_SIMILAR: Final = 10
"""The bounds of client-go: how many series are remembered, and how many messages one reason has in ten minutes."""
_BURST: Final = 25.0
_REFILL_SECONDS: Final = 300.0
"""The refill of an object's burst of events, as in client-go: one in five minutes."""

_Key = tuple[str, ...]
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def reference(self) -> dict[str, Any]:
        found = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return {**found, "namespace": self.namespace} if self.namespace else found


@dataclass(frozen=True, slots=True)
class Notice:
    """An event to write. `row`: the key of the recorded event that it tells; 0: none is recorded."""

    regarding: Regarding
    reason: str
    message: str
    at: datetime
    warning: bool = False
    row: int = 0


@dataclass(slots=True)
class _Series:
    """An event in the cluster, and its count."""

    name: str
    count: int


@dataclass(slots=True)
class _Similar:
    """The messages of events with the same reason."""

    since: datetime
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Budget:
    """How many events of an object may be written."""

    tokens: float
    at: datetime


class _Recent(Generic[_Value]):
    """The entries that were used last."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key) -> _Value | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: _Key, value: _Value) -> _Value:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > _MAX_REMEMBERED:
            self._entries.popitem(last=False)
        return value


_lock: Final = threading.Lock()
_series: Final = _Recent[_Series]()
_similar: Final = _Recent[_Similar]()
_budgets: Final = _Recent[_Budget]()


class EventRecorder:
    """Writes events about objects of one cluster."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def record_all(self, notices: Sequence[Notice]) -> tuple[list[Notice], ClusterUnreachable | None]:
        """Write events from several threads, those of one object in their order.

        Returns the notices that got no answer, and the reason.
        """
        by_object: dict[Regarding, list[Notice]] = {}
        for notice in notices:
            by_object.setdefault(notice.regarding, []).append(notice)
        left = [list(each) for each in by_object.values()]
        results = carry_out([partial(self._record_in_order, each) for each in left])
        unanswered = (result for result in results if isinstance(result, ClusterUnreachable))
        return [notice for each in left for notice in each], next(unanswered, None)

    def _record_in_order(self, notices: list[Notice]) -> None:
        """Write an object's events, and remove each from the list."""
        while notices:
            notice = notices[0]
            self.record(notice.regarding, notice.reason, notice.message, notice.at, warning=notice.warning)
            del notices[0]

    def record(self, regarding: Regarding, reason: str, message: str, at: datetime, *, warning: bool = False) -> None:
        """Write an event, or count it if it exists. A failure is logged and otherwise ignored. Raises
        ClusterUnreachable."""
        type_ = "Warning" if warning else "Normal"
        about = (self._client.server, regarding.kind, regarding.namespace, regarding.name, regarding.uid)
        with _lock:
            if not _may_write(about, at):
                return
            message, key = _combined((*about, type_, reason), message[:_MAX_MESSAGE], at)
            known = _series.get(key)
        try:
            if known is None or not self._count(regarding, known, message, at):
                self._create(regarding, type_, reason, message, at, key)
        except ClusterUnreachable:
            raise
        except ClusterError as refusal:
            _log.warning("The event %r of %s %s can't be written: %s", reason, regarding.kind, regarding.name, refusal)

    def _count(self, regarding: Regarding, known: _Series, message: str, at: datetime) -> bool:
        """False if the event has expired."""
        patch = {"count": known.count + 1, "lastTimestamp": rfc3339(at), "message": message}
        try:
            self._client.patch(EVENTS, regarding.namespace or _HOME, known.name, patch)
        except ClusterError as refusal:
            if not refusal.not_found:
                raise
            return False
        known.count += 1
        return True

    def _create(self, regarding: Regarding, type_: str, reason: str, message: str, at: datetime, key: _Key) -> None:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{regarding.name}.", "namespace": regarding.namespace or _HOME},
            "type": type_,
            "reason": reason,
            "action": reason,
            "message": message,
            "involvedObject": regarding.reference,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": _COMPONENT,
            "firstTimestamp": rfc3339(at),
            "lastTimestamp": rfc3339(at),
            "count": 1,
        }
        stored = self._client.create(EVENTS, event)
        with _lock:
            _series.put(key, _Series(str(stored["metadata"]["name"]), 1))


def _may_write(about: _Key, at: datetime) -> bool:
    budget = _budgets.get(about) or _budgets.put(about, _Budget(_BURST, at))
    gained = max(0.0, (at - budget.at).total_seconds()) / _REFILL_SECONDS
    budget.tokens, budget.at = min(_BURST, budget.tokens + gained), max(at, budget.at)
    if budget.tokens < 1.0:
        return False
    budget.tokens -= 1.0
    return True


def _combined(kind: _Key, message: str, at: datetime) -> tuple[str, _Key]:
    """Return the message, and the series that it belongs to: one of its own, or that of many similar ones."""
    similar = _similar.get(kind)
    if similar is None or (at - similar.since).total_seconds() > _SIMILAR_SECONDS:
        similar = _similar.put(kind, _Similar(at))
    if len(similar.messages) < _MAX_SIMILAR or message in similar.messages:
        similar.messages.add(message)
        return message, (*kind, message)
    return f"(combined from similar events): {message}"[:_MAX_MESSAGE], kind
