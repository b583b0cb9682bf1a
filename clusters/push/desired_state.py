"""Reads from rows the desired state of a cluster: jobs, admissions and slices as plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

from accounts.models import MIRRORED_MODES, Cluster
from clusters.jobs.cluster_objects import KeptObjects
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.objects import HOSTNAME_LABEL, AdmittedWorkload, JobSource, PodSetAdmission
from clusters.jobs.reading import NO_CLUSTER, context_of
from clusters.jobs.registry import JOB_KINDS
from foundation.postgresql.instances import fetched_rows, instances
from gpus.manifests import configured_vendors
from gpus.models import AllocationSource, DeviceAllocation
from gpus.services.device_rows import read_device, read_mig_instance
from gpus.vendors import VENDORS
from queues.manifests.kueue_keys import ELASTIC_JOB, SLICE_NAME
from queues.models import Job, PodSet, ResourceFlavor, Workload
from queues.services.admission_rows import read_check_state, read_topology_assignment
from queues.services.cluster_objects import StoredObjects
from queues.services.pod_groups.life import Member
from scheduling.model.admission_check import AdmissionCheckState, updates_of
from scheduling.model.device import Device, DeviceSlice
from scheduling.model.placement import PodPlacement
from scheduling.model.topology import TopologyRequest
from scheduling.model.vendor import DeviceVendor
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.state.second_pass import MULTIKUEUE, PROVISIONING
from scheduling.topology.ungater import rank_offsets


@dataclass(frozen=True, slots=True)
class FlavorNodes:
    """The node labels and tolerations of a flavor."""

    node_labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]


_WORK: Final = """
    SELECT
        (SELECT mode = ANY(%(mirrored)s) FROM accounts_cluster WHERE id = %(cluster)s),
        (SELECT xmin::text FROM accounts_cluster WHERE id = %(cluster)s),
        EXISTS (SELECT FROM queues_workload WHERE cluster_id = %(cluster)s AND push_sequence > pushed_sequence),
        EXISTS (
            SELECT FROM queues_job
            WHERE cluster_id = %(cluster)s AND kind = ANY(%(makers)s) AND NOT found_in_cluster
                AND (pushed_generation IS DISTINCT FROM generation OR deletion_requested_at IS NOT NULL)
        ),
        EXISTS (
            SELECT FROM queues_workload AS workload JOIN queues_job AS job ON job.id = workload.job_id
            WHERE workload.cluster_id = %(cluster)s AND workload.quota_reserved_at IS NOT NULL
                AND workload.status <> 'Finished' AND (
                    workload.evicted_at IS NOT NULL OR job.kind <> ALL(%(suspendable)s)
                    OR jsonb_exists(workload.annotations, %(elastic)s) OR jsonb_exists(job.annotations, %(elastic)s)
                    OR EXISTS (
                        SELECT FROM queues_podset
                        WHERE workload_id = workload.id AND (
                            nodes <> '[]' OR topology_assignment IS NOT NULL
                            OR jsonb_exists(template -> 'spec', 'schedulingGates')
                        )
                    )
                )
        ),
        EXISTS (
            SELECT FROM queues_admissioncheck
            WHERE cluster_id = %(cluster)s AND controller_name = %(provisioning)s AND active
        )
"""
_DEVICE: Final = """
    SELECT FROM gpus_device AS device JOIN gpus_node AS node ON node.id = device.node_id
    WHERE node.cluster_id = %s LIMIT 1
"""
_PLACES: Final = """
    SELECT name, labels ->> %(label)s, NULL, NULL FROM gpus_node
    WHERE cluster_id = %(cluster)s AND name = ANY(%(names)s) AND labels ->> %(label)s <> name
    UNION ALL
    SELECT DISTINCT NULL, NULL, workload_id, pod_set FROM gpus_deviceallocation
    WHERE source = %(decided)s AND workload_id = ANY(%(workloads)s)
"""
"""The nodes whose host names differ from their names, and the pod sets that hold slices."""
MAKERS: Final = [kind.kind for kind in JOB_KINDS.values() if not kind.has_workload]
"""The kinds of objects that create jobs."""
_SUSPENDABLE: Final = [
    kind.kind for kind in JOB_KINDS.values() if kind.stopping is Stopping.SUSPEND and not kind.groups_pods
]
"""The kinds that start their pods by themselves: the pods wait for us only where we choose the node."""


@dataclass(frozen=True, slots=True)
class Work:
    """The parts of a sweep that have rows to work on: workloads and creators of jobs to push, workloads whose pods wait
    or must stop, and checks that request nodes.

    * is_mirrored: another scheduler decides in the cluster; None if its row was deleted.
    * version: of the cluster's row; each edit of its configuration changes it (`cluster_versions`).
    """

    is_mirrored: bool | None
    version: str | None
    tells: bool
    tells_of_makers: bool
    follows_pods: bool
    asks_for_nodes: bool


def work_of(cluster: Cluster) -> Work:
    """Find the work of a sweep with one query. Later commits request a sweep of their own."""
    with connection.cursor() as cursor:
        values: dict[str, Any] = {
            "cluster": cluster.pk,
            "mirrored": [*MIRRORED_MODES],
            "makers": MAKERS,
            "suspendable": _SUSPENDABLE,
            "elastic": ELASTIC_JOB,
        }
        cursor.execute(_WORK, {**values, "provisioning": PROVISIONING})
        return Work(*cursor.fetchone())


def flavors_of(cluster: Cluster) -> dict[str, FlavorNodes]:
    """Return all flavors of a cluster, by name."""
    rows = instances(ResourceFlavor, "cluster_id = %s ORDER BY name", [cluster.pk])
    return {row.name: FlavorNodes(row.node_labels, tuple(row.tolerations)) for row in rows}


def runs(workload: Workload) -> bool:
    """Return whether its pods should run: it is admitted and not evicted."""
    return workload.status == WorkloadStatus.ADMITTED and workload.evicted_at is None


def checks_of_multikueue(cluster: Cluster) -> frozenset[str]:
    """Return the admission checks that hand workloads to other clusters."""
    checks = "SELECT name FROM queues_admissioncheck WHERE cluster_id = %s AND controller_name = %s"
    return frozenset(name for (name,) in fetched_rows(checks, [cluster.pk, MULTIKUEUE]))


def runs_elsewhere(workload: Workload, checks: Collection[str]) -> bool:
    """Return whether its pods run in another cluster, so that none may start here."""
    return any(state["name"] in checks for state in workload.admission_check_states)


def with_jobs(workloads: QuerySet[Workload]) -> QuerySet[Workload]:
    """Return the workloads with all data that a push needs, in two queries."""
    return workloads.select_related("job").prefetch_related("pod_sets")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The rows of configuration that each sweep over a cluster reads: its flavors, the checks that hand workloads to
    other clusters, whether a node has devices, and the objects that passes look up.
    """

    version: str
    flavors: Mapping[str, FlavorNodes]
    elsewhere: frozenset[str]
    has_devices: bool
    objects: KeptObjects

    def vendors(self, cluster: Cluster) -> tuple[DeviceVendor, ...]:
        """Return the configured vendors whose devices kueueweb adds to pods; none while no node has a device, or if
        HAMi's webhook does it."""
        if cluster.hami_binds or not self.has_devices:
            return ()
        return configured_vendors(cluster.device_plugin_configuration.get("settings") or {}, VENDORS)


_surroundings: Final[dict[int, Surroundings]] = {}


def surroundings_of(cluster: Cluster, version: str) -> Surroundings:
    """Return the rows of a cluster's configuration, read again after each edit.

    `version` is that of the cluster's row, read in this sweep. An edit since then creates another version, so that the
    next sweep reads again. An empty version is unknown.
    """
    found = _surroundings.get(cluster.pk)
    if found is None or found.version != version or not version:
        has_devices = bool(fetched_rows(_DEVICE, [cluster.pk]))
        found = Surroundings(
            version, flavors_of(cluster), checks_of_multikueue(cluster), has_devices, KeptObjects(version)
        )
        _surroundings[cluster.pk] = found
    return found


def job_source(job: Job, vendors: tuple[DeviceVendor, ...] = (), *, hami_binds: bool = False) -> JobSource | None:
    """Return the job as submitted; None for a kind that does not exist in clusters."""
    kind = JOB_KINDS.get(job.kind)
    if kind is None:
        return None
    metadata = {**(job.manifest.get("metadata") or {}), "name": job.name, "namespace": job.namespace}
    context = context_of(StoredObjects(job.cluster)) if kind.refers_to else NO_CLUSTER
    manifest = {**job.manifest, "metadata": metadata}
    uid, found = str(job.uid), job.found_in_cluster
    return JobSource(kind, manifest, uid, found, vendors, hami_binds=hami_binds, context=context)


def member_sources(
    group_ids: Collection[int], vendors: tuple[DeviceVendor, ...] = (), *, hami_binds: bool = False
) -> dict[int, list[JobSource]]:
    """Return the pods of these groups as submitted, by the key of the group's row, in order of creation."""
    sources: dict[int, list[JobSource]] = {}
    for row in Job.objects.filter(group__in=group_ids).order_by("pk") if group_ids else ():
        source = job_source(row, vendors, hami_binds=hami_binds)
        if source is not None and row.group_id is not None:
            leaving = row.deletion_requested_at is not None
            member = replace(source, pod_set=Member(row).role, ended=bool(row.phase), leaving=leaving)
            sources.setdefault(row.group_id, []).append(member)
    return sources


@dataclass(frozen=True, slots=True)
class Places:
    """The link between pods of some workloads and their nodes, besides their rows: the pod sets that hold slices, by
    workload key and name, and the host names of nodes whose names differ."""

    with_devices: frozenset[tuple[int, str]] = frozenset()
    hosts: Mapping[str, str] = field(default_factory=dict)


def places_of(cluster: Cluster, workloads: Iterable[Workload]) -> Places:
    """Return the places of the pods with one query; empty if no pod was placed. The pod sets must be prefetched."""
    pod_sets = [pod_set for workload in workloads for pod_set in workload.pod_sets.all() if pod_set.nodes]
    if not pod_sets:
        return Places()
    names = {node for pod_set in pod_sets for node in pod_set.nodes if node}
    values = {
        "cluster": cluster.pk,
        "names": list(names),
        "label": HOSTNAME_LABEL,
        "workloads": list({pod_set.workload_id for pod_set in pod_sets}),
        "decided": AllocationSource.DECIDED.value,
    }
    hosts: dict[str, str] = {}
    with_devices: set[tuple[int, str]] = set()
    for node, host, workload, pod_set in fetched_rows(_PLACES, values):
        if node is not None:
            hosts[node] = host
        else:
            with_devices.add((workload, pod_set))
    return Places(frozenset(with_devices), hosts)


def admitted_workload(workload: Workload, flavors: Mapping[str, FlavorNodes], places: Places) -> AdmittedWorkload:
    """Return a workload with its admission; its pod sets must be prefetched."""
    checks = [read_check_state(state) for state in workload.admission_check_states]
    pod_sets = [_pod_set(row, flavors, checks, places) for row in workload.pod_sets.all()]
    offsets = rank_offsets([(each.name, each.count, _group(each)) for each in pod_sets])
    return AdmittedWorkload(
        name=workload.name,
        uid=str(workload.uid),
        queue_name=workload.queue_name,
        cluster_queue_name=workload.cluster_queue_name,
        pod_sets=tuple(replace(each, rank_offset=offsets[each.name]) for each in pod_sets),
        slice_name=workload.annotations.get(SLICE_NAME, ""),
    )


def _group(pod_set: PodSetAdmission) -> str | None:
    return pod_set.topology_request.group if pod_set.topology_request is not None else None


def _pod_set(
    row: PodSet, flavors: Mapping[str, FlavorNodes], checks: Sequence[AdmissionCheckState], places: Places
) -> PodSetAdmission:
    labels: dict[str, str] = {}
    tolerations: list[Mapping[str, Any]] = []
    for name in sorted(set(row.flavors.values())):
        flavor = flavors.get(name)
        if flavor is None:
            continue
        labels.update(flavor.node_labels)
        tolerations.extend(entry for entry in flavor.tolerations if entry not in tolerations)
    count = row.count if row.admitted_count is None else min(row.count, row.admitted_count)
    return PodSetAdmission(
        row.name,
        count,
        labels,
        tuple(tolerations),
        tuple(node or "" for node in row.nodes),
        read_topology_assignment(row.topology_assignment),
        TopologyRequest.from_manifest(row.topology_request),
        tuple(updates_of(checks, row.name)),
        places.hosts,
        (row.workload_id, row.name) in places.with_devices,
    )


class Slices:
    """The slices that we assigned to some workloads, by replica."""

    def __init__(self, workload_ids: Iterable[int]) -> None:
        rows = DeviceAllocation.objects.filter(workload_id__in=list(workload_ids), source=AllocationSource.DECIDED)
        self._held: dict[tuple[int, str, int], dict[int, list[DeviceSlice]]] = {}
        self.devices: dict[str, dict[str, Device]] = {}
        """The devices of the slices, by node and UUID."""
        for row in rows.select_related("device", "node").order_by("pk"):
            replica = self._held.setdefault((row.workload_id or 0, row.pod_set, row.replica), {})
            part = _slice(row)
            replica.setdefault(row.container_index, []).append(part)
            if row.device is not None:
                self.devices.setdefault(part.node, {})[part.uuid] = read_device(row.device)

    def placement(self, workload: Workload, pod_set: PodSet, replica: int, node: str) -> PodPlacement:
        """Return the slices of one replica, container by container, init containers first."""
        held = self._held.get((workload.pk, pod_set.name, replica), {})
        spec = pod_set.template.get("spec") or {}
        init_count = len(spec.get("initContainers") or ())
        count = init_count + len(spec.get("containers") or ())
        return PodPlacement(
            pod_set=pod_set.name,
            replica=replica,
            node=node,
            containers=tuple(tuple(held.get(index, ())) for index in range(count)),
            init_container_count=init_count,
            namespace=workload.namespace,
        )


def _slice(row: DeviceAllocation) -> DeviceSlice:
    assert row.device is not None  # a database constraint for slices of our decisions
    return DeviceSlice(
        uuid=row.device_uuid,
        node=row.node.name,
        memory_mib=row.memory_mib,
        cores_percent=row.cores_percent,
        index=row.device.index,
        vendor=row.device.vendor,
        mig=read_mig_instance(row.mig_instance),
        slots=row.slots,
        qos_policy=row.qos_policy,
        app_class=row.app_class,
    )
