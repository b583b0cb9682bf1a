"""Delete: any object that an apply can create, one at a time."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.utils import timezone

from accounts.models import Cluster
from accounts.services import cluster_settings
from accounts.services.access import Access
from accounts.services.cluster_settings import require_not_mirrored
from accounts.services.precondition import Precondition
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests.apply import OURS
from clusters.manifests.kinds import SETTINGS
from foundation.exceptions import InvalidRequest, NotFound
from gpus.models import Node
from gpus.services.node_manifests import delete_nodes
from kinds.declaration import ManifestKind
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.models import Job, Workload
from queues.services.configuration import delete_object
from queues.services.jobs import delete_jobs
from queues.services.owners import require_below, require_owner
from queues.services.workloads import delete_workloads

_STOPPING: Final = "holds quota: it will be deleted when its pods have stopped"


def delete_manifest(
    cluster: Cluster,
    kind: ManifestKind,
    namespace: str,
    name: str,
    *,
    access: Access,
    precondition: Precondition | None = None,
) -> str:
    """Delete an object, now or as soon as nothing holds it. Returns a message about what it waits for, such as its
    users or pods that are stopping; empty if it is deleted.

    `precondition` names the resourceVersion that was read. Raises `NotFound`, `NotPermitted`, `PreconditionFailed`,
    `MirroredFromCluster`, and `InvalidRequest` for a precondition on an object that is no configuration.
    """
    if not access.may_in_tree(kind.name):
        access.require("submit", kind.name, namespace)
    if kind.name not in OURS:
        require_not_mirrored(cluster)
    key = f"{namespace}/{name}" if namespace else name
    with transaction.atomic():
        waiting = _delete(cluster, kind, namespace, name, access, precondition)
        if waiting is None:
            raise NotFound(f"There is no {kind.name} {key} in cluster {cluster.name}.")
    return waiting


def _delete(
    cluster: Cluster, kind: ManifestKind, namespace: str, name: str, access: Access, precondition: Precondition | None
) -> str | None:
    """Delete an object; None if it does not exist."""
    if kind.name in CONFIGURATION_KINDS:
        require_below(access, cluster, [(kind.name, namespace, name)])
        return delete_object(cluster, kind.name, name, namespace, actor=access.username, precondition=precondition)
    if kind.name in SETTINGS:
        return _delete_settings(cluster, namespace, name, precondition)
    if precondition is not None:
        raise InvalidRequest(
            f"If-Match: Forbidden for {kind.name}: running objects change by themselves. Only configuration "
            "objects can be deleted conditionally. Omit the header."
        )
    if kind.name in JOB_KINDS:
        return _delete_job(cluster, kind.name, namespace, name, access)
    return {"Workload": _delete_workload, "Node": _delete_node}[kind.name](cluster, namespace, name, access)


def _delete_job(cluster: Cluster, kind: str, namespace: str, name: str, access: Access) -> str | None:
    rows = Job.objects.filter(cluster=cluster, kind=kind, namespace=namespace, name=name)
    job = rows.select_related("group").prefetch_related("workloads", "group__workloads").first()
    if job is None:
        return None
    require_owner(cluster, access, [(namespace, workload.name) for workload in (job.group or job).workloads.all()])
    return delete_jobs(cluster, [job], actor=access.username, now=timezone.now()).get(job.pk, "")


def _delete_workload(cluster: Cluster, namespace: str, name: str, access: Access) -> str | None:
    if not Workload.objects.filter(cluster=cluster, namespace=namespace, name=name).exists():
        return None
    require_owner(cluster, access, [(namespace, name)])
    return "" if delete_workloads(cluster, [(namespace, name)], actor=access.username) else _STOPPING


def _delete_node(cluster: Cluster, namespace: str, name: str, access: Access) -> str | None:
    if not Node.objects.filter(cluster=cluster, name=name).exists():
        return None
    return "" if delete_nodes(cluster.pk, [name], timezone.now()) else "slices of its devices are held"


def _delete_settings(cluster: Cluster, namespace: str, name: str, precondition: Precondition | None) -> str | None:
    """A ConfigMap of the device plugin, or the Configuration, which has no name."""
    if namespace:
        key = f"{namespace}/{name}"
        was_there = cluster_settings.delete_device_plugin(cluster, key, precondition=precondition)
    elif name != cluster_settings.CONFIGURATION_NAME:
        return None
    else:
        was_there = cluster_settings.delete_configuration(cluster, precondition=precondition)
    return "" if was_there else None
