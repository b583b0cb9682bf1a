"""Claims of devices as rows: who is admitted, who waits for which reason, and what a change of the cluster does."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from queues.models import PodSet, Workload
from queues.services.cluster_objects import store_cluster_objects
from queues.services.workloads import record_finished
from scheduler.store.kept_world import kept_world
from scheduling.model.vocabulary import ConditionType
from tests.claim_objects import DRIVER, Json, claim, claim_template, driver_class, pod_spec, request, resource_slice
from tests.engines import NOW, start, statuses
from tests.factories import make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

MAPPINGS = {"deviceClassMappings": [{"name": "example.com/gpus", "deviceClassNames": [DRIVER]}]}


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster(configuration={"resources": MAPPINGS})
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 10_000, "example.com/gpus": 6}})
    for name in ("n1", "n2"):
        make_node(cluster, name, allocatable={"cpu": 8000, "pods": 10})
    store(cluster, driver_class(), resource_slice("n1", 2), resource_slice("n2", 1))
    store(cluster, claim_template("one"), claim_template("two", request(2)))
    return cluster


def store(cluster: Cluster, *objects: Json) -> None:
    """Store objects as the watcher does."""
    for each in objects:
        key = (each["metadata"].get("namespace", ""), each["metadata"]["name"])
        store_cluster_objects(cluster, each["kind"], {key: each}, gone=())


def wait(cluster: Cluster, name: str, *templates: str, **options: Any) -> Workload:
    row = make_workload(cluster, name)
    PodSet.objects.filter(workload=row).update(template={"spec": pod_spec(*templates, **options)})
    return row


def nodes(name: str) -> list[str]:
    return list(PodSet.objects.get(workload__name=name).nodes)


def requeued_of(row: Workload) -> Json:
    return next((each for each in row.conditions if each["type"] == ConditionType.REQUEUED), {})


def test_devices_count_in_the_quota_and_on_the_nodes(cluster: Cluster) -> None:
    """Quota is left for three more, but no node has two devices free: it is not admitted."""
    wait(cluster, "first", "two")
    wait(cluster, "second", "two")
    wait(cluster, "third", "one")
    engine = start(cluster)
    engine.run()
    assert statuses() == {"first": "Admitted", "second": "Pending", "third": "Admitted"}
    assert (nodes("first"), nodes("third")) == (["n1"], ["n2"])
    assert PodSet.objects.get(workload__name="first").resource_usage["example.com/gpus"] == 2
    row = Workload.objects.get(name="second")
    assert row.reason == "WaitingForNodes"
    assert "devices of class gpu.example.com" in row.message
    record_finished(cluster, [("team", "first")])
    engine.run()
    assert statuses()["second"] == "Admitted"


def test_devices_of_others_are_taken_and_those_of_our_own_pods_once(cluster: Cluster) -> None:
    store(cluster, claim("theirs", [("n1", "gpu-0")]))
    wait(cluster, "job", "two")
    engine = start(cluster)
    engine.run()
    assert statuses() == {"job": "Pending"}
    store_cluster_objects(cluster, "ResourceClaim", {}, gone=None)
    engine.run()
    assert statuses() == {"job": "Admitted"}
    uid = str(Workload.objects.get(name="job").uid)
    store(cluster, {**claim("job-gpu-x", [("n1", "gpu-0"), ("n1", "gpu-1")]), "workload": uid})
    wait(cluster, "next", "one")
    engine.run()
    assert nodes("next") == ["n2"]


def test_a_claim_that_cannot_be_counted_keeps_it_out_until_it_can(cluster: Cluster) -> None:
    wait(cluster, "job", "late")
    engine = start(cluster)
    engine.run()
    said = (
        "spec.podSets[0].template.spec.resourceClaims[0]: Internal error: failed to get claim spec for "
        'ResourceClaimTemplate late in podset main: ResourceClaimTemplate.resource.k8s.io "late" not found'
    )
    row = Workload.objects.get(name="job")
    assert (row.reason, row.message) == ("Misconfigured", said)
    requeued = requeued_of(row)
    assert (requeued["status"], requeued["reason"], requeued["message"]) == ("False", "Inadmissible", said)
    store(cluster, claim_template("late"))
    engine.run()
    row.refresh_from_db()
    assert row.status == "Admitted"
    assert requeued_of(row).get("status") != "False"


def test_a_claim_that_changes_has_no_other_object_read(cluster: Cluster) -> None:
    wait(cluster, "job", "two")
    engine = start(cluster)
    engine.run()
    with CaptureQueriesContext(connection) as asked:
        store(cluster, claim("theirs", [("n2", "gpu-0")]))
        engine.run()
    assert [each for each in asked if "ResourceSlice" in each["sql"] and "SELECT" in each["sql"]] == []
    wait(cluster, "next", "one")
    engine.run()
    assert statuses() == {"job": "Admitted", "next": "Pending"}


def test_claims_by_name_are_inadmissible(cluster: Cluster) -> None:
    wait(cluster, "job", by_name="shared")
    start(cluster).run()
    row = Workload.objects.get(name="job")
    assert (row.reason, row.message) == (
        "Misconfigured",
        "KueueDRAIntegration feature does not support use of resource claims",
    )
    assert requeued_of(row)["message"] == "DRA resource claims not supported"


def test_what_cannot_be_placed_waits_with_the_reason(cluster: Cluster) -> None:
    store(cluster, claim_template("pair", request(2), constraints=[{"matchAttribute": f"{DRIVER}/model"}]))
    wait(cluster, "job", "pair")
    start(cluster).run()
    row = Workload.objects.get(name="job")
    assert row.reason == "WaitingForDevices"
    assert "matchAttribute" in row.message


def test_where_no_node_is_known_quota_alone_decides() -> None:
    cluster = make_cluster(configuration={"resources": MAPPINGS})
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 10_000, "example.com/gpus": 1}})
    store(cluster, driver_class(), claim_template("one"))
    wait(cluster, "first", "one")
    wait(cluster, "second", "one")
    start(cluster).run()
    assert statuses() == {"first": "Admitted", "second": "Pending"}


def test_a_kept_world_follows_the_objects(cluster: Cluster) -> None:
    wait(cluster, "job", "late")
    with kept_world(cluster, NOW) as world:
        assert world.claim_refusal("team/job") is not None
    store(cluster, claim_template("late"))
    with kept_world(cluster, NOW) as world:
        assert world.claim_refusal("team/job") is None
