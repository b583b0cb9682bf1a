"""Submits a shape's workloads when they are due, sees them admitted, and ends each after its time.

As in Kueue's own runner, no Jobs are made, and submitting and finishing workloads do not wait for each other. Workloads
that are due within one tick go in one request, and so do workloads whose time is up. A workload's run starts when it
was admitted (the server's word), anew after a preemption.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kueueweb.loadtest.client import Client, RequestRefused
from kueueweb.loadtest.shape import NAMESPACE, Arrival, Shape, arrivals, manifest_text, workload_json
from scheduling.model.times import parse_rfc3339

TICK_SECONDS = 0.05
PAGE = 1000
_PARTS = 1000
"""The most workloads in one request."""


@dataclass(slots=True)
class Life:
    """One workload as the runner saw it; times are seconds since the epoch."""

    arrival: Arrival
    created_at: float
    admitted_at: float | None = None
    finished_at: float | None = None


@dataclass(slots=True)
class Run:
    """The result of a run: every workload, and the start and the end."""

    began_at: float = 0.0
    ended_at: float = 0.0
    lives: dict[str, Life] = field(default_factory=dict)


class StalledRun(Exception):
    """Nothing was admitted for a long while although workloads wait."""


class Runner:
    """One run of a shape against a server.

    * connect: makes a client; a run needs one to submit and one for all else.
    """

    def __init__(
        self, connect: Callable[[], Client], shape: Shape, say: Callable[[str], None], *, patience_seconds: float = 60.0
    ) -> None:
        self._client, self._submitter = connect(), connect()
        self._shape = shape
        self._say = say
        self._patience_seconds = patience_seconds
        self._run = Run()
        self._running: dict[str, float] = {}
        self._finished = 0
        self._error: Exception | None = None
        self._stopped = threading.Event()

    def prepare(self) -> None:
        self._client.post("manifests/", manifest_text(self._shape).encode(), "application/yaml")

    def run(self) -> Run:
        """Run until the last workload has finished. Raises `StalledRun`, RequestRefused, OSError."""
        due = list(arrivals(self._shape))
        self._run.began_at = time.time()
        submission = threading.Thread(target=self._submit_all, args=(due,), daemon=True)
        submission.start()
        try:
            self._finish_all(len(due))
        finally:
            self._stopped.set()
            submission.join()
        self._run.ended_at = time.time()
        return self._run

    def _finish_all(self, count: int) -> None:
        """Look which workloads are admitted and finish them in time, until so many are finished."""
        said_at = progress_at = self._run.began_at
        while self._finished < count:
            tick = time.time()
            if self._look() + self._finish(time.time()):
                progress_at = tick
            if self._error is not None:
                raise self._error
            if len(self._run.lives) == count and tick - progress_at > self._patience_seconds:
                raise StalledRun(
                    f"{count - self._finished} workloads wait, and nothing has changed for {self._patience_seconds} s"
                )
            if tick - said_at >= 10:
                said_at = tick
                counts = f"{len(self._run.lives)} created, {len(self._running)} run, {self._finished} finished"
                self._say(f"  {tick - self._run.began_at:5.0f} s: {counts}")
            time.sleep(max(0.0, TICK_SECONDS - (time.time() - tick)))

    def _submit_all(self, due: list[Arrival]) -> None:
        """Submit the workloads when they are due. An error ends the run."""
        position = 0
        try:
            while position < len(due) and not self._stopped.is_set():
                tick = time.time()
                position = self._submit(due, position, tick)
                self._stopped.wait(max(0.0, TICK_SECONDS - (time.time() - tick)))
        except (RequestRefused, OSError) as error:
            self._error = error

    def _submit(self, due: list[Arrival], position: int, now: float) -> int:
        elapsed = now - self._run.began_at
        end = position
        while end < len(due) and due[end].at_seconds <= elapsed and end - position < _PARTS:
            end += 1
        batch = due[position:end]
        if batch:
            created_at = time.time()
            # The workloads may be seen admitted before the answer is here.
            self._run.lives.update({arrival.name: Life(arrival, created_at) for arrival in batch})
            self._submitter.post("workloads/", [workload_json(self._shape, arrival) for arrival in batch])
        return end

    def _look(self) -> int:
        """Note which workloads are admitted now; returns how many are newly so."""
        seen: dict[str, float] = {}
        after: str | None = ""
        while after is not None:
            query = {"status": "Admitted", "namespace": NAMESPACE, "limit": PAGE, **({"after": after} if after else {})}
            page = self._client.get("workloads/", **query)
            seen.update({row["name"]: _seconds(row) for row in page["results"]})
            after = page["next"]
        new = sum(1 for name in seen if name not in self._running)
        self._running = seen
        for name, admitted_at in seen.items():
            self._run.lives[name].admitted_at = admitted_at
        return new

    def _finish(self, now: float) -> int:
        """Finish workloads whose time is over; returns their number."""
        over = [
            name
            for name, admitted_at in self._running.items()
            if now - admitted_at >= self._shape.sets[self._run.lives[name].arrival.set_index].runtime_seconds
        ]
        if not over:
            return 0
        body: Mapping[str, Any] = {
            "workloads": [{"namespace": NAMESPACE, "name": name} for name in over],
            "reason": "Succeeded",
            "message": "The load test's time is over",
        }
        answer = self._client.post("workloads/finish/", body)
        for changed in answer["changed"]:
            self._run.lives[changed["name"]].finished_at = time.time()
            self._running.pop(changed["name"], None)
        self._finished += len(answer["changed"])
        return len(answer["changed"])


def _seconds(row: Mapping[str, Any]) -> float:
    return parse_rfc3339(row["admitted_at"])
