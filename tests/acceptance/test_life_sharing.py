"""Queues by weight: what a cohort with a sharing policy gives to its queues, from manifest to running pods."""

from __future__ import annotations

from collections import Counter
from io import StringIO

import pytest
from django.core.management import call_command

from queues.models import ClusterQueue, Workload, WorkloadEvent
from tests.acceptance.life import FOR_EVER, running_pods
from tests.clusters.system import System
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db(transaction=True)

COHORT = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: all, annotations: {kueueweb.io/sharing-policy: POLICY}}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: gpu-flavor, resources: [{name: cpu, nominalQuota: "OWN"}]}]
"""
QUEUE = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME, annotations: {kueueweb.io/never-reclaim: "NEVER"}}
spec:
  cohortName: all
  namespaceSelector: {}
  fairSharing: {weight: "WEIGHT"}
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: gpu-flavor, resources: [{name: cpu, nominalQuota: "NOMINAL"}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: NAME, namespace: team}
spec: {clusterQueue: NAME}
"""


def apply(system: System, policy: str, own: int, **queues: tuple[int, int, bool]) -> None:
    """A cohort with quota of its own, and its queues: weight, nominal quota, and whether it is never reclaimed."""
    text = COHORT.replace("POLICY", policy).replace("OWN", str(own))
    for name, (weight, nominal, never) in queues.items():
        queue = QUEUE.replace("NAME", name).replace("WEIGHT", str(weight)).replace("NOMINAL", str(nominal))
        text += queue.replace("NEVER", str(never).lower())
    system.apply_text(text)


def submit(system: System, queue: str, count: int) -> None:
    """Submit endless jobs of one core."""
    for number in range(count):
        made = job(f"{queue}-{number}", requests={"cpu": "1"}, run_seconds=FOR_EVER)
        metadata = made["metadata"] | {"namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": queue}}
        system.submit(made | {"metadata": metadata})


def admitted() -> Counter[str]:
    """ClusterQueue -> its admitted workloads."""
    return Counter(Workload.objects.filter(status="Admitted").values_list("cluster_queue_name", flat=True))


def explained(workload: Workload) -> str:
    """The text of `manage.py explain`."""
    out = StringIO()
    call_command("explain", f"{workload.namespace}/{workload.name}", stdout=out)
    return out.getvalue()


def turns(system: System, count: int = 6) -> None:
    for _ in range(count):
        system.turn(5)


def test_weight_and_demand_divide_the_quota_and_a_late_queue_takes_its_part_back(system: System) -> None:
    apply(system, "proportion", 8, a=(1, 0, False), b=(3, 0, False))
    submit(system, "a", 10)
    turns(system, 2)
    assert (admitted(), running_pods(system)) == ({"a": 8}, 8), "a queue alone gets all that it asks for"
    submit(system, "b", 10)
    turns(system, 8)
    assert WorkloadEvent.objects.filter(reason="Preempted").count() == 6, "no more than it deserves is taken back"
    assert (admitted(), running_pods(system)) == ({"a": 2, "b": 6}, 8)
    waits = Workload.objects.filter(queue_name="b", status="Pending").first()
    assert waits is not None
    assert "0 free, 1 lacking (6 used, 6 deserved by the cohort's sharing policy)" in explained(waits)


def test_a_queue_that_is_never_reclaimed_keeps_its_workloads(system: System) -> None:
    apply(system, "capacity", 0, a=(1, 2, True), b=(1, 6, False))
    submit(system, "a", 8)
    turns(system, 2)
    submit(system, "b", 6)
    turns(system, 3)
    assert admitted() == {"a": 8}
    ClusterQueue.objects.filter(name="a").update(never_reclaimed=False)
    turns(system)
    assert admitted() == {"a": 2, "b": 6}
