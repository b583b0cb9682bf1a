"""How long the API server waits for the admission webhook: `pytest tests/benchmarks/test_webhook.py -s`.

Each review goes over TLS on a kept connection, as the API server's do, to a webhook with rows in PostgreSQL and owners
in a (simulated) cluster. Beside it stands an answer that asks nobody anything, /healthz on the same connection.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clusters.jobs.registry import JOB_KINDS
from clusters.webhook.admission import MUTATE_JOBS, MUTATE_PODS, VALIDATE_JOBS, VALIDATE_STARTS
from tests.clusters.operated_jobs import operated_job
from tests.clusters.system import gpu_job
from tests.clusters.webhook.conftest import GuardedSystem
from tests.simulated_cluster import ServerThread, make_simulated, pod

ROUNDS = 300
GOAL_MILLISECONDS = 50.0


def measure(work: Callable[[int], object]) -> tuple[float, float]:
    """The median and the 95th percentile, in milliseconds."""
    times = []
    for index in range(ROUNDS + 20):
        started = time.perf_counter()
        work(index)
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times[20:]), statistics.quantiles(times[20:], n=20)[-1]


@pytest.fixture
def guarded() -> Iterator[GuardedSystem]:
    with ServerThread(make_simulated()) as server:
        system = GuardedSystem(server, cached_seconds=2.0)
        yield system
        system.take_down()


@pytest.mark.django_db(transaction=True)
def test_reviews(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(gpu_job())
    owner = guarded.kubectl.get(JOB_KINDS["Job"].resource, "train")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": owner["metadata"]["uid"]}
    running: Any = {**owner, "spec": {**owner["spec"], "suspend": False}}

    def owned(index: int) -> Any:
        made = pod(f"train-{index}", limits={"nvidia.com/gpu": "1"})
        made["metadata"] |= {"namespace": "team", "ownerReferences": [{**reference, "controller": True}]}
        return made

    review = guarded.webhook.review
    rayjob = operated_job("RayJob")
    cases: dict[str, Callable[[int], object]] = {
        "new Job, changed": lambda _: review(MUTATE_JOBS, "CREATE", gpu_job()),
        "new Job, checked": lambda _: review(VALIDATE_JOBS, "CREATE", gpu_job()),
        "new RayJob, changed": lambda _: review(MUTATE_JOBS, "CREATE", rayjob),
        "new RayJob, checked": lambda _: review(VALIDATE_JOBS, "CREATE", rayjob),
        "new pod of a Job": lambda index: review(MUTATE_JOBS, "CREATE", owned(index)),
        "new pod with a device": lambda index: review(MUTATE_PODS, "CREATE", owned(index)),
        "a Job that is started": lambda _: review(VALIDATE_STARTS, "UPDATE", running, owner),
    }
    bare, _ = measure(lambda _: guarded.webhook.is_healthy())
    print(f"\n{'review':<24}{'median':>10}{'p95':>10}  ms; an empty answer takes {bare:.1f} ms")
    slow = []
    for name, work in cases.items():
        median, p95 = measure(work)
        print(f"{name:<24}{median:>10.1f}{p95:>10.1f}")
        if p95 >= GOAL_MILLISECONDS:
            slow.append(name)
    assert slow == []
