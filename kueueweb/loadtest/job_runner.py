"""Creates a shape's workloads as Jobs in a cluster, and sees each start and end.

The scheduler of the cluster decides: kueueweb, Kueue or another one that starts a suspended Job. The times are of one
clock, this machine's, and of one watch of the Jobs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient
from kueueweb.loadtest.runner import StalledRun
from kueueweb.loadtest.shape import NAMESPACE, Arrival, Shape, arrivals
from kueueweb.loadtest.shape_jobs import JOBS, MARK, job_of

_LOOK_SECONDS: Final = 0.2
_SAID_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 1.0
_ENDED: Final = ("Complete", "Failed")


@dataclass(slots=True)
class JobLife:
    """One Job as the runner saw it; times are seconds of the monotonic clock.

    * started_at: when it was last started, that is, was seen with `suspend: false` after it was suspended.
    * stops: how often it was suspended again.
    """

    arrival: Arrival
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    failed: bool = False
    stops: int = 0


@dataclass(slots=True)
class JobRun:
    """The result of a run: every Job, and the start and the end."""

    began_at: float = 0.0
    ended_at: float = 0.0
    lives: dict[str, JobLife] = field(default_factory=dict)


class JobRunner:
    """One run of a shape in a cluster.

    * connections: how many requests are under way at most; each waits for its answer.
    * until_started: end when each Job has started once, as in a cluster in which no pod can run.
    """

    def __init__(
        self,
        client: ClusterClient,
        shape: Shape,
        say: Callable[[str], None],
        *,
        image: str,
        connections: int = 8,
        until_started: bool = False,
        patience_seconds: float = 60.0,
    ) -> None:
        self._client = client
        self._shape = shape
        self._say = say
        self._image = image
        self._connections = connections
        self._until_started = until_started
        self._patience_seconds = patience_seconds
        self._run = JobRun()
        self._error: Exception | None = None
        self._stopped = threading.Event()
        self._end_watch: Callable[[], None] = lambda: None

    def run(self) -> JobRun:
        """Run until the last Job has ended or, if asked, has started. Raises `StalledRun` and ClusterError."""
        due = list(arrivals(self._shape))
        version = self._client.list(JOBS, NAMESPACE).resource_version
        watch = threading.Thread(target=self._follow, args=(version,), daemon=True)
        watch.start()
        self._run.began_at = time.monotonic()
        turn, lock = iter(due), threading.Lock()
        senders = [
            threading.Thread(target=self._send, args=(turn, lock), daemon=True) for _ in range(self._connections)
        ]
        try:
            for sender in senders:
                sender.start()
            self._await(len(due))
            self._run.ended_at = time.monotonic()
        finally:
            self._stopped.set()
            self._end_watch()
            for thread in (*senders, watch):
                thread.join(timeout=_SETTLE_SECONDS)
        return self._run

    def _await(self, count: int) -> None:
        """Wait for the last of so many Jobs; print the counts now and then."""
        seen = (0, 0, 0)
        progress_at = said_at = time.monotonic()
        while True:
            time.sleep(_LOOK_SECONDS)
            if self._error is not None:
                raise self._error
            lives = list(self._run.lives.values())
            started = sum(life.started_at is not None or life.ended_at is not None for life in lives)
            ended = sum(life.ended_at is not None for life in lives)
            if (started if self._until_started else ended) == count:
                return
            now = time.monotonic()
            if (len(lives), started, ended) != seen:
                seen, progress_at = (len(lives), started, ended), now
            if now - progress_at > self._patience_seconds:
                raise StalledRun(
                    f"{count - ended} Jobs have not ended, and none was created, started or ended for "
                    f"{self._patience_seconds} s"
                )
            if now - said_at >= _SAID_SECONDS:
                said_at = now
                passed = now - self._run.began_at
                self._say(f"  {passed:5.0f} s: {len(lives)} created, {started} started, {ended} ended")

    def _send(self, turn: Iterator[Arrival], lock: threading.Lock) -> None:
        """Create the next Job when it is due, until none is left."""
        with self._noting_errors():
            while not self._stopped.is_set():
                with lock:
                    arrival = next(turn, None)
                if arrival is None:
                    return
                wait = self._run.began_at + arrival.at_seconds - time.monotonic()
                if wait > 0 and self._stopped.wait(wait):
                    return
                self._run.lives[arrival.name] = JobLife(arrival, time.monotonic())
                self._client.create(JOBS, job_of(self._shape, arrival, self._image))

    def _follow(self, version: str) -> None:
        """Note the starts and ends of the Jobs, in the order in which the server tells them."""
        with self._noting_errors():
            while not self._stopped.is_set():
                for event in self._client.watch(
                    JOBS, version, namespace=NAMESPACE, label_selector=f"{MARK}=true", opened=self._opened
                ):
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type in ("ADDED", "MODIFIED"):
                        self._note(event.object, time.monotonic())

    def _opened(self, end: Callable[[], None]) -> None:
        self._end_watch = end

    def _note(self, job: JsonObject, now: float) -> None:
        life = self._run.lives.get(job["metadata"]["name"])
        if life is None:
            return
        if job["spec"].get("suspend"):
            if life.started_at is not None and life.ended_at is None:
                life.started_at = None
                life.stops += 1
        elif life.started_at is None:
            life.started_at = now
        ended = next((item["type"] for item in _conditions(job) if _is_end(item)), "")
        if ended and life.ended_at is None:
            life.ended_at = now
            life.failed = ended == "Failed"

    @contextlib.contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """An error of a thread ends the run."""
        try:
            yield
        except ClusterError as error:
            if not self._stopped.is_set():
                self._error = error


def _conditions(job: JsonObject) -> list[dict[str, Any]]:
    return (job.get("status") or {}).get("conditions") or []


def _is_end(condition: dict[str, Any]) -> bool:
    return condition["type"] in _ENDED and condition["status"] == "True"
