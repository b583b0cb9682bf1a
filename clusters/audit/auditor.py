"""The auditor: checks that quota, devices, pods and the state pushed to the cluster agree.

Rows are read as of one moment, after the cluster's pods. Changes in progress may look wrong then, so a finding counts
only when a later audit confirms it: soon for rows, which change together, and later for pods, which need time to end.
The auditor repairs only where a repair is safe: counters are recounted, slices without a holder are deleted, workloads
whose job or pods are gone are finished, and unpushed decisions are pushed again.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import IntegrityError, connection, transaction
from django.db.models import F

from accounts.models import MIRRORED_MODES, AuditFinding, Cluster
from clusters.api_errors import ClusterError
from clusters.audit import admissions, books, decided, states
from clusters.audit.pods import live_pods, pods_and_rows
from clusters.audit.violations import Check, Violation
from clusters.client import ClusterClient
from clusters.jobs.registry import JOB_KINDS
from foundation.transactions import hardware_transaction
from foundation.wake_ups import request_push, wake_scheduler
from gpus.models import DeviceAllocation
from gpus.services.counters import recount
from queues.models import Workload
from queues.services.workloads import record_finished, settle_endings
from scheduling.lifecycle.conditions import OWNER_IS_GONE
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_log = logging.getLogger(__name__)

_CONFIRMED_AFTER: Final = timedelta(seconds=20)
_CONFIRMED_AFTER_OF_PODS: Final = timedelta(seconds=45)
"""A pod may take half a minute to end after its workload."""


def audit(cluster: Cluster, client: ClusterClient, now: datetime) -> list[Violation]:
    """Return the current violations, including temporary ones. Raises ClusterError if the pods cannot be listed."""
    pods = live_pods(client)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        rules = (*books.RULES, *states.RULES, *admissions.RULES, *decided.RULES)
        found = [violation for rule in rules for violation in rule(cluster, now)]
        return [*found, *pods_and_rows(cluster, pods)]


def audit_and_heal(cluster: Cluster, client: ClusterClient, now: datetime | None = None) -> list[AuditFinding]:
    """Run one audit, and store it. Violations that have been found for a while are logged, repaired if that is safe,
    and returned."""
    now = now or datetime.now(UTC)
    violations = audit(cluster, client, now)
    found = AuditFinding.objects.filter(cluster=cluster)
    first_seen = {
        (check, subject): at for check, subject, at in found.values_list("check_name", "subject", "first_seen_at")
    }
    confirmed: list[AuditFinding] = []
    kept: list[int] = []
    for violation in violations:
        seen_for = now - first_seen.get((violation.check.value, violation.subject), now)
        is_confirmed = seen_for >= (_CONFIRMED_AFTER_OF_PODS if violation.check is Check.PODS else _CONFIRMED_AFTER)
        row, _ = AuditFinding.objects.update_or_create(
            cluster=cluster,
            check_name=violation.check.value,
            subject=violation.subject,
            defaults={
                "message": violation.message,
                "namespace": violation.namespace,
                "node": violation.node,
                "confirmed": is_confirmed,
            },
            create_defaults={
                "message": violation.message,
                "namespace": violation.namespace,
                "node": violation.node,
                "first_seen_at": now,
            },
        )
        kept.append(row.pk)
        if not is_confirmed:
            continue
        confirmed.append(row)
        _log.error("Audit of cluster %s: %s: %s: %s", cluster.name, row.check_name, row.subject, row.message)
        try:
            _heal(cluster, client, violation, now)
        except IntegrityError as error:  # a device that holds more than it has: report the other devices, too
            _log.error("Audit of cluster %s: %s cannot be repaired: %s", cluster.name, row.subject, error)
    AuditFinding.objects.filter(cluster=cluster).exclude(pk__in=kept).delete()
    return confirmed


# -- Repairing ---------------------------------------------------------------------------------------------------


def _heal(cluster: Cluster, client: ClusterClient, violation: Violation, now: datetime) -> None:
    """Make the safe repairs: values that follow from correct rows, or from the cluster's report of one object."""
    match violation.check:
        case Check.COUNTERS:
            with hardware_transaction(cluster.pk):
                recount([violation.key])
            wake_scheduler(cluster.name)
        case Check.SLICES:
            _drop_slice(cluster, violation.key)
        case Check.TOLD:
            _tell_again(cluster, violation.key)
        case Check.ENDING:
            _end_if_gone(cluster, client, violation.key, now)
            settle_endings(cluster, now=now)
        case _:
            pass  # an operator must decide which side is right


def _tell_again(cluster: Cluster, pk: int) -> None:
    ahead = Workload.objects.filter(pk=pk, pushed_sequence__gt=F("push_sequence"))
    ahead.update(pushed_sequence=F("push_sequence") - 1)
    request_push(cluster.name)


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
        _log.info("Could not check whether %s still exists in cluster %s: %s", row.job, cluster.name, error)
        return
    if gone:
        message, reason = OWNER_IS_GONE, FinishedReason.OWNER_NOT_FOUND
        record_finished(cluster, [(row.namespace, row.name)], reason, message, actor="auditor", now=now)


def audited_clusters() -> list[Cluster]:
    """Return the clusters in which we run jobs."""
    return list(Cluster.objects.exclude(mode__in=MIRRORED_MODES).order_by("pk"))
