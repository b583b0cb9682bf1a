"""Wake-ups of the engine after rows have changed, never messages that must arrive.

The leader also ticks each second and beat sends a push every few, so a lost wake-up costs seconds and nothing else.
That is why nothing here may fail or delay the request that caused it.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError
from redis import RedisError

from foundation.redis_client import redis_client

SCHEDULE_TASK: Final = "scheduler.tasks.run_cycles"
PUSH_TASK: Final = "clusters.tasks.push_cluster"
RELEASE_TASK: Final = "clusters.tasks.release_pods"
FORCED_DELETION_TASK: Final = "clusters.tasks.force_deletion"
_SCHEDULE_QUEUE: Final = "scheduler"
_OWN_QUEUE: Final = "scheduler-"
PUSH_QUEUE: Final = "push"

_COLLAPSE_MILLISECONDS: Final = 1000
"""A wake-up replaces all later ones for this long, unless the task takes it sooner (`wake_taken`)."""
_JOINED_SECONDS: Final = 0.1
"""Wake-ups that have waited this long to be joined with others are sent with the next one."""
_PAUSE_SECONDS: Final = 1.0
"""After Redis did not answer, the tick alone wakes the engine for this long."""

_log = logging.getLogger(__name__)


def scheduler_queue(cluster: str) -> str:
    """Return the queue of the workers that schedule a cluster. Clusters in OWN_SCHEDULERS have workers of their own."""
    return f"{_OWN_QUEUE}{cluster}" if cluster in settings.OWN_SCHEDULERS else _SCHEDULE_QUEUE


def scheduled_cluster(queues: Iterable[str]) -> str | None:
    """Return the only cluster that a worker of these queues schedules, "" for all clusters without their own workers,
    or None for a worker that schedules no cluster."""
    for queue in queues:
        if queue == _SCHEDULE_QUEUE or queue.startswith(_OWN_QUEUE):
            return queue.removeprefix(_SCHEDULE_QUEUE).removeprefix("-")
    return None


def wake_scheduler(cluster: str) -> None:
    """On commit, start a run of cycles for the named cluster, unless one is already on its way. Never raises."""
    transaction.on_commit(partial(_broker.send, SCHEDULE_TASK, scheduler_queue(cluster), cluster), robust=True)


def request_push(cluster: str) -> None:
    """On commit, ask a push worker to write the pending decisions of this cluster. Requests are merged like wake-ups.
    Never raises."""
    transaction.on_commit(partial(_broker.send, PUSH_TASK, PUSH_QUEUE, cluster), robust=True)


def request_release(cluster: str, pods: Sequence[tuple[str, str]]) -> None:
    """On commit, request that Kueue's finalizer be removed from pods of the named cluster, each given by namespace and
    name. A lost request is repeated with the watcher's next list. Never raises."""
    transaction.on_commit(partial(_broker.send, RELEASE_TASK, PUSH_QUEUE, cluster, pods=pods), robust=True)


def request_forced_deletion(cluster: str, pods: Sequence[tuple[str, str]]) -> None:
    """On commit, request the deletion without a kubelet of pods of the named cluster, each given by namespace and name.
    A lost request is repeated with the watcher's next list. Never raises."""
    transaction.on_commit(partial(_broker.send, FORCED_DELETION_TASK, PUSH_QUEUE, cluster, pods=pods), robust=True)


def request_chore(task: str, seconds: float) -> None:
    """Request a housekeeping task in a push worker within this many seconds. Several requests cause one run. Never
    raises."""
    _broker.send_once(task, PUSH_QUEUE, _key(task, ""), {}, seconds)


@contextmanager
def joined_wake_ups() -> Iterator[None]:
    """Send the wake-ups of this thread's block at its end, without repetitions, so that several commits cause one run
    instead of a run each."""
    with _broker.joined():
        yield


def wake_taken(task: str, cluster: str) -> None:
    """Accept further wake-ups. The task calls this before it reads anything, because later changes need another
    wake-up."""
    try:
        redis_client().delete(_key(task, cluster))
    except RedisError as error:
        _log.warning("A wake-up stays marked as pending for %d ms: %s", _COLLAPSE_MILLISECONDS, error)


def _key(task: str, cluster: str) -> str:
    return f"kueueweb:wake:{task}:{cluster}"


class _Joined(threading.local):
    """The wake-ups that wait for the end of a block of this thread, as (task, queue, cluster); None outside a block."""

    waiting: dict[tuple[str, str, str], None] | None = None
    since: float = 0.0


class _Broker:
    """Sends wake-ups, and stops trying for a moment when Redis does not answer."""

    def __init__(self) -> None:
        self._paused_until = 0.0
        self._joined = _Joined()

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Delay the wake-ups of the block until its end. A nested block has no effect."""
        if self._joined.waiting is not None:
            yield
            return
        self._joined.waiting = {}
        try:
            yield
        finally:
            try:
                self._send_waiting()
            finally:
                self._joined.waiting = None  # otherwise the thread's later wake-ups wait for a block that is over

    def send(self, task: str, queue: str, cluster: str, **arguments: Any) -> None:
        """Send the task. A task without arguments is not sent while another one is on its way."""
        waiting = self._joined.waiting
        if waiting is None or arguments:
            key = "" if arguments else _key(task, cluster)
            self.send_once(task, queue, key, {"cluster": cluster, **arguments}, expires=60)
            return
        if not waiting:
            self._joined.since = time.monotonic()
        waiting.setdefault((task, queue, cluster))
        if time.monotonic() - self._joined.since >= _JOINED_SECONDS:
            self._send_waiting()

    def _send_waiting(self) -> None:
        waiting, self._joined.waiting = self._joined.waiting or {}, {}
        for task, queue, cluster in waiting:
            self.send_once(task, queue, _key(task, cluster), {"cluster": cluster}, expires=60)

    def send_once(self, task: str, queue: str, key: str, kwargs: Mapping[str, Any], expires: float) -> None:
        """Send the task, unless one with the same key (if it has a key) is on its way."""
        if time.monotonic() < self._paused_until:
            return
        try:
            if not key or redis_client().set(key, 1, nx=True, px=_COLLAPSE_MILLISECONDS):
                current_app.send_task(task, kwargs=dict(kwargs), queue=queue, retry=False, expires=expires)
        except (RedisError, OperationalError, OSError) as error:
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            _log.warning("%s could not be sent; the next tick repeats it: %s %s", task, dict(kwargs), error)


_broker = _Broker()
