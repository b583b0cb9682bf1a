"""Redis goes away for a while: every worker waits for it and works on."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

import psycopg
import pytest

from clusters.push.sweep_lock import WORKING
from queues.manifests.job_workloads import workload_specs
from queues.models import Workload
from queues.services.submission import create_workloads
from tests.acceptance.crash.logs import tracebacks
from tests.acceptance.processes import Processes, database_url, wait_for
from tests.acceptance.test_crash import blocks
from tests.clusters.system import queued
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.services_plugin import short_temporary_folder
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

AWAY_SECONDS: Final = 20.0
NOBODY_LISTENS: Final = "http://127.0.0.1:9"


def test_workers_outlive_redis() -> None:
    """Push ended with an AttributeError of kombu's when Redis went away while it had work in hand."""
    with short_temporary_folder() as folder, Processes(folder) as processes:
        outlive(processes)


def outlive(processes: Processes) -> None:
    """Beat, scheduler and push work, lose Redis while a sweep is under way, and work again when it is back."""
    cluster = make_cluster(mode="schedule", server_url=NOBODY_LISTENS)
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 10_000}})
    create_workloads(cluster, workload_specs(queued(job("before"))), actor="alice")
    processes.start_beat()
    processes.start_scheduler()
    processes.start_push()
    wait_for("a first sweep", lambda: sweeps(processes) > 0)
    with psycopg.connect(database_url()) as session:
        session.execute("SELECT pg_advisory_lock(%s, %s)", [WORKING, cluster.pk])
        wait_for("a sweep that waits its turn", partial(blocks, session.info.backend_pid))
        processes.valkey.stop()
        time.sleep(AWAY_SECONDS)
        processes.valkey.start()
    before = sweeps(processes)
    make_workload(cluster, "after")
    wait_for("another sweep", lambda: sweeps(processes) > before)
    wait_for("another cycle", lambda: Workload.objects.get(name="after").status == "Admitted")
    assert not [name for name in ("beat", "scheduler", "push") if processes.ended(name)]
    assert list(tracebacks(processes.folder)) == []


def sweeps(processes: Processes) -> int:
    """How many sweeps have ended: the cluster does not answer any."""
    return processes.log("push").count("ended early")
