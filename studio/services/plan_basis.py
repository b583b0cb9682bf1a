"""The state on which an answer to a plan rests, as versions, and its comparison with the present state.

An answer rests on the objects that its plan names, and on the cluster's configuration, published devices and settings.
Workloads arrive, start and end all the time, and nodes come and go: they change the answer too, but are counted and do
not outdate it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Q, QuerySet

from accounts.kinds.role_binding import ROLE_BINDING
from accounts.models import Cluster
from accounts.services.cluster_settings import content_version
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests import kind_named
from foundation.exceptions import InvalidRequest
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.manifests.documents import Document
from queues.models import Job, Workload
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.studio.node_changes import AddNodes
from studio.services.plans import Plan, split_key

_SETTINGS: Final = "Cluster"
_KINDS: Final = tuple(kind for kind in CONFIGURATION_KINDS if kind != ROLE_BINDING.name)
"""The kinds of configuration, each edit of which outdates an answer. RoleBindings decide nothing about workloads, and
are read again when the plan is applied."""
_WORKLOAD_STATE: Final = (
    "uid",
    "status",
    "active",
    "priority",
    "priority_class_name",
    "quota_reserved_at",
    "evicted_at",
    "deletion_requested_at",
)
_ABSENT: Final = ""
_NODE_STATES: Final = """
    SELECT node.name, md5(concat_ws(' ', node.uid, node.ready, node.unschedulable, node.cordoned, node.draining,
        node.labels, node.taints, (
            SELECT string_agg(concat_ws(' ', uuid, healthy, device.cordoned, device.draining), ',' ORDER BY device.id)
            FROM gpus_device AS device WHERE device.node_id = node.id
        )))
    FROM gpus_node AS node WHERE cluster_id = %s
"""
# Not their claims and templates, which come and go with workloads.
_DEVICE_OBJECTS: Final = """
    SELECT kind, md5(string_agg(name || md5(manifest::text), ',' ORDER BY name)) FROM queues_clusterobject
    WHERE cluster_id = %s AND kind IN ('DeviceClass', 'ResourceSlice') GROUP BY kind
"""

Key = tuple[str, str, str]
"""Kind, namespace (empty without one) and name."""


def basis_of(cluster: Cluster, plan: Plan) -> dict[str, Any]:
    """Return the present state as JSON: the versions of the plan's objects and of the kinds of configuration, and the
    states of nodes. Call it in the transaction that reads the World."""
    return {
        "objects": {"/".join(filter(None, key)): version for key, version in _versions(cluster, _named(plan)).items()},
        "kinds": _configuration(cluster),
        "nodes": _node_states(cluster),
    }


def outdated(basis: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Return the objects of the plan, by name, and the kinds of configuration that have changed since the answer."""
    objects = _differing(basis["objects"], present["objects"])
    named = {key.partition("/")[0] for key in objects}
    kinds = [kind for kind in _differing(basis["kinds"], present["kinds"]) if kind not in named]
    further = ["the settings of the cluster" if kind == _SETTINGS else f"objects of kind {kind}" for kind in kinds]
    return [key.replace("/", " ", 1) for key in objects] + further


def moved_workloads(cluster: Cluster, namespaces: Collection[str] | None, since: datetime) -> dict[str, int]:
    """Count the workloads of these namespaces (None: of all) that have changed since an answer; they do not outdate it.

    A workload that came or started since has not finished, or has finished since: two indexes find both, so that the
    history is not read.
    """
    rows = Workload.objects.filter(cluster=cluster)
    if namespaces is not None:
        rows = rows.filter(namespace__in=namespaces)
    came = {
        "submitted": Count("pk", filter=Q(created_at__gt=since)),
        "started": Count("pk", filter=Q(quota_reserved_at__gt=since)),
    }
    there = rows.exclude(status=WorkloadStatus.FINISHED).aggregate(**came)
    gone = rows.filter(status=WorkloadStatus.FINISHED, finished_at__gt=since).aggregate(**came, ended=Count("pk"))
    return {**{name: there[name] + gone[name] for name in came}, "ended": gone["ended"]}


def moved_nodes(basis: Mapping[str, Any], present: Mapping[str, Any]) -> int:
    """Count the nodes that have changed since an answer; they do not outdate it."""
    return len(_differing(basis["nodes"], present["nodes"]))


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _named(plan: Plan) -> set[Key]:
    """Return the objects that a plan changes."""
    nodes = (change.like if isinstance(change, AddNodes) else change.name for change in plan.nodes)
    keys = {*plan.end, *plan.requeue, *(key for key, _ in plan.priorities)}
    return {
        *_identities((*plan.apply, *plan.patch, *plan.delete)),
        *(("Node", "", name) for name in nodes),
        *(("Workload", *split_key(key)) for key in keys),
    }


def _identities(documents: Iterable[Document]) -> Iterator[Key]:
    """Yield the objects of documents; those of other schedulers' kinds become configuration, whose kinds count."""
    for document in documents:
        metadata = document.content.get("metadata")
        named: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
        try:
            kind = kind_named(str(document.content.get("kind") or ""))
        except InvalidRequest:
            continue
        if name := str(named.get("name") or ""):
            yield kind.name, str(named.get("namespace") or "") if kind.namespaced else "", name


def _versions(cluster: Cluster, keys: Collection[Key]) -> dict[Key, str]:
    """Return a version for each object; an empty one for an object that does not exist."""
    by_kind: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for kind, namespace, name in keys:
        by_kind[kind].add((namespace, name))
    found = dict.fromkeys(keys, _ABSENT)
    for kind, places in by_kind.items():
        rows = _of_kind(cluster, kind, {namespace for namespace, _ in places}, {name for _, name in places})
        found |= {(kind, *place): version for place, version in rows if place in places}
    return found


def _of_kind(
    cluster: Cluster, kind: str, namespaces: Collection[str], names: Collection[str]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield namespace and name, and the version, of the objects with one of these namespaces and names."""
    if kind in CONFIGURATION_KINDS:
        namespaced = CONFIGURATION_KINDS[kind].namespaced
        for row in CONFIGURATION_KINDS[kind].model.objects.filter(cluster=cluster, name__in=names):
            yield (row.namespace if namespaced else "", row.name), f"{row.pk} {row.generation}"
    elif kind == "Node":
        states = _node_states(cluster)
        yield from ((("", name), states[name]) for name in names if name in states)
    elif kind == "Workload":
        yield from _workloads(Workload.objects.filter(cluster=cluster, namespace__in=namespaces, name__in=names))
    elif kind in JOB_KINDS:
        yield from _jobs(Job.objects.filter(cluster=cluster, kind=kind, namespace__in=namespaces, name__in=names))


def _workloads(rows: QuerySet[Workload]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the workloads by the columns on which their ends, requeues and priorities rest; messages change in each
    cycle."""
    for row in rows:
        yield (row.namespace, row.name), _state(row)


def _state(row: Workload) -> str:
    return content_version([str(getattr(row, name)) for name in _WORKLOAD_STATE])


def _jobs(rows: QuerySet[Job]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the jobs by their manifests and by their workloads, which end with them."""
    for job in rows.prefetch_related("workloads"):
        workloads = sorted(map(_state, job.workloads.all()))
        yield (job.namespace, job.name), content_version([str(job.uid), job.manifest, workloads])


def _configuration(cluster: Cluster) -> dict[str, str]:
    """Return a version for each kind of configuration and of published devices, and for the settings of the cluster."""
    found = {kind: _version_of_all(cluster, kind) for kind in _KINDS} | _pairs(_DEVICE_OBJECTS, cluster)
    row = Cluster.objects.get(pk=cluster.pk)
    settings = [row.mode, row.placement, row.configuration, row.device_plugin_configuration]
    return found | {_SETTINGS: content_version(settings)}


def _version_of_all(cluster: Cluster, kind: str) -> str:
    rows = CONFIGURATION_KINDS[kind].model.objects.filter(cluster=cluster).order_by("pk")
    return content_version(list(rows.values_list("pk", "generation")))


def _node_states(cluster: Cluster) -> dict[str, str]:
    return _pairs(_NODE_STATES, cluster)


def _pairs(query: str, cluster: Cluster) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(query, [cluster.pk])
        return dict(cursor.fetchall())
