"""`manage.py run`: scheduler, push, beat and watcher in one process."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import orjson
import pytest
from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected

from clusters.client_credentials import connect
from clusters.jobs.registry import JOB_KINDS
from gpus.models import Node
from queues.models import Workload
from tests.acceptance.crash.logs import tracebacks
from tests.acceptance.processes import Processes, wait_for
from tests.clusters.system import queued
from tests.factories import make_cluster, make_cluster_queue
from tests.services_plugin import short_temporary_folder
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    simulated = make_simulated()
    simulated.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    with ServerThread(simulated) as server:
        make_cluster_queue(make_cluster(server_url=server.url), quotas={"default-flavor": {"cpu": 10_000}})
        yield server


@pytest.fixture
def processes() -> Iterator[Processes]:
    with short_temporary_folder() as folder, Processes(folder) as processes:
        yield processes


def submit(server: ServerThread, name: str) -> None:
    """Create a Job in the cluster, and wait until it was found, admitted and started there."""
    manifest = orjson.dumps(queued(job(name, suspend=True)))
    url = f"{server.url}/apis/batch/v1/namespaces/team/jobs"
    request = urllib.request.Request(url, manifest, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()
    client = connect(server.url)

    def is_started() -> bool:
        found = client.get(JOB_KINDS["Job"].resource, "team", name)
        return found is not None and found["spec"]["suspend"] is False

    wait_for(f"the start of {name}", is_started)


def are_clusters_deleted() -> bool:
    """Delete all clusters with everything in them. PostgreSQL undoes that when it meets a write of the running process
    which waits for it: a deadlock. Return whether it succeeded."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE accounts_cluster CASCADE")
    except OperationalError as error:
        if isinstance(error.__cause__, DeadlockDetected):
            return False
        raise
    return True


def test_a_job_is_found_admitted_and_started(server: ServerThread, processes: Processes) -> None:
    processes.start("run", "manage.py", "run")
    submit(server, "first")
    assert Workload.objects.get().status == "Admitted"
    assert processes.terminate("run") == 0
    assert list(tracebacks(processes.folder)) == []


def test_another_process_stands_by_with_all_its_roles(server: ServerThread, processes: Processes) -> None:
    processes.start("run", "manage.py", "run")
    wait_for("the leader", lambda: " leads" in processes.log("run"))
    processes.start("other", "manage.py", "run")
    wait_for("the standby", lambda: " stands by" in processes.log("other"))
    submit(server, "first")
    assert " leads" not in processes.log("other")
    processes.kill("run")
    submit(server, "second")
    assert " leads" in processes.log("other")


def test_the_process_ends_with_its_watcher(server: ServerThread, processes: Processes) -> None:
    """Its cluster is gone: a watcher by itself ends then, too, and a supervisor starts it again."""
    processes.start("run", "manage.py", "run", "--roles", "watcher,beat")
    wait_for("the first list", lambda: Node.objects.count() == 2)
    wait_for("the deletion of its cluster", are_clusters_deleted)
    wait_for("the end of the process", lambda: processes.ended("run"))
    assert "The role watcher failed." in processes.log("run")
    assert processes.terminate("run") == 1


def test_roles_without_a_worker_end_when_told_to(server: ServerThread, processes: Processes) -> None:
    processes.start("run", "manage.py", "run", "--roles", "watcher,beat")
    wait_for("the first list", lambda: Node.objects.count() == 2)
    assert processes.terminate("run") == 0
