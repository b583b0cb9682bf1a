"""Stores estimates of starts: the newest of each waiting workload, and earlier ones by which they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from accounts.models import Cluster
from history.models import UsageRecord
from queues.models import StartEstimate, Workload
from scheduling.estimates.correction import MAX_OPEN
from scheduling.estimates.estimator import Estimator, stage_of
from scheduling.estimates.likeness import like_levels
from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import EndedRun, Unknown
from studio.models import KeptEstimate

MAX_RUNS: Final = 5_000
"""The newest ended runs that are read when a studio begins."""
_MAX_COMPARED: Final = 5_000
_FINISHED: Final = "Finished"
_COMPARED: Final = (
    "workload_uid", "queued_at", "stage_seconds", "tree", "made_at", "p50_seconds", "features", "started_at",
)  # fmt: skip

# A start is the first quota that the workload got after the estimate, by the log of decisions. A workload that neither
# started nor waits has left. One statement sees one moment: of a start between two, the second would see only the end
# of the wait.
_JUDGE: Final = """
    UPDATE studio_keptestimate AS kept
    SET started_at = found.started_at, left_at = CASE WHEN found.started_at IS NULL THEN %(now)s::timestamptz END
    FROM (
        SELECT kept.id, min(decision.decided_at) AS started_at
        FROM studio_keptestimate AS kept LEFT JOIN scheduler_decision AS decision
            ON decision.workload_uid = kept.workload_uid AND decision.action = 'Admit'
            AND decision.decided_at >= kept.made_at
        WHERE kept.cluster_id = %(cluster)s AND kept.started_at IS NULL AND kept.left_at IS NULL
        GROUP BY kept.id
    ) AS found
    WHERE kept.id = found.id AND (found.started_at IS NOT NULL OR NOT EXISTS (
        SELECT FROM queues_workload AS workload
        WHERE workload.cluster_id = %(cluster)s AND workload.uid = kept.workload_uid
            AND workload.namespace = kept.namespace AND workload.name = kept.workload_name
            AND workload.active AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NULL
    ))
"""
_BEYOND_REACH: Final = """
    INSERT INTO queues_startestimate AS estimate (workload_id, made_at, unknown, compared)
    SELECT id, %(made_at)s, %(unknown)s, 0 FROM queues_workload
    WHERE cluster_id = %(cluster)s AND uid = ANY(%(uids)s::uuid[])
        AND quota_reserved_at IS NULL AND status <> 'Finished'
    ORDER BY id
    ON CONFLICT (workload_id) DO UPDATE SET made_at = excluded.made_at, p10_at = NULL, p50_at = NULL, p90_at = NULL,
        unknown = excluded.unknown, compared = excluded.compared
"""
_CLEAN: Final = """
    DELETE FROM queues_startestimate AS estimate
    WHERE NOT EXISTS (SELECT FROM queues_workload AS workload WHERE workload.id = estimate.workload_id)
"""


def judge_estimates(cluster: Cluster, now: datetime) -> None:
    """Record the starts of workloads with stored estimates. A workload that left its queue without a start judges no
    estimate."""
    with connection.cursor() as cursor:
        cursor.execute(_JUDGE, {"cluster": cluster.pk, "now": now})


def read_runs(cluster: Cluster, history: RunHistory, after: int) -> int:
    """Add the ended runs that were recorded after the record with this key, and return the key of the newest run."""
    records = UsageRecord.objects.filter(cluster=cluster, pk__gt=after, outcome=_FINISHED).order_by("-pk")
    columns = ("pk", "workload_uid", "namespace", "local_queue", "cluster_queue", "workload_name", "held")
    rows = [*records.values_list(*columns, "reserved_at", "ended_at")[:MAX_RUNS]]
    maxima = _maxima(cluster, [row[1] for row in rows])
    for _, uid, namespace, local_queue, cluster_queue, name, held, reserved_at, ended_at in reversed(rows):
        levels = like_levels(namespace, local_queue, cluster_queue, name, _amounts(held))
        history.add(EndedRun(levels, max(1.0, (ended_at - reserved_at).total_seconds()), maxima.get(uid)))
    return int(rows[0][0]) if rows else after


def _maxima(cluster: Cluster, uids: Sequence[Any]) -> dict[Any, int]:
    """Return the maximumExecutionTimeSeconds of finished workloads, by UID."""
    found = Workload.objects.filter(cluster=cluster, status=_FINISHED, uid__in=uids)
    return {uid: seconds for uid, seconds in found.values_list("uid", "maximum_execution_seconds") if seconds}


def _amounts(held: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for amounts in held.values():
        for resource, amount in amounts.items():
            found[resource] = found.get(resource, 0) + int(amount)
    return found


def read_estimators(cluster: Cluster, history: RunHistory) -> dict[str, Estimator]:
    """Read the estimators by tree, with the outcomes of the kept estimates."""
    found: dict[str, Estimator] = {}
    known = _of_known(cluster)
    started = known.filter(started_at__isnull=False).order_by("-started_at", "-pk").values_list(*_COMPARED)
    for uid, queued_at, stage, tree, made_at, p50, features, started_at in [
        *reversed(started[:_MAX_COMPARED]), *open_estimates(cluster),
    ]:  # fmt: skip
        estimator = found.setdefault(tree, Estimator(history))
        correction, key = estimator.correction(stage), f"{uid} {queued_at.timestamp()}"
        correction.remember(key, made_at.timestamp(), tuple(features), p50)
        if started_at is not None:
            correction.started(key, started_at.timestamp())
    return found


def open_estimates(cluster: Cluster) -> Sequence[tuple[Any, ...]]:
    """Return the stored estimates whose workloads wait, in columns as `_COMPARED`, the oldest first. For each tree and
    age of waiting, these are as many of the newest estimates as a correction uses."""
    newest = Window(RowNumber(), ["tree", "stage_seconds"], ["-made_at", "-pk"])
    waiting = _of_known(cluster).filter(started_at=None).annotate(number=newest).filter(number__lte=MAX_OPEN)
    return [*waiting.order_by("made_at", "pk").values_list(*_COMPARED)]


def _of_known(cluster: Cluster) -> QuerySet[KeptEstimate]:
    return KeptEstimate.objects.filter(cluster=cluster, p50_seconds__isnull=False, left_at=None)


def store_estimates(
    cluster: Cluster, made_at: datetime, estimates: Iterable[Mapping[str, Any]], beyond_reach: Sequence[str] = ()
) -> None:
    """Store the newest estimates of a cluster, and keep those of workloads that have reached another age of waiting.
    The workloads with the UIDs `beyond_reach` were not tried: their start is unknown, and no estimate of them is kept.
    """
    rows = {each["uid"]: each for each in estimates}
    with transaction.atomic():
        waiting = Workload.objects.filter(cluster=cluster, quota_reserved_at=None).exclude(status=_FINISHED)
        ids = {str(uid): pk for pk, uid in waiting.filter(uid__in=rows).values_list("pk", "uid")}
        StartEstimate.objects.bulk_create(
            [_newest(ids[uid], made_at, rows[uid]) for uid in sorted(ids, key=ids.__getitem__)],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=["workload"],
            update_fields=["made_at", "p10_at", "p50_at", "p90_at", "unknown", "compared"],
        )
        _store_beyond_reach(cluster, made_at, beyond_reach)
        _clean(cluster, made_at)
        _keep(cluster, made_at, {uid: rows[uid] for uid in ids})


def _newest(pk: int, made_at: datetime, row: Mapping[str, Any]) -> StartEstimate:
    at = {
        f"{name}_at": None if row[name] is None else made_at + timedelta(seconds=row[name])
        for name in ("p10", "p50", "p90")
    }
    return StartEstimate(workload_id=pk, made_at=made_at, unknown=row["unknown"] or "", compared=row["compared"], **at)


def _store_beyond_reach(cluster: Cluster, made_at: datetime, uids: Sequence[str]) -> None:
    if not uids:
        return
    values: dict[str, Any] = {
        "cluster": cluster.pk,
        "made_at": made_at,
        "unknown": Unknown.BEYOND_REACH.value,
        "uids": [*uids],
    }
    with connection.cursor() as cursor:
        cursor.execute(_BEYOND_REACH, values)


def _clean(cluster: Cluster, made_at: datetime) -> None:
    """Delete the estimates of this cluster that were not renewed, and those of deleted workloads."""
    StartEstimate.objects.filter(workload__cluster=cluster, made_at__lt=made_at).delete()
    with connection.cursor() as cursor:
        cursor.execute(_CLEAN)


def _keep(cluster: Cluster, made_at: datetime, rows: Mapping[str, Mapping[str, Any]]) -> None:
    now = made_at.timestamp()
    opened = KeptEstimate.objects.filter(cluster=cluster, started_at=None, left_at=None, workload_uid__in=rows)
    kept = {(str(uid), stage) for uid, stage in opened.values_list("workload_uid", "stage_seconds")}
    new = []
    for uid, row in rows.items():
        stage = stage_of(now - row["queued_at"])
        if (uid, stage) in kept:
            continue
        namespace, _, name = row["workload"].partition("/")
        new.append(
            KeptEstimate(
                cluster=cluster, workload_uid=uid, namespace=namespace, workload_name=name,
                cluster_queue=row["cluster_queue"], tree=row["tree"], stage_seconds=stage, made_at=made_at,
                queued_at=datetime.fromtimestamp(row["queued_at"], UTC), p10_seconds=row["p10"], p50_seconds=row["p50"],
                p90_seconds=row["p90"], unknown=row["unknown"] or "", features=row["features"],
            )
        )  # fmt: skip
    KeptEstimate.objects.bulk_create(new, batch_size=1000, ignore_conflicts=True)


def forget_estimates(before: datetime) -> None:
    """Delete estimates that were made before this time."""
    KeptEstimate.objects.filter(made_at__lt=before).delete()


def judged_seconds(
    cluster: Cluster, since: datetime, cluster_queues: frozenset[str] | None, limit: int
) -> Iterable[tuple[Any, ...]]:
    """Return the newest kept estimates, at most `limit`, whose workloads started since then in these ClusterQueues
    (None: in all): (ClusterQueue, stage, p10, p50, p90, waited), the newest first."""
    found = KeptEstimate.objects.filter(cluster=cluster, started_at__gte=since).order_by("-started_at", "-pk")
    if cluster_queues is not None:
        found = found.filter(cluster_queue__in=cluster_queues)
    columns = ("cluster_queue", "stage_seconds", "p10_seconds", "p50_seconds", "p90_seconds")
    return found.values_list(*columns, F("started_at") - F("made_at"))[:limit]
