"""A job that pursues two flavors at once where Kueue's objects are ours to serve, as Kueue's own specs tell it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.jobs.registry import JOB_KINDS
from clusters.served.kueue_kinds import KUEUE_KINDS
from queues.models import Workload
from tests.clusters.served_cluster import ServedCluster
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

FLAVOR = "kueue.x-k8s.io/workload-allowed-resource-flavors"
PARENT = "kueue.x-k8s.io/concurrent-admission-parent"
JOBS = JOB_KINDS["Job"].resource


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    with ServerThread(make_simulated()) as server:
        found = ServedCluster(server)
        Cluster.objects.filter(pk=found.cluster.pk).update(
            configuration={"featureGates": {"ConcurrentAdmission": True}}, placement="devices"
        )
        found.cluster.refresh_from_db()
        found.apply("Namespace", "team", {})
        for name in ("reservation", "spot"):
            found.apply("ResourceFlavor", name, {"spec": {"nodeLabels": {"instance-type": name}}})
        set_quotas(found, "0", "5")
        found.apply("LocalQueue", "main", {"spec": {"clusterQueue": "shared"}}, "team")
        found.settle(2)
        yield found


def set_quotas(served: ServedCluster, reservation: str, spot: str) -> None:
    flavors = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
        for name, cpu in (("reservation", reservation), ("spot", spot))
    ]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    policy = {"migration": {"mode": "TryPreferredFlavors"}}
    spec = {"namespaceSelector": {}, "resourceGroups": groups, "concurrentAdmissionPolicy": policy}
    served.apply("ClusterQueue", "shared", {"spec": spec})


def submit(served: ServedCluster) -> None:
    manifest = job("train", run_seconds=600, suspend=True, requests={"cpu": "1"})
    manifest["metadata"] = {"name": "train", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "main"}}
    served.send("POST", "/apis/batch/v1/namespaces/team/jobs", manifest)


def objects(served: ServedCluster) -> tuple[JsonObject, dict[str, JsonObject]]:
    """The parent, and the variants by flavor, as the cluster's clients see them."""
    found = served.client.list(KUEUE_KINDS["Workload"][0]).items
    flavors: dict[str, JsonObject] = {}
    parents: list[JsonObject] = []
    for each in found:
        flavor = (each["metadata"].get("annotations") or {}).get(FLAVOR)
        if flavor:
            flavors[flavor] = each
        else:
            parents.append(each)
    (parent,) = parents
    return parent, flavors


def is_true(obj: JsonObject, type_: str) -> bool:
    conditions: list[dict[str, Any]] = (obj.get("status") or {}).get("conditions") or []
    return any(each["type"] == type_ and each["status"] == "True" for each in conditions)


def assigned(obj: JsonObject) -> str:
    return str(obj["status"]["admission"]["podSetAssignments"][0]["flavors"]["cpu"])


def test_a_job_migrates_to_the_preferred_flavor_when_its_quota_becomes_available(served: ServedCluster) -> None:
    submit(served)
    served.settle(4)
    parent, variants = objects(served)
    assert parent["metadata"]["labels"][PARENT] == "true"
    assert set(variants) == {"reservation", "spot"}
    for variant in variants.values():
        (owner,) = variant["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["kind"], owner["controller"]) == (parent["metadata"]["uid"], "Workload", True)
        assert variant["spec"]["preemptionGates"] == [{"name": "kueue.x-k8s.io/concurrent-admission"}]
        assert PARENT not in (variant["metadata"].get("labels") or {})
    assert is_true(parent, "Admitted")
    assert (assigned(parent), is_true(variants["spot"], "Admitted")) == ("spot", True)
    assert variants["reservation"]["spec"].get("active", True)
    there = served.client.get(JOBS, "team", "train")
    assert there is not None
    assert there["spec"]["suspend"] is False
    assert there["spec"]["template"]["spec"]["nodeSelector"] == {"instance-type": "spot"}
    set_quotas(served, "5", "5")
    served.settle(8)
    parent, variants = objects(served)
    assert is_true(parent, "Admitted")
    assert assigned(parent) == "reservation"
    assert variants["spot"]["spec"]["active"] is False
    there = served.client.get(JOBS, "team", "train")
    assert there is not None
    assert there["spec"]["template"]["spec"]["nodeSelector"] == {"instance-type": "reservation"}


def test_nothing_is_left_of_a_job_that_is_deleted(served: ServedCluster) -> None:
    submit(served)
    served.settle(4)
    served.send("DELETE", "/apis/batch/v1/namespaces/team/jobs/train", None)
    served.settle(6)
    assert not Workload.objects.exclude(status="Finished").exists()
    assert not [each for each in served.client.list(KUEUE_KINDS["Workload"][0]).items if not is_true(each, "Finished")]
