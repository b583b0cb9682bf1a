"""What one tenant's flood costs another: submit to admission beside FLOOD workloads of the first.

    FLOOD=150000 pytest tests/benchmarks/test_isolation.py -s

Twice: as the other tenant sees it, over REST and with the product's own processes, and as the engine's own time in
processor seconds. Each on an idle cluster, while the flood is being taken in, and when all of it waits.
"""

from __future__ import annotations

import logging
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from django.utils import timezone

from accounts.models import Cluster, Namespace
from kueueweb.embedded.sockets import free_port
from queues.api.workload_input import read_workload
from queues.models import LocalQueue, Workload
from queues.services.submission import create_workloads
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from scheduler.models import Change
from tests.acceptance.processes import Processes, wait_for
from tests.factories import make_cluster, make_cluster_queue
from tests.services_plugin import short_temporary_folder
from tests.users import make_user

pytestmark = pytest.mark.django_db(transaction=True)

FLOOD = int(os.environ.get("FLOOD", "20000"))
PROBES = 20
USERS = (("bob", "a"), ("charlie", "b"))


def submit(cluster: Cluster, namespace: str, queue: str, names: list[str], cpu: str) -> None:
    pod_sets = [{"count": 1, "requests": {"cpu": cpu}}]
    create_workloads(
        cluster,
        [
            read_workload({"namespace": namespace, "name": name, "local_queue": queue, "pod_sets": pod_sets}, index)
            for index, name in enumerate(names)
        ],
        actor="test",
    )


def probe(cluster: Cluster, engine: Engine, name: str) -> float:
    """Seconds from the submission of a workload to its admission; it ends at once."""
    submit(cluster, "team-b", "b", [name], "10m")
    started = time.thread_time()
    while Workload.objects.get(name=name).status != "Admitted":
        engine.run(0.0)
    seconds = time.thread_time() - started
    record_finished(cluster, [("team-b", name)], actor="test")
    return seconds


def measure(what: str, submit_one: Callable[[str], float]) -> float:
    """The 95th percentile of PROBES times."""
    times = sorted(submit_one(f"{what.replace(' ', '-')}-{number}") for number in range(PROBES))
    p95 = times[int(0.95 * len(times)) - 1]
    median = statistics.median(times)
    print(f"{what:<14} median {1000 * median:7.1f} ms, p95 {1000 * p95:7.1f} ms, max {1000 * times[-1]:7.1f} ms")
    return p95


def make_tenants() -> Cluster:
    """Two tenants in queues of one cohort, of which none borrows."""
    cluster = make_cluster()
    for name in ("team-a", "team-b"):
        Namespace.objects.get_or_create(cluster=cluster, name=name, defaults={"created_at": timezone.now()})
    for name in ("a", "b"):
        quotas = {"default-flavor": {"cpu": (400_000, 0, None)}}
        make_cluster_queue(cluster, name, quotas, local_queue="", cohort_name="all")
        LocalQueue.objects.create(
            cluster=cluster, namespace=f"team-{name}", name=name, cluster_queue_name=name, created_at=timezone.now()
        )
    return cluster


class Tenant:
    """One user of the REST interface."""

    def __init__(self, url: str, username: str, namespace: str, queue: str) -> None:
        self._client = httpx.Client(base_url=f"{url}/api/v1/", timeout=120)
        login = {"username": username, "password": f"{username}-secret"}
        token = self._client.post("auth/token/", json=login).raise_for_status().json()["token"]
        self._client.headers["Authorization"] = f"Bearer {token}"
        self._namespace = namespace
        self._queue = queue

    def submit(self, names: list[str], cpu: str) -> None:
        one = {"namespace": self._namespace, "local_queue": self._queue}
        pod_sets = [{"count": 1, "requests": {"cpu": cpu}}]
        body = [{**one, "name": name, "pod_sets": pod_sets} for name in names]
        self._client.post("workloads/", json=body).raise_for_status()

    def wait_for_admission(self, name: str) -> float:
        """Seconds from the call that submits a workload until it is seen admitted; it ends at once."""
        started = time.monotonic()
        self.submit([name], "10m")
        while (
            self._client.get(f"workloads/{self._namespace}/{name}/").raise_for_status().json()["status"] != "Admitted"
        ):
            time.sleep(0.01)
        seconds = time.monotonic() - started
        finished = {"workloads": [{"namespace": self._namespace, "name": name}]}
        self._client.post("workloads/finish/", json=finished).raise_for_status()
        return seconds

    def _status(self, name: str) -> str:
        found = self._client.get(f"workloads/{self._namespace}/{name}/").raise_for_status()
        return str(found.json()["status"])


@pytest.fixture
def url() -> Iterator[str]:
    """The product's processes, without limits on how much one tenant submits."""
    unlimited = "10000000"
    names = ("NAMESPACE", "LOCAL_QUEUE", "USER")
    with ExitStack() as stack:
        processes = stack.enter_context(Processes(stack.enter_context(short_temporary_folder())))
        limits = {f"MAX_UNFINISHED_PER_{name}": unlimited for name in names} | {"MAX_SUBMISSIONS_PER_MINUTE": unlimited}
        processes.settings |= limits
        port = free_port()
        processes.start("web", "manage.py", "serve", "--host", "127.0.0.1", "--port", str(port))
        processes.start_scheduler()
        processes.start_beat()
        found = f"http://127.0.0.1:{port}"
        wait_for("the first page", lambda: answers(f"{found}/healthz"))
        yield found


def answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


def test_a_flood_of_one_tenant_does_not_hold_up_another_over_rest(url: str) -> None:
    logging.getLogger("httpx").setLevel(logging.WARNING)
    make_tenants()
    first, other = (Tenant(url, make_user(user).username, f"team-{name}", name) for user, name in USERS)
    other.wait_for_admission("warm-up")
    idle = measure("idle", other.wait_for_admission)

    def flood() -> None:
        for start in range(0, FLOOD, 10_000):
            first.submit([f"flood-{number}" for number in range(start, min(start + 10_000, FLOOD))], "100")

    flooding = threading.Thread(target=flood)
    flooding.start()
    flooded = measure("being flooded", other.wait_for_admission)
    flooding.join()
    taking_in = measure("taking in", other.wait_for_admission)
    wait_for("taking in", lambda: not Change.objects.exists(), 600)
    waiting = measure("waiting", other.wait_for_admission)
    print(
        f"being flooded {flooded / idle:.1f}, taking in {taking_in / idle:.1f}, waiting {waiting / idle:.1f} times idle"
    )


def test_a_flood_of_one_tenant_costs_the_engine_little_for_another() -> None:
    cluster = make_tenants()
    engine = Engine(cluster, "test")

    def submit_one(name: str) -> float:
        return probe(cluster, engine, name)

    idle = measure("idle", submit_one)
    for first in range(0, FLOOD, 10_000):
        names = [f"flood-{number}" for number in range(first, min(first + 10_000, FLOOD))]
        submit(cluster, "team-a", "a", names, "100")
    print(f"{Change.objects.count()} notes")
    flooded = measure("flooded", submit_one)
    started = time.thread_time()
    while engine.run().more:
        pass
    print(f"taken in after {time.thread_time() - started:.1f} s")
    waiting = measure("waiting", submit_one)
    print(f"flooded {flooded / idle:.1f}, waiting {waiting / idle:.1f} times idle")
