"""The index of the rows: what follows for workloads from a change of something else."""

from __future__ import annotations

import pytest

from queues.models import ResourceFlavor, Workload, WorkloadEvent
from scheduler.leader.engine import Engine
from tests.factories import START, make_cluster, make_cluster_queue, make_resource_flavor, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_missing_flavor_is_reported_on_pending_workloads_until_it_exists() -> None:
    cluster = make_cluster()
    make_cluster_queue(cluster)
    make_workload(cluster, "runs")
    engine = Engine(cluster, "test", clock=lambda: START.timestamp() + 1000)
    engine.run()
    ResourceFlavor.objects.all().delete()
    make_workload(cluster, "waits")
    engine.run()
    waits = Workload.objects.get(name="waits")
    assert (waits.reason, waits.message) == ("Suspended", "ClusterQueue main is inactive")
    why = WorkloadEvent.objects.get(workload_name="waits", reason="Suspended").message
    assert why == "ClusterQueue main is inactive: flavors not found: default-flavor"
    assert Workload.objects.get(name="runs").status == "Admitted"
    make_resource_flavor(cluster)
    engine.run()
    assert Workload.objects.get(name="waits").status == "Admitted"


def test_earlier_pending_workloads_get_the_message_too() -> None:
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
    make_workload(cluster, "runs")
    make_workload(cluster, "waits")
    engine = Engine(cluster, "test", clock=lambda: START.timestamp() + 1000)
    engine.run()
    assert Workload.objects.get(name="waits").reason == "WaitingForQuota"
    ResourceFlavor.objects.all().delete()
    engine.run()
    assert Workload.objects.get(name="waits").reason == "Suspended"
    make_resource_flavor(cluster)
    engine.run()
    assert Workload.objects.get(name="waits").reason == "WaitingForQuota"
