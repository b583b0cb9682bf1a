"""Reads the rows of workloads, with their pod sets and jobs, for the loops that do so each second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NoReturn

from django.db import connection
from django.db.models import QuerySet

from accounts.models import Cluster
from foundation.postgresql.instances import Columns, instances
from queues.models import Job, PodSet, Workload

_WORKLOAD: Final = Columns(Workload, "workload")
_JOB: Final = Columns(Job, "job")
_WITH_JOBS: Final = f"""
    SELECT {_WORKLOAD.text}, {_JOB.text}, (SELECT xmin::text FROM accounts_cluster WHERE id = %(cluster)s)
    FROM {_WORKLOAD.table} AS workload
    LEFT JOIN {_JOB.table} AS job ON job.id = workload.job_id WHERE
"""  # noqa: S608 (constants)


class _Kept(QuerySet[PodSet]):
    """The pod sets of one row. They can be iterated and counted; a query made of them would be one for all rows."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("the pod sets of a row that was read by written SQL can be read by .all() alone")

    _chain = _raw_delete = update = aggregate = _refuse


def workload_rows(where: str, parameters: Sequence[Any]) -> list[Workload]:
    """Return the workloads that match the condition, with their pod sets."""
    return _with_pod_sets(instances(Workload, where, parameters))


def workload_rows_with_jobs(where: str, parameters: Mapping[str, Any]) -> tuple[list[Workload], str]:
    """Return the same with their jobs, and the version that the row of the cluster `%(cluster)s` has in the same
    snapshot (`cluster_versions`; empty if there are no workloads). The condition names the tables `workload` and `job`.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"{_WITH_JOBS} {where}", parameters)
        found = cursor.fetchall()
    return _with_pod_sets([_with_job(values[:-1]) for values in found]), found[0][-1] if found else ""


def jobs_without_manifests(cluster: Cluster, kind: str, uids: Collection[Any]) -> list[Job]:
    """Return the jobs of the kind with these uids. Their manifests are read only on access."""
    where = "cluster_id = %s AND kind = %s AND uid = ANY(%s::uuid[])"  # by uids, which have an index
    return instances(Job, where, [cluster.pk, kind, list(uids)], ("manifest",)) if uids else []


def _with_job(values: Sequence[Any]) -> Workload:
    row = _WORKLOAD.instance(values[: _WORKLOAD.count])
    row.job = _JOB.instance(values[_WORKLOAD.count :]) if row.job_id is not None else None
    return row


def _with_pod_sets(rows: list[Workload]) -> list[Workload]:
    if not rows:
        return rows
    found: dict[int, list[PodSet]] = defaultdict(list)
    for pod_set in instances(PodSet, "workload_id = ANY(%s) ORDER BY position", [[row.pk for row in rows]]):
        found[pod_set.workload_id].append(pod_set)
    for row in rows:
        for pod_set in found[row.pk]:
            pod_set.workload = row
        # As Django does for `prefetch_related`, which builds a query for each workload.
        kept = _Kept(PodSet)
        kept._result_cache, kept._prefetch_done = found[row.pk], True  # type: ignore[attr-defined]  # noqa: SLF001
        row._prefetched_objects_cache = {"pod_sets": kept}  # type: ignore[attr-defined]  # noqa: SLF001
    return rows
