"""Workloads of a cluster that another scheduler runs: stored like their objects, both spec and status."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction

from accounts.models import Cluster
from foundation.wake_ups import wake_scheduler
from queues.manifests.kueue_keys import PARENT
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.manifests.workload_object import PRIORITY_CLASS_GROUPS
from queues.manifests.workload_status import PodSetStatus, WorkloadState
from queues.models import Job, LocalQueue, MirroredChange, PodSet, Workload
from queues.services.admission_rows import read_conditions, why
from scheduling.model.vocabulary import ConditionStatus, ConditionType
from scheduling.model.workload import Workload as RulesWorkload

_BATCH: Final = 500
_KEPT: Final = timedelta(hours=1)
"""Changes that no leader has read for this long are deleted."""
_NOTHING: Final = PodSetStatus()
_GIVEN: Final = ("admitted_count", "flavors", "resource_usage", "topology_assignment", "reclaimable_count")
_ASKED: Final = ("position", "count", "min_count", "template", "requests", "topology_request")


@dataclass(frozen=True, slots=True)
class MirroredWorkload:
    """A Workload object as read. `owners` are the uids of its jobs or pods; `parent` is the name of the workload of
    which it is a variant (concurrent admission)."""

    uid: uuid.UUID
    created_at: datetime
    spec: WorkloadSpec
    state: WorkloadState
    owners: tuple[uuid.UUID, ...] = ()
    deleted_at: datetime | None = None
    parent: str = ""

    @property
    def has_variants(self) -> bool:
        """Whether Kueue marks it as the parent of variants."""
        return self.spec.labels.get(PARENT) == "true"


def store_workloads(cluster: Cluster, mirrored: Sequence[MirroredWorkload]) -> None:
    """Insert or update their rows. A row with the same name and another uid is deleted."""
    if not mirrored:
        return
    with transaction.atomic():
        _make_room(cluster, mirrored)
        rows = Workload.objects.filter(cluster=cluster, uid__in=[found.uid for found in mirrored])
        there = {row.uid: row for row in rows.prefetch_related("pod_sets")}
        jobs, queues = _jobs(cluster, mirrored), _cluster_queues(cluster)
        new: list[tuple[Workload, MirroredWorkload]] = []
        for found in mirrored:
            values = _values(found) | {"job_id": next((jobs[uid] for uid in found.owners if uid in jobs), None)}
            row = there.get(found.uid)
            if not values["cluster_queue_name"]:
                values["cluster_queue_name"] = queues.get((found.spec.namespace, found.spec.queue_name), "")
            if row is None:
                new.append((Workload(cluster=cluster, uid=found.uid, created_at=found.created_at, **values), found))
            else:
                _update(row, values, found)
        Workload.objects.bulk_create([row for row, _ in new], batch_size=_BATCH)
        PodSet.objects.bulk_create(
            [PodSet(workload=row, name=spec.name, **values) for row, found in new for spec, values in _pod_sets(found)],
            batch_size=_BATCH,
        )
        wake_scheduler(cluster.name)


def note_changes(cluster: Cluster, changes: Sequence[tuple[str, str, Mapping[str, Any] | None]], now: float) -> None:
    """Record the changes of Workload objects for the shadow, in order: (namespace, name, object or None)."""
    at = datetime.fromtimestamp(now, UTC)
    MirroredChange.objects.filter(cluster=cluster, at__lt=at - _KEPT).delete()
    MirroredChange.objects.bulk_create(
        [
            MirroredChange(cluster=cluster, at=at, namespace=namespace, name=name, manifest=manifest)
            for namespace, name, manifest in changes
        ],
        batch_size=_BATCH,
    )


def forget_workloads(cluster: Cluster, uids: Collection[uuid.UUID]) -> None:
    """Delete workloads that no longer exist in the cluster."""
    if uids:
        Workload.objects.filter(cluster=cluster, uid__in=uids).delete()
        wake_scheduler(cluster.name)


def keep_workloads(cluster: Cluster, uids: Collection[uuid.UUID]) -> None:
    """Forget every workload except these, after all workloads of the cluster were listed."""
    known = Workload.objects.filter(cluster=cluster).values_list("uid", flat=True)
    forget_workloads(cluster, set(known) - set(uids))


def _make_room(cluster: Cluster, mirrored: Iterable[MirroredWorkload]) -> None:
    """Names are unique, and an object may have been created again under its name before its deletion was noticed."""
    keys = {(found.spec.namespace, found.spec.name): found.uid for found in mirrored}
    rows = Workload.objects.filter(cluster=cluster, name__in={name for _, name in keys})
    others = rows.values_list("namespace", "name", "uid")
    forget_workloads(cluster, [uid for namespace, name, uid in others if keys.get((namespace, name), uid) != uid])


def _jobs(cluster: Cluster, mirrored: Iterable[MirroredWorkload]) -> dict[uuid.UUID, int]:
    owners = {uid for found in mirrored for uid in found.owners}
    return dict(Job.objects.filter(cluster=cluster, uid__in=owners).values_list("uid", "pk"))


def _cluster_queues(cluster: Cluster) -> dict[tuple[str, str], str]:
    """Return the ClusterQueue of each LocalQueue, by namespace and name."""
    rows = LocalQueue.objects.filter(cluster=cluster).values_list("namespace", "name", "cluster_queue_name")
    return {(namespace, name): cluster_queue for namespace, name, cluster_queue in rows}


def _values(found: MirroredWorkload) -> dict[str, Any]:
    """Return the columns of a workload's row."""
    spec, state = found.spec, found.state
    conditions = read_conditions(state.conditions)
    rules = RulesWorkload(
        spec.namespace, spec.name, str(found.uid), spec.queue_name, active=spec.active, conditions=conditions
    )
    reason, message = why(rules)
    times = {entry["type"]: entry for entry in state.conditions if entry["status"] == ConditionStatus.TRUE}
    return {
        "namespace": spec.namespace,
        "name": spec.name,
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
        "api_version": spec.api_version,
        "queue_name": spec.queue_name,
        "priority": spec.priority or 0,
        "priority_class_group": PRIORITY_CLASS_GROUPS.get(spec.priority_class_kind, ""),
        "priority_class_kind": spec.priority_class_kind,
        "priority_class_name": spec.priority_class_name,
        "active": spec.active,
        "never_preempt": spec.never_preempt,
        "maximum_execution_seconds": spec.maximum_execution_seconds,
        "preemption_gates": list(spec.preemption_gates),
        "deletion_requested_at": found.deleted_at,
        "parent_name": found.parent,
        "has_variants": found.has_variants,
        "status": rules.status.value,
        "reason": reason,
        "message": message,
        "conditions": [dict(entry) for entry in state.conditions],
        "cluster_queue_name": state.cluster_queue_name,
        "admission_check_states": [dict(entry) for entry in state.admission_check_states],
        "quota_reserved_at": _since(times, ConditionType.QUOTA_RESERVED),
        "admitted_at": _since(times, ConditionType.ADMITTED),
        "evicted_at": _since(times, ConditionType.EVICTED),
        "finished_at": _since(times, ConditionType.FINISHED),
        "pods_ready_at": _since(times, ConditionType.PODS_READY),
        "requeue_count": state.requeue_count,
        "requeue_at": state.requeue_at,
        "accumulated_execution_seconds": state.accumulated_execution_seconds,
        "eviction_counts": [dict(entry) for entry in state.eviction_counts],
        "unhealthy_nodes": list(state.unhealthy_nodes),
    }


def _since(times: Mapping[str, Mapping[str, Any]], type_: ConditionType) -> datetime | None:
    text = times.get(type_, {}).get("lastTransitionTime")
    return datetime.fromisoformat(text) if text else None


def _pod_sets(found: MirroredWorkload) -> list[tuple[PodSetSpec, dict[str, Any]]]:
    """Return the columns of its pod sets' rows."""
    rows = []
    for position, spec in enumerate(found.spec.pod_sets):
        asked = {column: getattr(spec, column) for column in _ASKED if column != "position"} | {"position": position}
        given = {column: getattr(found.state.pod_sets.get(spec.name, _NOTHING), column) for column in _GIVEN}
        if found.has_variants:
            given["resource_usage"] = {}  # it is charged to its variant, whose copy its admission is
        rows.append((spec, asked | given))
    return rows


def _update(row: Workload, values: Mapping[str, Any], found: MirroredWorkload) -> None:
    """Pod sets come last: when a workload's own row changes, the resources that it held are recorded from them."""
    changed = {column: value for column, value in values.items() if getattr(row, column) != value}
    if changed:
        for column, value in changed.items():
            setattr(row, column, value)
        row.save(update_fields=[*changed, "updated_at"])
    there = {pod_set.name: pod_set for pod_set in row.pod_sets.all()}
    wanted = {spec.name: columns for spec, columns in _pod_sets(found)}
    PodSet.objects.filter(pk__in=[pod_set.pk for name, pod_set in there.items() if name not in wanted]).delete()
    for name, columns in wanted.items():
        pod_set = there.get(name)
        if pod_set is None:
            PodSet.objects.create(workload=row, name=name, **columns)
        elif any(getattr(pod_set, column) != value for column, value in columns.items()):
            PodSet.objects.filter(pk=pod_set.pk).update(**columns)
