"""`metrics` of the Configuration: which families and LocalQueues are shown, and labels of users' own on them."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.samples import Sample

from accounts.models import Cluster
from queues.models import ClusterQueue, Cohort, LocalQueue, Workload
from tests.api_client import SchemaClient
from tests.engines import start
from tests.factories import START, make_cluster, make_cluster_queue, make_cohort, make_workload
from tests.scheduler.api.metrics.comparison import families_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Two LocalQueues of one ClusterQueue, a workload in each, both running."""
    make_cluster(cluster.name)
    make_cohort(cluster, "company")
    make_cluster_queue(cluster, cohort_name="company", local_queue="queue")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team", name="other", cluster_queue_name="main", created_at=START
    )
    make_workload(cluster, "one")
    make_workload(cluster, "two", queue_name="other")
    start(cluster).run()
    return cluster


def samples(client: SchemaClient, **configuration: Any) -> list[Sample]:
    Cluster.objects.update(configuration=configuration)
    content = client.get("/metrics").content.decode()
    return [sample for family in families_of(content).values() for sample in family.samples]


def local_queues(found: list[Sample]) -> set[str]:
    return {each.labels["name"] for each in found if each.name.startswith("kueue_local_queue_")}


def test_only_the_local_queues_that_are_chosen_have_metrics(vera: SchemaClient, cluster: Cluster) -> None:
    LocalQueue.objects.filter(name="queue").update(labels={"metrics": "yes"})
    chosen = {"enable": True, "localQueueSelector": {"matchLabels": {"metrics": "yes"}}}
    assert local_queues(samples(vera)) == {"queue", "other"}
    assert local_queues(samples(vera, metrics={"localQueueMetrics": chosen})) == {"queue"}
    assert local_queues(samples(vera, metrics={"localQueueMetrics": {"enable": False}})) == set()
    assert local_queues(samples(vera, featureGates={"LocalQueueMetrics": False})) == set()
    LocalQueue.objects.filter(name="queue").delete()
    assert local_queues(samples(vera, metrics={"localQueueMetrics": chosen})) == set()


def test_a_local_queue_whose_cluster_queue_is_gone_holds_nothing_and_waits_for_nothing(
    vera: SchemaClient, cluster: Cluster
) -> None:
    ClusterQueue.objects.all().delete()
    start(cluster).run()
    found = {(each.name, each.labels.get("name"), each.labels.get("status")): each.value for each in samples(vera)}
    assert ("kueue_local_queue_admitted_active_workloads", "queue", None) not in found
    assert ("kueue_local_queue_reserving_active_workloads", "queue", None) not in found
    assert found["kueue_local_queue_pending_workloads", "queue", "active"] == 0
    assert found["kueue_local_queue_pending_workloads", "queue", "inadmissible"] == 0
    assert ("kueue_local_queue_admitted_workloads_total", "queue", None) in found


@pytest.mark.parametrize(
    ("configuration", "gone"),
    [
        ({"featureGates": {"MetricsForCohorts": False}}, ("kueue_cohort_", "kueue_cluster_queue_info")),
        ({"featureGates": {"MetricForWorkloadCreationLatency": False}}, ("kueue_workload_creation_latency",)),
        ({"metrics": {"enableClusterQueueResources": False}}, ("kueue_cluster_queue_resource_usage",)),
    ],
)
def test_families_that_are_switched_off_have_no_series(
    vera: SchemaClient, cluster: Cluster, configuration: dict[str, Any], gone: tuple[str, ...]
) -> None:
    assert not [each for each in samples(vera, **configuration) if each.name.startswith(gone)]
    assert [each for each in samples(vera) if each.name == "kueue_cluster_queue_info"]


def test_labels_of_users_own_come_from_labels_and_annotations_of_queues_and_cohorts(
    vera: SchemaClient, cluster: Cluster
) -> None:
    ClusterQueue.objects.update(labels={"team": "vision"}, annotations={"example.com/tier": "gold"})
    LocalQueue.objects.filter(name="queue").update(labels={"owner": "alice"})
    Cohort.objects.update(labels={"site": "north"})
    labels = [
        {"name": "team"},
        {"name": "tier", "sourceAnnotationKey": "example.com/tier", "trackedValues": ["silver"]},
        {"name": "owner", "sourceKind": "LocalQueue"},
        {"name": "place", "sourceLabelKey": "site", "sourceKind": "Cohort"},
    ]
    found = samples(vera, metrics={"customLabels": labels}, featureGates={"CustomMetricLabels": True})
    own = {
        each.name: {key: text for key, text in each.labels.items() if key.startswith("custom_")}
        for each in found
        if each.labels.get("name") in (None, "queue")
    }
    assert own["kueue_cluster_queue_info"] == {
        "custom_team": "vision",
        "custom_tier": "kueue.x-k8s.io/_UNTRACKED_VALUE_",
    }
    assert own["kueue_local_queue_admitted_workloads_total"] == {"custom_owner": "alice"}
    assert own["kueue_cohort_info"] == {"custom_place": "north"}
    assert own["kueue_build_info"] == {}
    without = samples(vera, metrics={"customLabels": labels})  # the gate is off by default
    assert not [each for each in without if any(key.startswith("custom_") for key in each.labels)]


def test_running_workloads_are_counted_by_labels_of_their_own(vera: SchemaClient, cluster: Cluster) -> None:
    Workload.objects.filter(name="one").update(labels={"cost": "r-and-d"})
    label = {"name": "cost", "sourceKind": "Workload", "trackedValues": ["r-and-d"]}
    found = samples(vera, metrics={"customLabels": [label]}, featureGates={"CustomMetricLabels": True})
    running = {
        (each.labels["cluster_queue"], each.labels["custom_cost"]): each.value
        for each in found
        if each.name == "kueue_admitted_active_workloads"
    }
    assert running == {("main", "r-and-d"): 1, ("main", "kueue.x-k8s.io/_UNTRACKED_VALUE_"): 1}
    local = {
        (each.labels["name"], each.labels["custom_cost"]): each.value
        for each in found
        if each.name == "kueue_local_queue_admitted_active_workloads"
    }
    assert local == {("queue", "r-and-d"): 1, ("other", "kueue.x-k8s.io/_UNTRACKED_VALUE_"): 1}
