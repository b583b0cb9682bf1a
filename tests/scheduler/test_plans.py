"""Rows that PostgreSQL compares and reads to change many workloads: as many as it changes, whatever came before."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from kubernetes.client import Configuration
from psycopg.errors import Diagnostic

from accounts.models import Cluster
from clusters.audit.pods import pods_and_rows
from clusters.client import ClusterClient, WatchEvent
from clusters.jobs.objects import JOB_UID_LABEL, WORKLOAD_UID_LABEL
from clusters.jobs.registry import JOB_KINDS
from clusters.sync.jobs import JobSync
from queues.models import Job, Workload
from queues.services.workloads import cancel, record_finished
from scheduler.leader.engine import Engine
from tests.factories import START, make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 40
JOBS_OF_A_BATCH = 100
"""With so many names in as many namespaces, PostgreSQL would rather read the whole table than look up each pair."""


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


@contextmanager
def executed_nodes() -> Iterator[list[dict[str, Any]]]:
    """The nodes of all plans that run in the block, those within triggers too, with what they did."""
    connection.ensure_connection()
    session = connection.connection
    found: list[dict[str, Any]] = []

    def note(message: Diagnostic) -> None:
        _, plan, text = (message.message_primary or "").partition("plan:\n")
        if plan:
            found.extend(_nodes(json.loads(text)["Plan"]))

    with connection.cursor() as cursor:
        cursor.execute("LOAD 'auto_explain'")
        for name, value in (
            ("log_format", "json"),
            ("log_level", "notice"),
            ("log_nested_statements", "on"),
            ("log_analyze", "on"),
            ("log_timing", "off"),
            ("log_min_duration", "0"),
        ):
            cursor.execute(f"SET auto_explain.{name} = {value}")
    session.add_notice_handler(note)
    try:
        yield found
    finally:
        session.remove_notice_handler(note)
        connection.close()


def most_rows_read(nodes: Iterable[dict[str, Any]], table: str) -> float:
    """The most rows of the table that a node has read."""
    read: list[float] = [
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes
        if node.get("Relation Name") == table and "Scan" in node["Node Type"]
    ]
    return max(read)


@pytest.fixture
def admitted() -> Cluster:
    """A cluster with many admitted workloads beside others, and a session that has changed a single one before."""
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 10**9}})
    for name in ("first", *(f"each-{number}" for number in range(MANY))):
        make_workload(cluster, name)
    Engine(cluster, "test").run()
    assert set(Workload.objects.values_list("status", flat=True)) == {"Admitted"}
    Workload.objects.bulk_create(
        Workload(cluster=cluster, namespace="team", name=f"beside-{number}", created_at=START) for number in range(3000)
    )
    with connection.cursor() as cursor:  # as in a new installation: nothing has looked at the table yet
        cursor.execute("UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE relname = 'queues_workload'")
        cursor.execute("DELETE FROM pg_statistic WHERE starelid = 'queues_workload'::regclass")
    connection.close()
    assert record_finished(cluster, [("team", "first")], actor="alice")
    return cluster


def test_ended_workloads_are_not_compared_each_with_each(admitted: Cluster) -> None:
    with executed_nodes() as nodes:
        assert (
            len(record_finished(admitted, [("team", f"each-{number}") for number in range(MANY)], actor="alice"))
            == MANY
        )
    assert any(node["Node Type"] == "Named Tuplestore Scan" for node in nodes)
    compared = [
        node["Actual Rows"] * node["Actual Loops"] for node in nodes if node["Node Type"] == "Named Tuplestore Scan"
    ]
    assert max(compared) == MANY


def test_workloads_are_found_by_name_among_those_beside_them(admitted: Cluster) -> None:
    with executed_nodes() as nodes:
        assert (
            len(record_finished(admitted, [("team", f"each-{number}") for number in range(MANY)], actor="alice"))
            == MANY
        )
    assert 0 < most_rows_read(nodes, "queues_workload") <= MANY + 1


def add_jobs(cluster: Cluster, prefix: str, count: int, namespaces: Sequence[str]) -> None:
    own = {"cluster": cluster, "kind": "Job", "created_at": START, "manifest": {}}
    names = zip(itertools.cycle(namespaces), range(count), strict=False)
    rows = [Job(**own, namespace=namespace, name=f"{prefix}-{number}", uid=uuid4()) for namespace, number in names]
    Job.objects.bulk_create(rows, batch_size=5000)


@pytest.fixture
def many(admitted: Cluster) -> Cluster:
    """The same cluster, with as many finished jobs as other workloads, and statistics."""
    add_jobs(admitted, "beside", 3000, ["team"])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE queues_workload, queues_job")
    return admitted


def test_the_rows_of_a_pod_are_found_by_their_uids_among_those_beside_them(many: Cluster) -> None:
    workload, job = Workload.objects.get(name="each-0"), Job.objects.get(name="beside-0")
    labels = {WORKLOAD_UID_LABEL: str(workload.uid), JOB_UID_LABEL: str(job.uid)}
    pod = {"metadata": {"name": "pod", "namespace": "team", "labels": labels}, "spec": {"nodeName": "node-1"}}
    with executed_nodes() as nodes:
        assert list(pods_and_rows(many, [pod])) == []
    assert most_rows_read(nodes, "queues_workload") == 1
    assert most_rows_read(nodes, "queues_job") == 1


def test_the_rows_of_jobs_are_found_by_their_uids_among_those_beside_them(many: Cluster) -> None:
    add_jobs(many, "more", 20_000, [f"team-{number}" for number in range(50)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE queues_job")
    rows = Job.objects.filter(name__startswith="more-").order_by("pk")[:JOBS_OF_A_BATCH]
    metadata = [{"name": row.name, "namespace": row.namespace, "uid": str(row.uid)} for row in rows]
    events = [WatchEvent("MODIFIED", {"metadata": each, "spec": {}}) for each in metadata]
    sync = JobSync(many, JOB_KINDS["Job"], ClusterClient(Configuration(host="https://unused.example")))
    with executed_nodes() as nodes:
        sync.apply(events, START.timestamp())
    assert most_rows_read(nodes, "queues_job") == JOBS_OF_A_BATCH


def test_a_workload_is_ended_without_a_look_at_all_others(many: Cluster) -> None:
    with executed_nodes() as nodes:
        assert cancel(many, [("team", "each-0")], actor="alice")
    assert most_rows_read(nodes, "queues_workload") <= MANY
