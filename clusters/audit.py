"""The auditor: checks that quota, devices, pods and the state pushed to the cluster agree.

Rows are read as of one moment, after the cluster's pods. Changes in progress may look wrong then, so a finding
counts only when two audits in a row see it. What can be repaired safely is repaired: counters are recounted, slices
without a holder are deleted, workloads whose job or pods are gone are finished, and unpushed decisions are pushed
again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import connection, transaction

from accounts.events import request_push, wake_scheduler
from accounts.models import MIRRORED_MODES, AuditFinding, Cluster
from accounts.transactions import hardware_transaction
from clusters.client import PODS, ClusterClient, ClusterError, JsonObject
from clusters.jobs.objects import JOB_UID_LABEL, MANAGED_LABEL, WORKLOAD_UID_LABEL, uid_label
from clusters.jobs.registry import JOB_KINDS
from gpus.models import DeviceAllocation
from gpus.services.counters import miscounts, recount
from gpus.vendors import VENDORS
from queues.models import Job, Workload
from queues.services.workloads import record_finished, settle_endings
from scheduling.devices.requests.requests import device_resource_names
from scheduling.model.quantity import format_amount
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_log = logging.getLogger(__name__)

_DEVICES: Final = device_resource_names(VENDORS)
_LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
_PATIENCE: Final = timedelta(seconds=60)
"""What takes longer than this counts as stuck."""


class Check(StrEnum):
    QUOTA = "quota"
    """Quota is charged for reservations, and for all of them."""
    COUNTERS = "device-counters"
    """The counters of a device are the sums of its slices."""
    SLICES = "slices"
    """Every decided slice belongs to a workload that holds quota."""
    NODES = "nodes"
    """No node has more pods assigned than fit."""
    PODS = "pods"
    """Every pod of ours belongs to a workload that holds what it uses, and runs on a node assigned to it."""
    TOLD = "told"
    """The cluster has been told every decision."""
    ENDING = "ending"
    """A workload whose job and pods are gone has ended."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold for an object."""

    check: Check
    subject: str
    message: str
    namespace: str = ""
    node: str = ""
    key: int = 0
    """The primary key of the row to repair, if any."""


def audit(cluster: Cluster, client: ClusterClient, now: datetime) -> list[Violation]:
    """The present violations, including temporary ones. Raises ClusterError if the pods cannot be listed."""
    pods = _live_pods(client)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = [violation for rule in _RULES for violation in rule(cluster, now)]
        return [*found, *_pods(cluster, pods)]


def audit_and_heal(cluster: Cluster, client: ClusterClient, now: datetime | None = None) -> list[AuditFinding]:
    """One audit, stored. Violations seen by two audits in a row are logged, repaired if that is safe, and returned."""
    now = now or datetime.now(UTC)
    violations = audit(cluster, client, now)
    before = {(row.check_name, row.subject): row for row in AuditFinding.objects.filter(cluster=cluster)}
    confirmed: list[AuditFinding] = []
    kept: list[int] = []
    for violation in violations:
        row, created = AuditFinding.objects.update_or_create(
            cluster=cluster,
            check_name=violation.check.value,
            subject=violation.subject,
            defaults={
                "message": violation.message,
                "namespace": violation.namespace,
                "node": violation.node,
                "confirmed": (violation.check.value, violation.subject) in before,
            },
            create_defaults={
                "message": violation.message,
                "namespace": violation.namespace,
                "node": violation.node,
                "first_seen_at": now,
            },
        )
        kept.append(row.pk)
        if created:
            continue
        confirmed.append(row)
        _log.error("Audit of cluster %s: %s: %s: %s", cluster.name, row.check_name, row.subject, row.message)
        _heal(cluster, client, violation, now)
    AuditFinding.objects.filter(cluster=cluster).exclude(pk__in=kept).delete()
    return confirmed


# -- The rules ----------------------------------------------------------------------------------------------------


def _quota(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    """Usage is the sum over pod sets of workloads that hold quota: each of them is charged, and no other is."""
    for key, pod_set, reserved, charged in _query(
        """
        SELECT workload.namespace || '/' || workload.name, pod_set.name, workload.quota_reserved_at IS NOT NULL,
            pod_set.admitted_count IS NOT NULL
        FROM queues_podset AS pod_set JOIN queues_workload AS workload ON workload.id = pod_set.workload_id
        WHERE workload.cluster_id = %s AND workload.status <> 'Finished'
            AND ((workload.quota_reserved_at IS NOT NULL) <> (pod_set.admitted_count IS NOT NULL)
                OR workload.quota_reserved_at IS NOT NULL
                    AND pod_set.flavors <> '{}' AND pod_set.resource_usage = '{}' AND pod_set.admitted_count > 0)
        ORDER BY workload.id, pod_set.position
        """,
        [cluster.pk],
    ):
        said = "holds quota" if reserved else "holds no quota"
        has = "is charged" if charged else "is charged nothing"
        yield Violation(Check.QUOTA, f"{key}/{pod_set}", f"the workload {said}, and its pod set {has}", _namespace(key))


def _counters(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for miscount in miscounts(cluster.pk):
        subject = f"{miscount.node}/{miscount.uuid}"
        yield Violation(Check.COUNTERS, subject, miscount.message, node=miscount.node, key=miscount.device_id)


def _slices(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, node, uuid, key, status in _query(
        """
        SELECT slice.id, node.name, slice.device_uuid, workload.namespace || '/' || workload.name, workload.status
        FROM gpus_deviceallocation AS slice JOIN gpus_node AS node ON node.id = slice.node_id
        JOIN queues_workload AS workload ON workload.id = slice.workload_id
        WHERE slice.cluster_id = %s AND slice.source = 'decided' AND workload.updated_at < %s
            AND (workload.status = 'Finished' OR workload.quota_reserved_at IS NULL)
        ORDER BY slice.id
        """,
        [cluster.pk, now - _PATIENCE],
    ):
        said = f"a slice of {uuid} is held for workload {key}, which is {status} and holds no quota"
        yield Violation(Check.SLICES, f"{node}/{uuid}#{pk}", said, _namespace(key), node, pk)


def _nodes(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    """Devices are checked by `_counters`. Foreign usage, and usage that comes later, is not counted here."""
    for name, resource, held, allocatable in _query(
        """
        WITH placed AS (
            SELECT place.node, pod_set.requests || '{"pods": 1}' AS requests, count(*) AS pods
            FROM queues_workload AS workload JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id
            CROSS JOIN jsonb_array_elements_text(pod_set.nodes) AS place(node)
            WHERE workload.cluster_id = %s AND workload.status <> 'Finished'
                AND workload.quota_reserved_at IS NOT NULL AND place.node IS NOT NULL
            GROUP BY place.node, pod_set.requests
        ), held AS (
            SELECT placed.node, request.key AS resource, sum(placed.pods * request.value::numeric) AS amount
            FROM placed CROSS JOIN jsonb_each_text(placed.requests) AS request
            WHERE request.key <> ALL(%s) GROUP BY placed.node, request.key
        )
        SELECT node.name, held.resource, held.amount, (node.allocatable ->> held.resource)::numeric
        FROM held JOIN gpus_node AS node ON node.cluster_id = %s AND node.name = held.node
        WHERE held.amount > (node.allocatable ->> held.resource)::numeric
        ORDER BY node.name, held.resource
        """,
        [cluster.pk, sorted(_DEVICES), cluster.pk],
    ):
        amounts = f"{format_amount(resource, int(held))} of {format_amount(resource, int(allocatable))}"
        yield Violation(Check.NODES, f"{name}/{resource}", f"{amounts} {resource} are promised to pods", node=name)


def _told(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, key, missing in _query(
        """
        SELECT id, namespace || '/' || name, push_sequence - pushed_sequence FROM queues_workload
        WHERE cluster_id = %s AND push_sequence > pushed_sequence AND job_id IS NOT NULL AND updated_at < %s
            AND (push_retry_at IS NULL OR push_retry_at < %s)
        ORDER BY id
        """,
        [cluster.pk, now - _PATIENCE, now - _PATIENCE],
    ):
        yield Violation(
            Check.TOLD, key, f"{missing} decisions have not been pushed to the cluster", _namespace(key), key=pk
        )


def _ending(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, key, job in _query(
        """
        SELECT workload.id, workload.namespace || '/' || workload.name, job.kind || ' ' || job.name
        FROM queues_workload AS workload JOIN queues_job AS job ON job.id = workload.job_id
        WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
            AND workload.deletion_requested_at IS NULL AND job.deletion_requested_at < %s
            AND job.kind <> 'PodGroup' AND NOT EXISTS (SELECT FROM queues_pod AS pod
                WHERE pod.workload_id = workload.id AND pod.phase NOT IN ('Succeeded', 'Failed'))
        ORDER BY workload.id
        """,
        [cluster.pk, now - _PATIENCE],
    ):
        yield Violation(Check.ENDING, key, f"it holds quota, and its {job} was withdrawn", _namespace(key), key=pk)


_RULES: Final[Sequence[Callable[[Cluster, datetime], Iterator[Violation]]]] = (
    _quota, _counters, _slices, _nodes, _told, _ending,
)  # fmt: skip


def _pods(cluster: Cluster, pods: Sequence[JsonObject]) -> Iterator[Violation]:
    """Compare pods that have our labels with the rows. Anyone can write a label, so foreign pods may appear too."""
    uids = {uid for pod in pods if (uid := uid_label(pod, WORKLOAD_UID_LABEL))}
    holding = Workload.objects.filter(cluster=cluster, uid__in=uids, quota_reserved_at__isnull=False)
    rows = holding.exclude(status=WorkloadStatus.FINISHED).values_list("namespace", "uid", "pod_sets__nodes")
    held: dict[tuple[str, str], set[str]] = {}
    for namespace, row_uid, nodes in rows:
        held.setdefault((namespace, str(row_uid)), set()).update(filter(None, nodes or ()))
    jobs = {uid for pod in pods if (uid := uid_label(pod, JOB_UID_LABEL))}
    known = set(map(str, Job.objects.filter(cluster=cluster, uid__in=jobs).values_list("uid", flat=True)))
    for pod in pods:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName") or ""
        uid, namespace = uid_label(pod, WORKLOAD_UID_LABEL), metadata["namespace"]
        subject = f"{namespace}/{metadata['name']}"
        if uid and (namespace, uid) not in held and node:
            yield Violation(Check.PODS, subject, "the pod exists, but no workload holds what it uses", namespace, node)
        elif node and held.get((namespace, uid)) and node not in held[namespace, uid]:
            given = ", ".join(sorted(held[namespace, uid]))
            yield Violation(
                Check.PODS, subject, f"the pod is on {node}, but its workload was assigned {given}", namespace, node
            )
        elif not uid and uid_label(pod, JOB_UID_LABEL) not in known:
            yield Violation(Check.PODS, subject, "the pod names an unknown job", namespace, node)


def _live_pods(client: ClusterClient) -> Sequence[JsonObject]:
    return client.list(PODS, label_selector=f"{MANAGED_LABEL}=true", field_selector=_LIVE_PODS).items


def _query(statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def _namespace(key: str) -> str:
    return key.partition("/")[0]


# -- Repairing ---------------------------------------------------------------------------------------------------


def _heal(cluster: Cluster, client: ClusterClient, violation: Violation, now: datetime) -> None:
    """Repair what can be repaired safely: what follows from correct rows, or from what the cluster says of one
    object."""
    match violation.check:
        case Check.COUNTERS:
            with hardware_transaction(cluster.pk):
                recount([violation.key])
            wake_scheduler(cluster.name)
        case Check.SLICES:
            _drop_slice(cluster, violation.key)
        case Check.TOLD:
            request_push(cluster.name)
        case Check.ENDING:
            _end_if_gone(cluster, client, violation.key, now)
            settle_endings(cluster, now=now)
        case Check.QUOTA | Check.NODES | Check.PODS:
            pass  # an operator must decide which side is right


def _drop_slice(cluster: Cluster, pk: int) -> None:
    with hardware_transaction(cluster.pk):
        rows = DeviceAllocation.objects.filter(pk=pk, source="decided")
        unheld = rows.filter(workload__status=WorkloadStatus.FINISHED) | rows.filter(workload__quota_reserved_at=None)
        devices = list(unheld.filter(device__isnull=False).values_list("device", flat=True))
        DeviceAllocation.objects.filter(pk__in=list(unheld.values_list("pk", flat=True))).delete()
        recount(devices)
    wake_scheduler(cluster.name)


def _end_if_gone(cluster: Cluster, client: ClusterClient, pk: int, now: datetime) -> None:
    row = Workload.objects.filter(pk=pk).select_related("job").first()
    kind = JOB_KINDS.get(row.job.kind) if row is not None and row.job is not None else None
    if row is None or row.job is None or kind is None:
        return
    try:
        gone = client.get(kind.resource, row.namespace, row.job.name) is None
    except ClusterError as error:
        _log.info("Could not check whether %s is gone from cluster %s: %s", row.job, cluster.name, error)
        return
    if gone:
        message, reason = "The job is no longer in the cluster", FinishedReason.OWNER_NOT_FOUND
        record_finished(cluster, [(row.namespace, row.name)], reason, message, actor="auditor", now=now)


def audited_clusters() -> list[Cluster]:
    """The clusters in which we run jobs."""
    return list(Cluster.objects.exclude(mode__in=MIRRORED_MODES).order_by("pk"))
