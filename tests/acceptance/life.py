"""What the tests of a workload's life share: what they ask for, and what rows, events and pods say of it."""

from __future__ import annotations

from typing import Any

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from queues.models import ClusterQueue, FlavorQuota, Job, Workload, WorkloadEvent
from tests.clusters.system import System, gpu_job

FOR_EVER = 1_000_000
"""Seconds that a job runs which does not end in a test."""
WHOLE_QUEUE = 4000
"""MiB of a job that takes all of a queue for one (`one_at_a_time`)."""


def configure(system: System, **configuration: Any) -> None:
    """Kueue's configuration, as it is applied."""
    Cluster.objects.update(configuration=configuration)
    system.engine.run()


def one_at_a_time(**policies: str) -> None:
    """Quota for one job of `WHOLE_QUEUE` MiB, and the policies of the ClusterQueue."""
    FlavorQuota.objects.filter(resource="nvidia.com/gpumem").update(nominal_quota=WHOLE_QUEUE)
    if policies:
        ClusterQueue.objects.update(**policies)


def endless(name: str, priority: int = 0, **spec: Any) -> JsonObject:
    """A job that runs until it is stopped."""
    made = gpu_job(name, run_seconds=FOR_EVER, **spec)
    if priority:
        made["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = f"priority-{priority}"
    return made


def submit(system: System, name: str, priority: int = 0, **spec: Any) -> Workload:
    """Submit an endless job of that priority, a second after whatever was before; its workload."""
    system.advance(1)
    system.submit(endless(name, **spec))
    Workload.objects.filter(job__name=name).update(priority=priority)
    return system.workload(name)


def key(workload: Workload) -> tuple[str, str]:
    """Its namespace and name."""
    return workload.namespace, workload.name


def statuses() -> dict[str, str]:
    """Where each job's workload is in its life."""
    return dict(Workload.objects.order_by("job__name").values_list("job__name", "status"))


def condition(name: str, workload: Workload | None = None) -> tuple[str, str]:
    """Status and reason of a condition."""
    row = workload or Workload.objects.get()
    found = next(entry for entry in row.conditions if entry["type"] == name)
    return found["status"], found["reason"]


def events(job: str = "") -> list[str]:
    """What was told of the workload of a job (of all without one), in order."""
    rows = WorkloadEvent.objects.order_by("id")
    if job:
        workloads = Workload.objects.filter(job__in=Job.objects.filter(name=job))
        rows = rows.filter(workload_uid__in=workloads.values("uid"))
    return list(rows.values_list("reason", flat=True))


def running_pods(system: System) -> int:
    """Pods in the cluster that have not ended."""
    return sum(pod["status"]["phase"] in ("Pending", "Running") for pod in system.pods())
