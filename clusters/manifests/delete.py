"""Delete: any object that an apply can create, or many of a kind."""

from __future__ import annotations

from collections.abc import Sequence
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
from queues.services.configuration import delete_object, delete_objects
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
    """Delete an object, now or as soon as nothing uses it.

    Returns a message about what still uses it, such as its users or pods that are stopping; empty if it was deleted.
    `precondition` names the resourceVersion that was read. Raises `NotFound`, `NotPermitted`, `PreconditionFailed`,
    `MirroredFromCluster`, and `InvalidRequest` for a precondition on an object that is not configuration.
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


def require_deletions(cluster: Cluster, kind: ManifestKind, keys: Sequence[tuple[str, str]], *, access: Access) -> None:
    """Raise `NotPermitted` or `MirroredFromCluster` unless the user may delete each of the objects of a kind.

    Keys are (namespace, name); the namespace of a cluster-wide kind is empty.
    """
    for namespace in {namespace for namespace, _ in keys}:
        if not access.may_in_tree(kind.name):
            access.require("submit", kind.name, namespace)
    if kind.name not in OURS:
        require_not_mirrored(cluster)
    if kind.name in CONFIGURATION_KINDS:
        require_below(access, cluster, [(kind.name, namespace, name) for namespace, name in keys])
    elif kind.name in JOB_KINDS:
        rows = _jobs(cluster, kind.name, keys)
        require_owner(cluster, access, [(row.namespace, each.name) for row in rows for each in _workloads_of(row)])
    elif kind.name == "Workload":
        require_owner(cluster, access, keys)


def delete_manifests(cluster: Cluster, kind: ManifestKind, keys: Sequence[tuple[str, str]], *, access: Access) -> None:
    """Delete objects of a configuration kind or a job kind, or workloads, in one transaction: each now or as soon as
    nothing uses it. Raises as `require_deletions` does. Objects that do not exist are skipped, so two callers may
    delete the same ones."""
    with transaction.atomic():
        require_deletions(cluster, kind, keys, access=access)
        if kind.name in CONFIGURATION_KINDS:
            names = [f"{namespace}/{name}" if namespace else name for namespace, name in keys]
            delete_objects(cluster, CONFIGURATION_KINDS[kind.name], names, actor=access.username)
        elif kind.name in JOB_KINDS:
            delete_jobs(cluster, _jobs(cluster, kind.name, keys), actor=access.username, now=timezone.now())
        elif kind.name == "Workload":
            delete_workloads(cluster, keys, actor=access.username)
        else:
            raise InvalidRequest(f"Unsupported value: objects of kind {kind.name} are deleted one at a time.")


def _jobs(cluster: Cluster, kind: str, keys: Sequence[tuple[str, str]]) -> list[Job]:
    wanted = set(keys)
    rows = Job.objects.filter(
        cluster=cluster, kind=kind, namespace__in={key[0] for key in keys}, name__in=[key[1] for key in keys]
    )
    found = rows.select_related("group").prefetch_related("workloads", "group__workloads").order_by("pk")
    return [row for row in found if (row.namespace, row.name) in wanted]


def _workloads_of(job: Job) -> list[Workload]:
    """Return the workloads of a job, or of the group that it is a member of."""
    return list((job.group or job).workloads.all())


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
    job = next(iter(_jobs(cluster, kind, [(namespace, name)])), None)
    if job is None:
        return None
    require_owner(cluster, access, [(namespace, workload.name) for workload in _workloads_of(job)])
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
    """Delete a ConfigMap of the device plugin, or the Configuration, which has no name."""
    if namespace:
        key = f"{namespace}/{name}"
        was_there = cluster_settings.delete_device_plugin(cluster, key, precondition=precondition)
    elif name != cluster_settings.CONFIGURATION_NAME:
        return None
    else:
        was_there = cluster_settings.delete_configuration(cluster, precondition=precondition)
    return "" if was_there else None
