"""A leader that is stopped is replaced by the process that stands by, which decides at once.

The bounds are counts, so they hold on a machine of any speed: how often the standby looks, a second apart, before it
takes over, and in which of its cycles the workload is admitted that waited for it.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final, NamedTuple

import psycopg
import pytest

from queues.models import Workload
from scheduler.models import Decision, Lease
from tests.acceptance.processes import Processes, database_url, wait_for
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.patience import PATIENCE_SECONDS
from tests.services_plugin import short_temporary_folder

pytestmark = pytest.mark.django_db(transaction=True)

TAKEN_OVER_SECONDS: Final = 15
"""The promise: so soon after its leader stopped, a cluster has another one."""
_OFTEN_SECONDS: Final = 0.05
_SESSIONS: Final = """
    SELECT session.pid, session.query_start, session.query LIKE '%silent%' AS looks, lock.pid IS NOT NULL AS leads
    FROM pg_stat_activity AS session
    LEFT JOIN pg_locks AS lock ON lock.pid = session.pid AND lock.locktype = 'advisory' AND lock.granted
    WHERE session.datname = current_database() AND session.application_name LIKE 'kueueweb-leader%'
"""


class Session(NamedTuple):
    """A session of PostgreSQL by which a scheduler leads or stands by."""

    pid: int
    statement_began: datetime
    looks: bool
    """Whether its last statement looked for a silent leader."""
    leads: bool


def sessions(watching: psycopg.Connection) -> list[Session]:
    """List the sessions of leader and standby."""
    return [Session(*row) for row in watching.execute(_SESSIONS).fetchall()]


def looks_until_replaced(watching: psycopg.Connection, leader: int) -> int:
    """Count the standby's looks until the session of the leader has ended."""
    looks: set[datetime] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = sessions(watching)
        if all(each.pid != leader for each in found):
            return len(looks)
        looks.update(each.statement_began for each in found if each.looks)
        time.sleep(_OFTEN_SECONDS)
    raise AssertionError("the stopped leader was not replaced")


def test_a_standby_decides_in_place_of_a_leader_that_is_stopped() -> None:
    cluster = make_cluster()
    make_cluster_queue(cluster)
    with (
        short_temporary_folder() as folder,
        Processes(folder) as processes,
        psycopg.connect(database_url(), autocommit=True) as watching,
    ):
        processes.start_scheduler("first")
        make_workload(cluster, "before")
        wait_for("a decision of the first", Workload.objects.filter(name="before", status="Admitted").exists)
        processes.start_scheduler("second")
        wait_for("a standby", lambda: any(each.looks for each in sessions(watching)))
        [leader] = [each.pid for each in sessions(watching) if each.leads]
        epoch = Lease.objects.get(cluster=cluster).epoch
        processes.stop("first")
        make_workload(cluster, "after")
        # A second passes between two looks: n of them last n seconds, and longer only where the machine is busy.
        assert looks_until_replaced(watching, leader) <= TAKEN_OVER_SECONDS
        wait_for("a decision of the second", Workload.objects.filter(name="after", status="Admitted").exists)
        decided = Decision.objects.get(workload_name="after", action="Admit")
        assert (decided.epoch, decided.cycle) == (epoch + 1, 1)
        assert "the leader made no progress" in processes.log("second")
