"""Submits the demo's jobs as any tool would: over REST, with a token of the tenant's account."""

import json
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from kueueweb.demo.jobs import PRODUCTION, RESEARCH, OpenbSizes, Tenant, busier_tenant_share, job
from kueueweb.demo.mixed import mixed_job

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10
_MIXED_SHARE = 0.7


class ServerRefused(Exception):
    """The server answered with an error. The message is what it said."""


class Account:
    """One tenant's account on a server."""

    def __init__(self, server: str, tenant: Tenant, password: str) -> None:
        self.tenant = tenant
        self._server = server
        self._password = password
        self._token = ""

    def submit(self, jobs: Sequence[dict[str, Any]]) -> None:
        """Submit Jobs, all or none. Raises ServerRefused, and OSError while the server cannot be reached."""
        if jobs:
            self._request("workloads/", list(jobs))

    def waiting(self) -> int:
        """How many of the tenant's workloads wait, counted up to a page's limit."""
        answer = self._request(f"workloads/?namespace={self.tenant.namespace}&status=Pending&limit=200")
        return len(answer["results"])

    def sees_nodes(self) -> bool:
        """Whether kueueweb knows the cluster's nodes by now."""
        return bool(self._request("nodes/?limit=1")["results"])

    def _request(self, path: str, body: object = None) -> Any:
        if not self._token:
            credentials = {"username": self.tenant.username, "password": self._password}
            self._token = _call(f"{self._server}/api/v1/auth/token/", credentials)["token"]
        return _call(f"{self._server}/api/v1/{path}", body, {"Authorization": f"Token {self._token}"})


class Arrivals:
    """Jobs of both tenants, one after the other, as long as not too many wait already."""

    def __init__(
        self,
        server: str,
        passwords: dict[str, str],
        *,
        time_scale: float,
        most_waiting: int,
        seed: int | None,
        mixed: bool = False,
    ) -> None:
        """`mixed`: most jobs of research are for the devices of some vendor."""
        self._chance = random.Random(seed)  # noqa: S311 (sizes of demo jobs are no secret)
        self._sizes = OpenbSizes.shipped()
        self._time_scale = time_scale
        self._most_waiting = most_waiting
        self._mixed = mixed
        self._accounts = [Account(server, tenant, passwords[tenant.username]) for tenant in (RESEARCH, PRODUCTION)]

    def submit(self, count: int, at_seconds: float) -> None:
        """Submit `count` jobs, divided between the tenants as the moment asks, to those with room in their queue."""
        share = busier_tenant_share(at_seconds)
        research = sum(self._chance.random() < share for _ in range(count))
        for account, number in zip(self._accounts, (research, count - research), strict=True):
            if number and account.waiting() < self._most_waiting:
                account.submit([self._job(account.tenant) for _ in range(number)])

    def can_begin(self) -> bool:
        """Whether there is a cluster to run on yet."""
        return self._accounts[0].sees_nodes()

    def pause_seconds(self) -> float:
        """Until the next arrival: random, and at a time scale of 10 about a second."""
        return self._chance.expovariate(self._time_scale / 10)

    def _job(self, tenant: Tenant) -> dict[str, Any]:
        if self._mixed and tenant is RESEARCH and self._chance.random() < _MIXED_SHARE:
            return mixed_job(self._sizes.run_seconds(self._chance), self._chance)
        return job(tenant, self._sizes.shape(self._chance), self._sizes.run_seconds(self._chance), self._chance)


def keep_submitting(arrivals: Arrivals, first: int, stopped: Callable[[float], bool]) -> None:
    """Submit `first` jobs, then one after the other, until `stopped`, which waits for so many seconds, says so."""
    began = time.monotonic()
    due, pause, ready = first, 0.0, False
    while not stopped(pause):
        try:
            ready = ready or arrivals.can_begin()
            if ready:
                arrivals.submit(due, time.monotonic() - began)
        except (ServerRefused, OSError) as error:
            logger.warning("jobs were not submitted: %s", error)
            pause = 2.0
            continue
        due, pause = (1, arrivals.pause_seconds()) if ready else (first, 0.5)


def _call(url: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json", **(headers or {})})  # noqa: S310 (the operator's own address)
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 (as above)
            return json.load(answer)
    except HTTPError as error:
        with error:
            raise ServerRefused(f"{error.code} {error.read(2000).decode(errors='replace')}") from error
