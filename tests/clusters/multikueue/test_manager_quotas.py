"""A manager whose quotas are the sums of its workers': rows, API servers and conditions, over HTTP alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from clusters.multikueue.manager_quotas import automate_quotas
from clusters.multikueue.worker_queues import WorkerQueues
from queues.models import AdmissionCheck, ClusterQueue, FlavorQuota, MultiKueueConfig, Workload
from scheduling.state.second_pass import MULTIKUEUE
from tests.clusters.multikueue.fleet import CHECK, Fleet, fleet_of
from tests.clusters.served_cluster import queue_spec
from tests.factories import START, make_cluster, make_cluster_queue

pytestmark = pytest.mark.django_db(transaction=True)

GATE = "MultiKueueManagerQuotaAutomation"
CHECKS = {"admissionChecks": [{"name": CHECK}]}


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with fleet_of("east", "west") as fleet:
        switch(fleet, on=True)
        yield fleet


def switch(fleet: Fleet, *, on: bool) -> None:
    cluster = fleet.manager.cluster
    Cluster.objects.filter(pk=cluster.pk).update(configuration={"featureGates": {GATE: on}})
    cluster.refresh_from_db()


def automate(fleet: Fleet, management: str = "Automated") -> None:
    spec = {"spec": {"clusters": list(fleet.workers), "quotaManagement": management}}
    fleet.manager.apply("MultiKueueConfig", "all", spec)


def condition(fleet: Fleet) -> tuple[str, str] | None:
    """As the cluster's clients see it."""
    conditions = fleet.manager.get("ClusterQueue", "main")["status"]["conditions"]
    found = next((each for each in conditions if each["type"] == GATE), None)
    return (found["status"], found["reason"]) if found else None


def quota(fleet: Fleet) -> list[dict[str, Any]]:
    groups = fleet.manager.get("ClusterQueue", "main")["spec"]["resourceGroups"]
    cells: list[dict[str, Any]] = groups[0]["flavors"][0]["resources"]
    return cells


def test_the_quota_follows_the_workers(fleet: Fleet) -> None:
    fleet.turn(2)
    assert condition(fleet) == ("False", "NotRequested")
    automate(fleet)
    fleet.workers["east"].apply("ClusterQueue", "main", queue_spec("1200m"))
    fleet.turn(3)
    assert condition(fleet) == ("True", "QuotaAutomated")
    assert quota(fleet) == [{"name": "cpu", "nominalQuota": "5200m"}]
    fleet.workers["west"].apply("ClusterQueue", "main", queue_spec("2"))
    fleet.turn(3)
    assert quota(fleet) == [{"name": "cpu", "nominalQuota": "3200m"}]
    fleet.workers["west"].delete("LocalQueue", "local", "team")
    fleet.turn(3)
    assert quota(fleet) == [{"name": "cpu", "nominalQuota": "1200m"}]
    fleet.manager.apply("ClusterQueue", "main", queue_spec("99", admissionChecksStrategy=CHECKS))
    fleet.turn(2)
    assert quota(fleet) == [{"name": "cpu", "nominalQuota": "1200m"}], "an edit of the quota is taken back"
    versions = fleet.manager.versions()[("ClusterQueue", "", "main")]
    fleet.turn(2)
    assert fleet.manager.versions()[("ClusterQueue", "", "main")] == versions, "what is so already is not written again"


def test_the_automated_quota_is_what_decides(fleet: Fleet) -> None:
    fleet.manager.apply("ClusterQueue", "main", queue_spec("0", admissionChecksStrategy=CHECKS))
    fleet.submit(cpu="3")
    fleet.turn(2)
    assert fleet.row.status == "Pending"
    automate(fleet)
    fleet.turn(4)
    assert Workload.objects.get(cluster=fleet.manager.cluster).status == "Admitted"


def test_a_worker_that_is_lost_counts_nothing_until_it_is_back(fleet: Fleet) -> None:
    cluster = fleet.manager.cluster
    heard = WorkerQueues({"team/local": "main"}, {"main": [("cpu", "1")]})
    automate(fleet)
    fleet.manager.watch()
    assert not automate_quotas(cluster, {"east": heard, "west": None}, START)
    assert automate_quotas(cluster, {"east": heard}, START)
    fleet.turn(3)
    assert quota(fleet)[0]["nominalQuota"] == "8"
    fleet.workers["west"].server.guard.away = True
    fleet.manager.turn()
    fleet.follow()
    fleet.manager.turn()
    assert quota(fleet)[0]["nominalQuota"] == "4"
    fleet.workers["west"].server.guard.away = False
    fleet.manager.advance(60)
    fleet.turn(2)
    assert quota(fleet)[0]["nominalQuota"] == "8"


def test_many_queues_cost_as_many_queries_as_one() -> None:
    cluster = make_cluster("manager", configuration={"featureGates": {GATE: True}})
    MultiKueueConfig.objects.create(
        cluster=cluster, name="all", created_at=START, clusters=["east"], quota_management="Automated"
    )
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    AdmissionCheck.objects.create(
        cluster=cluster, name=CHECK, created_at=START, controller_name=MULTIKUEUE, parameters=parameters
    )
    leads_to = {f"team/{number}": "shared" for number in range(20)}
    workers = {"east": WorkerQueues(leads_to, {"shared": [("cpu", "3")]})}
    counts = []
    for number in range(20):
        make_cluster_queue(
            cluster, f"queue-{number}", quotas={"plain": {"cpu": 1000}}, local_queue=str(number),
            admission_checks=[{"name": CHECK}],
        )  # fmt: skip
        automate_quotas(cluster, workers, START)
        with CaptureQueriesContext(connection) as captured:
            assert not automate_quotas(cluster, workers, START)
        counts.append(len(captured))
    assert set(FlavorQuota.objects.values_list("nominal_quota", flat=True)) == {3000}
    assert counts[-1] == counts[0] <= 6


def test_each_reason_against_it_leaves_the_quota(fleet: Fleet) -> None:
    manager, east = fleet.manager, fleet.workers["east"]
    automate(fleet)
    switch(fleet, on=False)
    fleet.turn(2)
    assert condition(fleet) == ("False", "FeatureGateOff")
    switch(fleet, on=True)
    rows = ClusterQueue.objects.filter(cluster=manager.cluster)
    rows.update(node_quotas=[{"flavor": "plain", "resource": "cpu", "share": "50%", "headroom": "0"}])
    fleet.turn(2)
    assert condition(fleet) == ("False", "UnsupportedConfiguration")
    assert "nodeQuotas" in rows.get().conditions[0]["message"]
    rows.update(node_quotas=[])
    cell = {"name": "plain", "resources": [{"name": "example.com/gpu", "nominalQuota": "1"}]}
    groups = [{"coveredResources": ["example.com/gpu"], "flavors": [cell]}]
    east.apply("ClusterQueue", "main", {"spec": {"resourceGroups": groups}})
    fleet.turn(3)
    assert condition(fleet) == ("False", "UnsupportedConfiguration")
    assert rows.get().conditions[0]["message"].endswith("[example.com/gpu]")
    assert quota(fleet) == [{"name": "cpu", "nominalQuota": "40"}]
    manager.apply("ClusterQueue", "main", queue_spec("40"))
    fleet.turn(2)
    assert condition(fleet) is None, "it is no manager's queue any more"
