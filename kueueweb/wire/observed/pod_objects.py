"""Rows of pods as v1 Pods: the template of their pod set, with the state that the cluster reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import Exists, JSONField, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from accounts.models import Cluster
from accounts.services.object_status import timestamp
from accounts.services.reach import Reach
from clusters.jobs.kinds.job import JOB_NAME_LABEL, JOB_UID_LABEL
from clusters.jobs.objects import POD_SET_LABEL
from clusters.jobs.registry import JOB_KINDS
from kueueweb.wire.tables import AGE, NAME, Column, value_at
from queues.manifests.pod_group import POD
from queues.models import Pod, PodSet

RESTARTS: Final = "kueueweb.io/restarts"
"""The annotation with the number of restarts of all containers together, which is stored in place of one per
container."""
TERMINATING: Final = "kueueweb.io/terminating"
"""The annotation of a pod that was deleted and still stops. The time of its deletion is not stored."""
FIELDS: Final[Mapping[str, str]] = {"spec.nodeName": "node_name", "status.phase": "phase"}
_BATCH: Final = "batch/v1"
_UNSCHEDULABLE: Final = "Unschedulable"
_LABELS: Final = """
    coalesce((
        SELECT template -> 'metadata' -> 'labels' FROM queues_podset
        WHERE workload_id = queues_pod.workload_id AND name = queues_pod.pod_set
            AND jsonb_typeof(template -> 'metadata' -> 'labels') = 'object' LIMIT 1
    ), '{}'::jsonb) || jsonb_build_object(%s::text, queues_pod.pod_set) || coalesce((
        SELECT jsonb_build_object(
            %s::text, job.name, 'job-name', job.name, %s::text, job.uid, 'controller-uid', job.uid
        )
        FROM queues_workload AS workload JOIN queues_job AS job ON job.id = workload.job_id
        WHERE workload.id = queues_pod.workload_id AND job.kind = ANY(%s)
    ), '{}'::jsonb)
"""
_JOBS: Final = [kind.kind for kind in JOB_KINDS.values() if kind.api_version == _BATCH]


def rows(reach: Reach) -> QuerySet[Pod]:
    """Return the pods in the namespaces that the user may read, with their labels. A pod that moved from one workload
    to the next one of an elastic job is returned once."""
    moved = Pod.objects.filter(uid=OuterRef("uid"), workload_id__gt=OuterRef("workload_id"))
    there = Pod.objects.filter(reach.rows_in_namespaces(cluster="workload__cluster")).filter(~Exists(moved))
    parameters = [POD_SET_LABEL, JOB_NAME_LABEL, JOB_UID_LABEL, _JOBS]
    return there.annotate(labels=RawSQL(_LABELS, parameters, output_field=JSONField()))  # noqa: S611 (our own constants)


def objects(cluster: Cluster, found: Sequence[Pod]) -> list[dict[str, Any]]:
    """Return the pods of rows with labels. One query reads the templates of all of them."""
    sets = PodSet.objects.filter(workload__in={row.workload_id for row in found})
    named = sets.values_list("workload_id", "name", "template")
    templates = {(workload, name): template for workload, name, template in named}
    return [_pod_object(row, templates.get((row.workload_id, row.pod_set), {})) for row in found]


def _pod_object(row: Any, template: Mapping[str, Any]) -> dict[str, Any]:
    annotations = dict((template.get("metadata") or {}).get("annotations") or {})
    annotations[RESTARTS] = str(row.restarts)
    if row.terminating:
        annotations[TERMINATING] = "true"
    spec = dict(template.get("spec") or {})
    if row.node_name:
        spec["nodeName"] = row.node_name
    metadata = {
        "name": row.name,
        "namespace": row.namespace,
        "uid": row.uid,
        "creationTimestamp": _time(row.created_at),
        "labels": row.labels,
        "annotations": annotations,
    }
    return {"apiVersion": "v1", "kind": POD, "metadata": metadata, "spec": spec, "status": _status(row)}


def _status(row: Pod) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True" if row.ready else "False"}
    scheduled = {"type": "PodScheduled", "status": "True" if row.node_name else "False"}
    if row.reason == _UNSCHEDULABLE:
        scheduled |= {"reason": row.reason, "message": row.message}
    status: dict[str, Any] = {"phase": row.phase, "conditions": [scheduled, ready]}
    if row.reason:
        status |= {"reason": row.reason, "message": row.message}
    if row.started_at is not None:
        status["startTime"] = _time(row.started_at)
    return status


def _time(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def _ready(item: Mapping[str, Any], _: datetime) -> str:
    containers = len(item["spec"].get("containers") or ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in item["status"]["conditions"])
    return f"{containers if ready else 0}/{containers}"


def _state(item: Mapping[str, Any], _: datetime) -> str:
    """Return the word that kubectl shows: a container's reason rather than the phase, which stays Pending or
    Running."""
    status = item["status"]
    if TERMINATING in item["metadata"]["annotations"]:
        return "Terminating"
    if status["phase"] == "Succeeded":
        return "Completed"
    reason: str = status.get("reason", "")
    return status["phase"] if reason in ("", _UNSCHEDULABLE) else reason


def _restarts(item: Mapping[str, Any], _: datetime) -> int:
    return int(item["metadata"]["annotations"][RESTARTS])


COLUMNS: Final[Sequence[Column]] = (
    NAME,
    Column("Ready", "Ready containers, out of all. It is known of the pod as a whole", _ready),
    Column("Status", "State of the pod, or the reason of a container that waits or has failed", _state),
    Column("Restarts", "Restarts of all its containers", _restarts, type="integer"),
    AGE,
    Column("Node", "Node to which it is bound", value_at("spec.nodeName"), priority=1),
)
