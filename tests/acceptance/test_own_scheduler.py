"""A cluster that has a scheduler process of its own."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from queues.models import Workload
from tests.acceptance.processes import Processes, wait_for
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.services_plugin import short_temporary_folder

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 180.0


def test_each_scheduler_decides_while_the_other_hangs() -> None:
    """They tick by themselves: no wake-up comes, and no beat runs."""
    clusters = [make_cluster(name) for name in ("default", "east")]
    for cluster in clusters:
        make_cluster_queue(cluster)
    with short_temporary_folder() as folder, Processes(folder) as processes:
        processes.settings["OWN_SCHEDULERS"] = "east"
        processes.start_scheduler()
        processes.start_scheduler("east", "scheduler-east")
        for cluster in clusters:
            submit(cluster, "first")
        processes.stop("scheduler")
        submit(clusters[1], "second")
        make_workload(clusters[0], "waits")
        submit(clusters[1], "third")
        assert Workload.objects.get(name="waits").status == "Pending"


def test_a_worker_of_a_cluster_that_is_not_named_does_not_start() -> None:
    with short_temporary_folder() as folder, Processes(folder) as processes:
        processes.start_scheduler("east", "scheduler-east")
        wait_for("the end of the worker", lambda: processes.ended("east"), PATIENCE_SECONDS)
        assert "OWN_SCHEDULERS: Required value 'east'" in processes.log("east")


def submit(cluster: Cluster, name: str) -> None:
    """Submit a workload, and wait until it is admitted."""
    make_workload(cluster, name)
    rows = Workload.objects.filter(cluster=cluster, name=name, status="Admitted")
    wait_for(f"the admission of {name} in {cluster}", rows.exists, PATIENCE_SECONDS)
