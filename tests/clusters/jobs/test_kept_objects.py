"""Objects of the configuration that passes keep until a row of it is edited."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.cluster_versions import cluster_versions
from accounts.models import Namespace
from clusters.jobs.cluster_objects import _KEPT, KeptObjects, OneLook
from clusters.jobs.framework.manifest import JsonObject
from gpus.models import Device, Node
from queues.models import AdmissionCheck, ClusterQueue, LocalQueue, ResourceFlavor
from tests.cluster_kinds import JOBS
from tests.clusters.system import System, gpu_job
from tests.factories import START, make_cluster, make_node

pytestmark = pytest.mark.django_db(transaction=True)

EDITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Namespace": (Namespace, {"labels": {"a": "b"}}),
    "LocalQueue": (LocalQueue, {"cluster_queue_name": "other"}),
    "ClusterQueue": (ClusterQueue, {"admission_checks": [{"name": "check"}]}),
    "AdmissionCheck": (AdmissionCheck, {"controller_name": "other"}),
    "ResourceFlavor": (ResourceFlavor, {"node_labels": {"a": "b"}}),
}
"""By kind, an edit of a column that passes read."""


class _Counted:
    """Objects that all exist, and how often they were looked up."""

    def __init__(self) -> None:
        self.looks = 0

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        self.looks += 1
        return {"metadata": {"name": name}} if name != "missing" else None

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        return []


def test_an_edit_of_each_kept_kind_changes_the_version_of_the_cluster(system: System) -> None:
    AdmissionCheck.objects.create(
        cluster=system.cluster, name="check", controller_name="example.com/check", created_at=START
    )
    for kind in _KEPT:
        model, edit = EDITS[kind]
        before = cluster_versions()[system.cluster.pk]
        assert model.objects.filter(cluster=system.cluster).update(**edit)
        edited = cluster_versions()[system.cluster.pk]
        assert edited != before
        model.objects.filter(cluster=system.cluster).delete()
        assert cluster_versions()[system.cluster.pk] != edited


def test_the_first_device_of_a_cluster_changes_its_version() -> None:
    cluster = make_cluster()
    node = make_node(cluster, "node")
    before = cluster_versions()[cluster.pk]
    Device.objects.create(node=node, uuid="device", index=0, slots=1, memory_mib=1000, cores_percent=100)
    assert cluster_versions()[cluster.pk] != before


@pytest.mark.parametrize(
    ("kind", "name", "version", "looks"),
    [
        ("ResourceFlavor", "flavor", "1", 1),
        ("ResourceFlavor", "flavor", "2", 2),
        ("ResourceFlavor", "flavor", "", 2),
        ("ResourceFlavor", "missing", "1", 2),
        ("WorkloadPriorityClass", "class", "1", 2),
    ],
)
def test_an_object_is_looked_up_again_only_after_an_edit(kind: str, name: str, version: str, looks: int) -> None:
    cluster, kept, objects = make_cluster(), KeptObjects(), _Counted()
    for seen in ("1", version):
        kept.follow(seen)
        look = OneLook(cluster, objects, kept)
        assert look.get(kind, "", name) == look.get(kind, "", name)
    assert objects.looks == looks


def test_a_job_starts_with_the_labels_that_its_flavor_has_by_then(system: System) -> None:
    for name, labels in (("first", {"gpu": "on"}), ("second", {"gpu": "on", "zone": "a"}), ("third", {"gpu": "on"})):
        ResourceFlavor.objects.filter(cluster=system.cluster).update(node_labels=labels)
        Node.objects.filter(cluster=system.cluster).update(labels=labels)
        system.submit(gpu_job(name, suspend=True))
        system.engine.run()
        system.push()
        started = system.client.get(JOBS, "team", name)
        assert started is not None
        assert started["spec"]["template"]["spec"]["nodeSelector"] == labels
