"""Rows for tests, with the defaults that a small cluster has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from accounts.models import Cluster, Namespace
from gpus.models import Device, Node
from queues.models import ClusterQueue, Cohort, FlavorQuota, LocalQueue, PodSet, ResourceFlavor, ResourceGroup, Workload
from scheduling.model.vocabulary import PlacementScope

START = datetime(2026, 1, 1, tzinfo=UTC)
Quotas = Mapping[str, Mapping[str, int | tuple[int, int | None, int | None]]]
"""flavor -> resource -> nominal, or (nominal, borrowing limit, lending limit); base units."""


def make_cluster(name: str = "default", **fields: Any) -> Cluster:
    """A cluster with the namespace `team`, where all pods are placed on nodes."""
    cluster, _ = Cluster.objects.get_or_create(name=name, defaults={"placement": PlacementScope.ALL, **fields})
    make_namespace(cluster, "team")
    return cluster


def make_namespace(cluster: Cluster, name: str, **labels: str) -> Namespace:
    """A namespace with labels."""
    row, _ = Namespace.objects.get_or_create(
        cluster=cluster, name=name, defaults={"labels": labels, "created_at": START}
    )
    return row


def make_resource_flavor(cluster: Cluster, name: str = "default-flavor", **fields: Any) -> ResourceFlavor:
    """A flavor; without labels it takes every node."""
    return ResourceFlavor.objects.create(cluster=cluster, name=name, created_at=START, **fields)


def make_cohort(cluster: Cluster, name: str, **fields: Any) -> Cohort:
    """A cohort without quota of its own."""
    return Cohort.objects.create(cluster=cluster, name=name, created_at=START, **fields)


def make_cluster_queue(
    cluster: Cluster, name: str = "main", quotas: Quotas | None = None, *, local_queue: str = "queue", **fields: Any
) -> ClusterQueue:
    """A ClusterQueue open to all namespaces, with a LocalQueue of namespace `team`; by default 10 cpu of one flavor."""
    quotas = {"default-flavor": {"cpu": 10_000}} if quotas is None else quotas
    fields = {"namespace_selector": {}, **fields}
    queue = ClusterQueue.objects.create(cluster=cluster, name=name, created_at=START, **fields)
    for flavor in quotas:
        ResourceFlavor.objects.get_or_create(cluster=cluster, name=flavor, defaults={"created_at": START})
    make_resource_group(queue, quotas)
    if local_queue:
        LocalQueue.objects.create(
            cluster=cluster, namespace="team", name=local_queue, cluster_queue_name=name, created_at=START
        )
    return queue


def make_resource_group(queue: ClusterQueue, quotas: Quotas, position: int = 0) -> ResourceGroup:
    """One resource group with its cells."""
    covered = list(next(iter(quotas.values()), {}))
    group = ResourceGroup.objects.create(
        cluster_queue=queue, position=position, covered_resources=covered, flavors=list(quotas)
    )
    for flavor, resources in quotas.items():
        for resource, cell in resources.items():
            nominal, borrowing, lending = cell if isinstance(cell, tuple) else (cell, None, None)
            FlavorQuota.objects.create(
                resource_group=group,
                flavor=flavor,
                resource=resource,
                nominal_quota=nominal,
                borrowing_limit=borrowing,
                lending_limit=lending,
            )
    return group


def pod_template(requests: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A pod template of one container; what is asked for are limits, as for GPUs."""
    return {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "main", "resources": {"limits": dict(requests)}}]},
    }


def make_workload(
    cluster: Cluster,
    name: str,
    requests: Mapping[str, str] | None = None,
    *,
    count: int = 1,
    queue_name: str = "queue",
    namespace: str = "team",
    pod_set: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Workload:
    """A waiting workload of one pod set; by default one pod that asks for 1 cpu."""
    created_at = START + timedelta(seconds=Workload.objects.count())  # the order of creation is the order of the queue
    fields = {"created_at": created_at, **fields}
    workload = Workload.objects.create(cluster=cluster, namespace=namespace, name=name, queue_name=queue_name, **fields)
    template = pod_template(requests or {"cpu": "1"})
    PodSet.objects.create(workload=workload, count=count, template=template, requests={}, **(pod_set or {}))
    return workload


def make_node(cluster: Cluster, name: str, devices: Sequence[Mapping[str, Any]] = (), **fields: Any) -> Node:
    """A node and its devices, each 4 slots, 16,000 MiB and 100 % unless said otherwise."""
    node = Node.objects.create(cluster=cluster, name=name, created_at=START, **fields)
    for index, device in enumerate(devices):
        defaults = {
            "uuid": f"{name}-{index}", "index": index, "slots": 4, "memory_mib": 16_000, "cores_percent": 100,
            "type": "NVIDIA-Tesla V100", "vendor": "NVIDIA",
        }  # fmt: skip
        Device.objects.create(node=node, **{**defaults, **device})
    return node
