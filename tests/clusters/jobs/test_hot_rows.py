"""Rows that are read by written SQL are the rows that Django reads."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext

from accounts.cluster_versions import cluster_versions
from clusters.jobs.hot_rows import jobs_without_manifests, workload_rows, workload_rows_with_jobs
from clusters.push.desired_state import with_jobs
from queues.manifests.job_workloads import workload_specs
from queues.models import Job, Workload
from queues.services.submission import create_workloads
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.simulated_cluster import job

pytestmark = pytest.mark.django_db


def values(row: models.Model) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def everything(row: Workload) -> Any:
    """All columns of a workload, of its job and of its pod sets."""
    return values(row), values(row.job) if row.job else None, [values(pod_set) for pod_set in row.pod_sets.all()]


def submitted() -> list[Workload]:
    cluster = make_cluster()
    make_cluster_queue(cluster)
    for name in ("a", "b"):
        manifest = job(name, requests={"cpu": "1"})
        manifest["metadata"] |= {"namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
        create_workloads(cluster, workload_specs(manifest), actor="alice")
    make_workload(cluster, name="alone")
    return list(with_jobs(Workload.objects.all()).order_by("pk"))


def test_workloads_have_all_their_columns_jobs_and_pod_sets() -> None:
    expected = submitted()
    assert [row.job is None for row in expected] == [False, False, True]
    with CaptureQueriesContext(connection) as queries:
        where, cluster = "workload.id > %(after)s ORDER BY workload.id", expected[0].cluster_id
        found, version = workload_rows_with_jobs(where, {"after": 0, "cluster": cluster})
        assert [everything(row) for row in found] == [everything(row) for row in expected]
        assert all(pod_set.workload is row for row in found for pod_set in row.pod_sets.all())
    assert len(queries) == 2
    assert version == cluster_versions()[cluster]
    assert workload_rows_with_jobs("workload.id < %(after)s", {"after": 0, "cluster": cluster}) == ([], "")
    with CaptureQueriesContext(connection) as queries:
        found = workload_rows("id = ANY(%s) ORDER BY id DESC", [[row.pk for row in expected]])
        assert [(row.pk, len(row.pod_sets.all())) for row in found] == [(row.pk, 1) for row in reversed(expected)]
    assert len(queries) == 2
    assert workload_rows("id < %s", [0]) == []


def test_a_query_made_of_a_rows_pod_sets_is_refused() -> None:
    """It would be one of the pod sets of all rows."""
    submitted()
    [row, *_] = workload_rows("id > %s ORDER BY id", [0])
    assert [(pod_set.name, pod_set.pk) for pod_set in row.pod_sets.all()] != []
    assert (row.pod_sets.count(), row.pod_sets.exists(), row.pod_sets.first()) == (1, True, row.pod_sets.all()[0])
    for query in (
        lambda: row.pod_sets.filter(name="main"),
        lambda: row.pod_sets.update(count=77),
        lambda: row.pod_sets.values_list("name"),
        lambda: row.pod_sets.aggregate(models.Sum("count")),
    ):
        with pytest.raises(TypeError, match=r"by \.all\(\) alone"):
            query()


def test_a_job_is_read_without_its_manifest_which_is_read_when_it_is_asked_for() -> None:
    row = submitted()[0]
    assert row.job_id is not None
    expected = Job.objects.get(pk=row.job_id)
    (found,) = jobs_without_manifests(row.cluster, expected.kind, {str(expected.uid)})
    assert found.get_deferred_fields() == {"manifest"}
    assert values(found) == values(expected)
    assert jobs_without_manifests(row.cluster, expected.kind, []) == []
    assert jobs_without_manifests(row.cluster, "CronJob", {expected.uid}) == []
