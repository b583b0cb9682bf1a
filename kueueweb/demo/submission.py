"""Submits the demo's jobs as any tool would: over REST, with a token of the tenant's account."""

import json
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from kueueweb.demo.arrivals import Arrivals, is_arrival
from kueueweb.demo.jobs import SERVING, TENANTS, Tenant
from kueueweb.demo.story import Event, Story, Submitted
from simulation.control import CHAOS_PATH

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10


class ServerRefused(Exception):
    """The server answered with an error. The message is the server's."""


class Account:
    """One tenant's account on a server."""

    def __init__(self, server: str, tenant: Tenant, password: str) -> None:
        self.tenant = tenant
        self._server = server
        self._password = password
        self._token = ""

    def submit(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        """Submit Jobs, all or none. Raises ServerRefused, and OSError while the server cannot be reached."""
        if jobs:
            self._request("workloads/", list(jobs))

    def waiting(self) -> int:
        """Return how many of the demo's own workloads wait in the tenant's queue, at most a page's limit. Workloads of
        users who try the demo do not count, so that jobs keep arriving in addition to them."""
        return sum(map(is_arrival, self._waiting_jobs()))

    def has_waiting(self, prefix: str) -> bool:
        """Return whether a job whose name begins so waits in the tenant's queue."""
        return any(name.startswith(prefix) for name in self._waiting_jobs())

    def sees_nodes(self) -> bool:
        """Return whether kueueweb has read the cluster's nodes."""
        return bool(self._request("nodes/?limit=1")["results"])

    def _waiting_jobs(self) -> list[str]:
        queue = f"namespace={self.tenant.namespace}&local_queue={self.tenant.queue}"
        answer = self._request(f"workloads/?{queue}&status=Pending&limit=200")
        owners = (found["owner"] for found in answer["results"])
        return [owner["name"] for owner in owners if owner is not None]

    def _request(self, path: str, body: object = None) -> Any:
        if not self._token:
            credentials = {"username": self.tenant.username, "password": self._password}
            self._token = _call(f"{self._server}/api/v1/auth/token/", credentials)["token"]
        return _call(f"{self._server}/api/v1/{path}", body, {"Authorization": f"Token {self._token}"})


class Submission:
    """Submits the jobs that arrive, while not too many wait already."""

    def __init__(
        self,
        server: str,
        passwords: dict[str, str],
        *,
        time_scale: float,
        max_waiting: int,
        seed: int | None,
        fleet: str,
        cluster: str = "",
    ) -> None:
        """`cluster`: the address of the simulated cluster, where a card fails at times; "" if none does."""
        self._arrivals = Arrivals(fleet, random.Random(seed))  # noqa: S311 (sizes of demo jobs are no secret)
        self._story = Story(fleet, random.Random(seed))  # noqa: S311 (as above)
        self._cluster = cluster.rstrip("/")
        self._time_scale = time_scale
        self._max_waiting = max_waiting
        self._accounts = {tenant: Account(server, tenant, passwords[tenant.username]) for tenant in TENANTS}

    def submit(self, count: int, at_seconds: float) -> None:
        """Submit `count` jobs, each to its tenant's queue if there is room."""
        arrived: dict[Tenant, list[dict[str, Any]]] = {}
        for _ in range(count):
            tenant, job = self._arrivals.job(at_seconds * self._time_scale)
            if tenant is SERVING:
                continue  # the story brings it at times when training has borrowed its rack
            arrived.setdefault(tenant, []).append(job)
        for tenant, jobs in arrived.items():
            account = self._accounts[tenant]
            if account.waiting() < self._max_waiting:
                account.submit(jobs)

    def tell(self, seconds: float) -> None:
        """Let the events of the story happen that are due, this long after the first jobs."""
        for event in self._story.due(seconds):
            try:
                self._happen(event)
            except (ServerRefused, OSError) as error:
                logger.warning("an event of the story did not happen: %s", error)

    def _happen(self, event: Event) -> None:
        if isinstance(event, Submitted):
            account = self._accounts[event.tenant]
            if not event.alone or not account.has_waiting(event.alone):
                account.submit(event.jobs)
        elif self._cluster:
            _call(f"{self._cluster}{CHAOS_PATH}", {"devices": {event.uuid: event.healthy}})

    def can_begin(self) -> bool:
        """Return whether there is a cluster to run on."""
        return next(iter(self._accounts.values())).sees_nodes()

    def pause_seconds(self) -> float:
        """Return the real seconds until the next arrival."""
        return self._arrivals.pause_seconds() / self._time_scale


def keep_submitting(submission: Submission, first: int, stopped: Callable[[float], bool]) -> None:
    """Submit `first` jobs at once, then one after the other until `stopped` returns True; it waits for the given number
    of seconds."""
    began = time.monotonic()
    due, pause, ready = first, 0.0, False
    while not stopped(pause):
        try:
            ready = ready or submission.can_begin()
            if ready:
                submission.submit(due, time.monotonic() - began)
                submission.tell(time.monotonic() - began)
        except (ServerRefused, OSError) as error:
            logger.warning("jobs were not submitted: %s", error)
            pause = 2.0
            continue
        due, pause = (1, submission.pause_seconds()) if ready else (first, 0.5)


def _call(url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json", **(headers or {})})  # noqa: S310 (the operator's own address)
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 (as above)
            return json.load(answer)
    except HTTPError as error:
        with error:
            raise ServerRefused(f"{error.code} {error.read(2000).decode(errors='replace')}") from error
