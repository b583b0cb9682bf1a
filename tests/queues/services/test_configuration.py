"""Configuration objects: deleted when nothing holds them, and one by one as the API and the admin store them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster, Namespace
from accounts.services.apply_result import Action, Submitted
from foundation.exceptions import InvalidRequest, NotFound
from queues.kinds import KINDS
from queues.manifests.job_workloads import workload_specs
from queues.models import AdmissionCheck, ClusterQueue, LocalQueue, ResourceFlavor, Topology, Workload
from queues.services.configuration import (
    apply_json,
    apply_objects,
    delete_object,
    finish_deletions,
    manifest_of,
)
from queues.services.submission import create_workloads
from queues.services.workloads import record_finished
from scheduling.manifest import FieldReader, ValidationReport
from scheduling.model.vocabulary import FinishedReason
from tests import factories
from tests.clusters.system import gpu_job

GROUP = {
    "coveredResources": ["cpu"],
    "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}],
}
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster()


def manifest(kind: str, name: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec or {}}


def read(document: dict[str, Any]) -> Submitted[Any]:
    report = ValidationReport()
    top = FieldReader(report, "", document)
    top.ignore("apiVersion", "kind")
    spec = KINDS[document["kind"]].read(top, "v1beta2")
    assert report.errors == []
    return Submitted(spec, report, document["apiVersion"])


def apply(cluster: Cluster, document: dict[str, Any]) -> Action:
    (applied,) = apply_objects(cluster, KINDS[document["kind"]], [read(document)], actor="alice")
    return applied.action


def test_one_object_is_stored_and_changed_from_its_own_manifest(cluster: Cluster) -> None:
    queue = factories.make_cluster_queue(cluster)
    queue.refresh_from_db()
    changed = manifest_of(queue)
    changed["spec"]["stopPolicy"] = "Hold"
    assert apply(cluster, changed) == "configured"
    assert apply(cluster, changed) == "unchanged"
    queue.refresh_from_db()
    assert queue.stop_policy == "Hold"


def test_an_edit_in_our_json_keeps_the_fields_that_it_does_not_have(cluster: Cluster) -> None:
    policy = {"migration": {"mode": "RetainFirstAdmission"}}
    apply(cluster, manifest("ClusterQueue", "a", {"resourceGroups": [GROUP]}))
    ClusterQueue.objects.update(concurrent_admission_policy=policy)  # of a version that took it
    kind = KINDS["ClusterQueue"]
    body = kind.to_json(ClusterQueue.objects.get()) | {"stop_policy": "Hold"}
    assert apply_json(cluster, kind, body, name="a", actor="alice").action == "configured"
    assert ClusterQueue.objects.get().concurrent_admission_policy == policy


def test_an_object_of_another_kind_can_not_be_deleted(cluster: Cluster) -> None:
    with pytest.raises(InvalidRequest):
        delete_object(cluster, "Job", "a", actor="alice")


def test_an_object_that_nothing_holds_goes_at_once(cluster: Cluster) -> None:
    apply(cluster, manifest("ResourceFlavor", "f"))
    assert delete_object(cluster, "ResourceFlavor", "f", actor="alice") == ""
    assert not ResourceFlavor.objects.exists()


def test_an_object_that_there_is_not(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        delete_object(cluster, "ResourceFlavor", "f", actor="alice")


def test_a_flavor_waits_for_its_queues_and_a_queue_for_its_workloads(cluster: Cluster) -> None:
    queue = factories.make_cluster_queue(cluster)
    workload = factories.make_workload(cluster, "w")
    Workload.objects.update(quota_reserved_at=NOW, cluster_queue_name=queue.name, status="Admitted")
    assert delete_object(cluster, "ResourceFlavor", "default-flavor", actor="alice") == "it is a flavor of main"
    waiting = delete_object(cluster, "ClusterQueue", "main", actor="alice")
    assert waiting == f"quota is held in it by {workload.key}"
    assert finish_deletions(cluster) == 0
    Workload.objects.update(status="Finished", finished_at=NOW)
    assert finish_deletions(cluster) == 2
    assert not ClusterQueue.objects.exists()
    assert not ResourceFlavor.objects.exists()


def test_a_topology_waits_for_its_flavors_and_a_check_for_its_queues(cluster: Cluster) -> None:
    apply(cluster, manifest("Topology", "t", {"levels": [{"nodeLabel": "rack"}]}))
    apply(cluster, manifest("ResourceFlavor", "f", {"topologyName": "t", "nodeLabels": {"a": "b"}}))
    apply(cluster, manifest("AdmissionCheck", "c", {"controllerName": "x"}))
    checks = {"admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]}}
    apply(cluster, manifest("ClusterQueue", "q", checks))
    assert delete_object(cluster, "Topology", "t", actor="alice") == "it is the topology of f"
    assert delete_object(cluster, "AdmissionCheck", "c", actor="alice") == "it is required by q"
    assert delete_object(cluster, "ResourceFlavor", "f", actor="alice") == ""
    apply(cluster, manifest("ClusterQueue", "q"))
    finish_deletions(cluster)
    assert not Topology.objects.exists()
    assert not AdmissionCheck.objects.exists()


def test_a_namespace_waits_for_what_is_in_it_and_a_local_queue_for_nothing(cluster: Cluster) -> None:
    factories.make_cluster_queue(cluster)
    assert delete_object(cluster, "Namespace", "team", actor="alice") == "it has the LocalQueues queue"
    assert delete_object(cluster, "LocalQueue", "queue", "team", actor="alice") == ""
    assert not LocalQueue.objects.exists()
    finish_deletions(cluster)
    assert not Namespace.objects.filter(name="team").exists()


def test_clusters_do_not_see_each_other(cluster: Cluster) -> None:
    other = factories.make_cluster("other")
    factories.make_cluster_queue(other)
    apply(cluster, manifest("ResourceFlavor", "default-flavor"))
    assert delete_object(cluster, "ResourceFlavor", "default-flavor", actor="alice") == ""
    assert ResourceFlavor.objects.get().cluster == other


def test_many_new_queues_cost_as_many_statements_as_one(cluster: Cluster) -> None:
    def statements(count: int, prefix: str) -> int:
        documents = [
            manifest("ClusterQueue", f"{prefix}-{number}", {"resourceGroups": [GROUP]}) for number in range(count)
        ]
        submissions = [read(document) for document in documents]
        with CaptureQueriesContext(connection) as queries:
            apply_objects(cluster, KINDS["ClusterQueue"], submissions, actor="alice")
        return len(queries)

    assert statements(1, "one") == statements(50, "many")


def test_deletions_cost_one_query_while_none_waits_and_two_however_many_wait(cluster: Cluster) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert finish_deletions(cluster) == 0
    assert len(queries) == 1
    for number in range(30):
        Namespace.objects.create(cluster=cluster, name=f"n-{number}", created_at=NOW, deletion_requested_at=NOW)
        LocalQueue.objects.create(
            cluster=cluster, namespace=f"n-{number}", name="queue", cluster_queue_name="main", created_at=NOW
        )
    with CaptureQueriesContext(connection) as queries:
        assert finish_deletions(cluster) == 0
    assert len(queries) == 2
    LocalQueue.objects.filter(namespace="n-7").delete()
    assert finish_deletions(cluster) == 1
    assert Namespace.objects.filter(name__startswith="n-").count() == 29


def test_a_namespace_does_not_wait_for_what_has_ended_in_it(cluster: Cluster) -> None:
    create_workloads(cluster, workload_specs(gpu_job()), actor="alice")
    row = Workload.objects.get()
    assert delete_object(cluster, "Namespace", "team", actor="alice") == f"it has the workloads {row.key}"
    record_finished(cluster, [("team", row.name)], FinishedReason.SUCCEEDED, "done", actor="watcher")
    assert finish_deletions(cluster) == 1
    assert not Namespace.objects.filter(name="team").exists()
    assert Workload.objects.get().status == "Finished"
