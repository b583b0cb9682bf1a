"""ProvisioningRequests: nodes are asked for while a workload holds quota; it runs on them, or waits and says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.api_objects import NODES, POD_TEMPLATES, PROVISIONING_REQUESTS, JsonObject
from clusters.client import TokenBucket
from clusters.client_credentials import connect
from clusters.manifests import apply_manifests
from clusters.push.provisioning import ProvisioningRequests
from queues.models import ProvisioningRequestConfig, Workload
from simulation.controllers.autoscaler import GROUP_LABEL
from tests.clusters.system import System, queued
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: burst}
spec: {nodeLabels: {pool: burst}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: burst}
spec:
  provisioningClassName: best-effort-atomic-scale-up.autoscaling.x-k8s.io
  parameters: {ValidUntilSeconds: "600"}
  managedResources: [cpu]
  retryStrategy: {backoffLimitCount: 1, backoffBaseSeconds: 30}
  podSetUpdates:
    nodeSelector:
    - {key: autoscaling.kueueweb.io/provisioned-for, valueFromProvisioningClassDetail: NodeGroup}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: nodes}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: burst}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: burst}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: nodes}]}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: burst, resources: [{name: cpu, nominalQuota: 100}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: burst, namespace: team}
spec: {clusterQueue: burst}
"""
GROUP = {"labels": {"pool": "burst"}, "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}


@pytest.fixture
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    options: dict[str, Any] = getattr(request, "param", {"node_group": GROUP})
    with ServerThread(make_simulated(**options)) as server:
        system = System(server)
        apply_manifests(system.cluster, QUEUES, user=None)
        yield system


def burst_job(**fields: Any) -> JsonObject:
    manifest = queued(job("burst", requests={"cpu": "3"}, run_seconds=1000, **fields))
    manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "burst"
    return manifest


def state(system: System) -> dict[str, Any]:
    (found,) = Workload.objects.get().admission_check_states
    return dict(found)


def test_nodes_are_made_and_the_pods_run_on_them(system: System) -> None:
    system.submit(burst_job(parallelism=2, completions=2))
    system.engine.run()
    system.push()
    (request,) = system.client.list(PROVISIONING_REQUESTS).items
    assert request["spec"]["provisioningClassName"] == "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    assert request["spec"]["parameters"] == {"ValidUntilSeconds": "600"}
    (entry,) = request["spec"]["podSets"]
    assert entry["count"] == 2
    template = system.client.get(POD_TEMPLATES, "team", entry["podTemplateRef"]["name"])
    assert template is not None
    assert template["template"]["spec"]["nodeSelector"] == {"pool": "burst"}
    assert Workload.objects.get().status == "QuotaReserved"
    for _ in range(6):
        system.turn()
    row = Workload.objects.get()
    assert (row.status, state(system)["state"]) == ("Admitted", "Ready")
    made = {
        node["metadata"]["name"]
        for node in system.client.list(NODES).items
        if GROUP_LABEL in (node["metadata"].get("labels") or {})
    }
    pods = [each for each in system.pods() if each["metadata"]["namespace"] == "team"]
    assert {each["spec"]["nodeName"] for each in pods} == made
    name = request["metadata"]["name"]
    for each in pods:
        assert each["spec"]["nodeSelector"][GROUP_LABEL] == name
        assert each["metadata"]["annotations"]["autoscaling.x-k8s.io/consume-provisioning-request"] == name


@pytest.mark.parametrize("system", [{"node_group": GROUP, "max_provisioned": 0}], indirect=True)
def test_a_request_that_fails_is_retried_after_a_while_and_then_rejected(system: System) -> None:
    system.submit(burst_job())
    for _ in range(4):
        system.turn()
    row = Workload.objects.get()
    assert row.status in ("Pending", "Evicted")
    assert row.requeue_at is not None, "Retry, in 30 seconds"
    for _ in range(20):
        system.turn(10)
    row.refresh_from_db()
    assert not row.active, "Rejected after its one retry"
    assert system.client.list(PROVISIONING_REQUESTS).items == ()


def test_a_request_goes_with_its_workload(system: System) -> None:
    system.submit(burst_job())
    system.engine.run()
    system.push()
    assert len(system.client.list(PROVISIONING_REQUESTS).items) == 1
    Workload.objects.update(active=False)
    for _ in range(3):
        system.turn()
    assert system.client.list(PROVISIONING_REQUESTS).items == ()
    assert system.client.list(POD_TEMPLATES).items == ()


def test_pods_that_ask_for_nothing_that_is_managed_need_no_request(system: System) -> None:
    ProvisioningRequestConfig.objects.update(managed_resources=["example.com/fpga"])
    system.submit(burst_job())
    system.engine.run()
    system.push()
    assert state(system)["state"] == "Ready"
    assert state(system)["message"] == "the provisioning request is not needed"


def test_a_cluster_without_the_kind_is_named(system: System) -> None:
    system.submit(burst_job())
    system.engine.run()
    elsewhere = connect(f"{system.cluster.server_url}/serves-nothing", TokenBucket(100, 100))
    ProvisioningRequests(system.cluster, elsewhere, system.now).follow()
    found = state(system)
    assert found["state"] == "Pending"
    assert "does not serve autoscaling.x-k8s.io/v1 ProvisioningRequest: install its CRD" in found["message"]
