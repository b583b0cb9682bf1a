"""Rows that PostgreSQL compares and reads to change many workloads: as many as it changes, whatever came before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from psycopg.errors import Diagnostic

from accounts.models import Cluster
from queues.models import Workload
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from tests.factories import START, make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 40


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
    read = [
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes
        if node.get("Relation Name") == "queues_workload" and "Scan" in node["Node Type"]
    ]
    assert read
    assert max(read) <= MANY + 1
