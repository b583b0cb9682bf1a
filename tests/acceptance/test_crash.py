"""kill -9 in the worst moments: nothing is lost, nothing is admitted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final, LiteralString

import psycopg
import pytest
from django.db import connection
from hypothesis import settings

from accounts.models import Cluster
from queues.models import PodSet, Workload
from queues.services.workloads import record_finished
from scheduler.models import Change, Decision
from tests.acceptance.processes import Processes, database_url, wait_for
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.services_plugin import short_temporary_folder

pytestmark = pytest.mark.django_db(transaction=True)

QUOTA = 30
ROUNDS = 20 if settings().max_examples >= 2_000 else 6
"""Six are all moments with and without the death of Valkey, once each; `make fuzz` has more."""


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": QUOTA * 1000}})
    return cluster


@pytest.fixture
def processes() -> Iterator[Processes]:
    with short_temporary_folder() as folder, Processes(folder) as started:
        yield started


def running() -> int:
    return Workload.objects.filter(status="Admitted").count()


def submit(cluster: Cluster, prefix: str, count: int) -> None:
    for number in range(count):
        make_workload(cluster, f"{prefix}-{number}")


def finish_all(cluster: Cluster) -> None:
    keys = Workload.objects.filter(status="Admitted").values_list("namespace", "name")
    record_finished(cluster, list(keys))


def check_invariants() -> None:
    """Whatever happened: usage within quota, one admission for each workload, and only of those that are or were in."""
    usages = PodSet.objects.filter(workload__status="Admitted").values_list("resource_usage", flat=True)
    assert sum(usage["cpu"] for usage in usages) <= QUOTA * 1000
    admissions = Counter(Decision.objects.filter(action="Admit").values_list("workload_name", flat=True))
    assert set(admissions.values()) <= {1}
    once_in = set(Workload.objects.filter(status__in=["Admitted", "Finished"]).values_list("name", flat=True))
    assert set(admissions) == once_in


BLOCKED_AT: Final[dict[str, LiteralString]] = {
    "before it checks": "SELECT 1 FROM accounts_cluster FOR UPDATE",
    "before it writes": "SELECT 1 FROM queues_workload WHERE status = 'Pending' FOR UPDATE",
    "before it commits": "SELECT 1 FROM scheduler_change FOR UPDATE",
}
"""Which rows to hold, so that a batch stands still there until it is killed."""


def test_the_scheduler_worker_and_valkey_are_killed_again_and_again(cluster: Cluster, processes: Processes) -> None:
    processes.start_beat()
    moments = list(BLOCKED_AT.items())
    for round_ in range(ROUNDS):
        name, hold = moments[round_ % len(moments)]
        submit(cluster, f"round-{round_}", QUOTA + 1)
        with psycopg.connect(database_url()) as session:
            session.execute(hold)
            processes.start_scheduler()
            wait_for(f"a batch that stands still {name}", partial(blocks, session.info.backend_pid))
            processes.kill("scheduler")
            if round_ % 2:
                processes.kill_valkey()
            session.rollback()
        check_invariants()
        processes.start_scheduler()
        wait_for("a full queue", lambda: running() == QUOTA)
        check_invariants()
        processes.kill("scheduler")
        finish_all(cluster)
    processes.start_scheduler()
    while Workload.objects.exclude(status="Finished").exists():
        wait_for("the rest", lambda: running() > 0)
        finish_all(cluster)
    check_invariants()
    assert Workload.objects.count() == ROUNDS * (QUOTA + 1)
    wait_for("every note to be seen", lambda: not Change.objects.exists())


def blocks(pid: int) -> bool:
    """Whether somebody waits for what that session holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))", [pid])
        return bool(cursor.fetchone()[0])


def test_a_standby_takes_over(cluster: Cluster, processes: Processes) -> None:
    processes.start_beat()
    processes.start_scheduler("first")
    submit(cluster, "one", 3)
    wait_for("the first worker to schedule", lambda: running() == 3)
    processes.start_scheduler("second")
    wait_for("the second worker to stand by", lambda: "stands by" in processes.log("second"))
    assert "leads" not in processes.log("second")
    processes.kill("first")
    submit(cluster, "two", 3)
    wait_for("the second worker to schedule", lambda: running() == 6)
    check_invariants()
