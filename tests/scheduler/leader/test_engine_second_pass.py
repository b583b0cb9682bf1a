"""Topology and devices that wait for a provisioning check, from the row to the running pod."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from clusters.api_objects import JsonObject
from clusters.manifests import apply_manifests
from gpus.models import Device, DeviceAllocation
from queues.models import PodSet, WorkloadEvent
from queues.services.admission_checks import CheckAnswer, set_check_state
from scheduler.leader.engine import Engine
from scheduling.model.vocabulary import AdmissionCheckStatus
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: hosts}
spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: provisioned}
spec: {nodeLabels: {gpu: "on"}, topologyName: hosts}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: nodes}
spec: {controllerName: kueue.x-k8s.io/provisioning-request}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: provisioned}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: nodes}]}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu, nvidia.com/gpumem, nvidia.com/gpucores]
    flavors:
    - name: provisioned
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: nvidia.com/gpu, nominalQuota: 4}
      - {name: nvidia.com/gpumem, nominalQuota: 200000}
      - {name: nvidia.com/gpucores, nominalQuota: 1000}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: provisioned, namespace: team}
spec: {clusterQueue: provisioned}
"""


@pytest.fixture
def system() -> Iterator[System]:
    with ServerThread(make_simulated()) as server:
        system = System(server)
        apply_manifests(system.cluster, QUEUES, user=None)
        yield system


def provisioned_job(mib: int = 30_000) -> JsonObject:
    manifest = gpu_job(mib=mib, parallelism=2, run_seconds=1_000)
    manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "provisioned"
    template = manifest["spec"]["template"]["metadata"]
    template["annotations"] = {
        **(template.get("annotations") or {}),
        "kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname",
    }
    return manifest


def ready(system: System, **update: object) -> None:
    updates = [{"name": "main", **update}] if update else []
    tell(system, CheckAnswer(AdmissionCheckStatus.READY, "provisioned", pod_set_updates=updates))


def tell(system: System, answer: CheckAnswer) -> None:
    row, now = system.workload(), datetime.fromtimestamp(system.now(), UTC)
    set_check_state(system.cluster, row.namespace, row.name, "nodes", answer, actor="autoscaler", now=now)


def test_quota_first_and_devices_once_the_nodes_are_there(system: System) -> None:
    system.apply(provisioned_job())
    system.engine.run()
    row = system.workload()
    assert (row.status, row.reason) == ("QuotaReserved", "UnsatisfiedAdmissionChecks")
    assert PodSet.objects.get().topology_assignment == {"delayed": "Pending"}
    assert not DeviceAllocation.objects.exists()
    ready(system, labels={"request": "r-1"}, nodeSelector={"gpu": "on"})
    system.engine.run()
    assert (system.workload().status, system.workload().reason) == ("QuotaReserved", "PendingDelayedTopologyRequests")
    system.advance(1)
    system.engine.run()
    assert system.workload().status == "Admitted"
    pod_set = PodSet.objects.get()
    assert pod_set.topology_assignment is not None
    assert (pod_set.topology_assignment["delayed"], len(set(pod_set.nodes))) == ("Ready", 1)
    assert DeviceAllocation.objects.count() == 2
    for _ in range(3):
        system.turn()
    pods = system.pods()
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert {pod["metadata"]["labels"]["request"] for pod in pods} == {"r-1"}
    [state] = system.workload().admission_check_states
    assert state["podSetUpdates"][0]["labels"] == {"request": "r-1"}, "kept by what the engine writes"
    reasons = list(WorkloadEvent.objects.order_by("pk").values_list("reason", flat=True))
    assert (reasons.count("QuotaReserved"), reasons.count("Admitted")) == (1, 1)


def test_a_pass_that_finds_no_room_says_so_and_comes_again(system: System) -> None:
    system.apply(provisioned_job(mib=90_000))
    system.engine.run()
    ready(system)
    system.engine.run()
    for _ in range(8):
        system.advance(1)
        system.engine.run()
    event = WorkloadEvent.objects.get(reason="SecondPassFailed")
    assert event.type == "Warning"
    row = system.workload()
    assert row.status == "QuotaReserved"
    assert row.message.startswith("There are pending delayed topology requests: ")
    assert event.message in row.message
    Device.objects.update(memory_mib=100_000)
    system.engine = Engine(system.cluster, "next", clock=system.now)
    system.advance(1)
    system.engine.run()
    assert system.workload().status == "Admitted", "also when another leads"


def test_an_eviction_gives_it_a_new_turn(system: System) -> None:
    system.apply(provisioned_job())
    system.engine.run()
    ready(system)
    system.engine.run()
    system.advance(1)
    system.engine.run()
    for _ in range(3):
        system.turn()
    tell(system, CheckAnswer(AdmissionCheckStatus.RETRY, "the nodes were taken back", requeue_after_seconds=5))
    for _ in range(4):
        system.turn()
    assert not DeviceAllocation.objects.exists()
    assert PodSet.objects.get().topology_assignment == {"delayed": "Pending"}
    assert system.workload().status == "QuotaReserved"
