"""Entries of Kueue's objects that are stored together: never over a version that the watcher has noted meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.models import Cluster
from clusters.served.kept_entries import keep_all
from queues.models import ServedObject
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 1, 1, 12, 30, 0, 123456, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster("default")


def entry(cluster: Cluster, name: str, **columns: Any) -> ServedObject:
    return ServedObject(cluster=cluster, kind="Workload", namespace="team", name=name, **columns)


def stored(name: str) -> dict[str, Any]:
    found = ServedObject.objects.filter(name=name).values().get()
    return {key: value for key, value in found.items() if key not in ("id", "cluster_id")}


def test_new_and_known_entries_are_stored_with_every_column(cluster: Cluster) -> None:
    values = {
        "uid": "u", "resource_version": "7", "object_generation": 2**40, "content": "c", "edited_at": AT,
        "edited_by": "kubectl", "held": True, "deleting": True, "agreed": "a", "row_version": 2**31,
        "status": {"conditions": [{"type": "Admitted", "message": "50% of 'x'"}]}, "status_told_at": AT,
        "problem": "refused", "failures": 3, "retry_at": AT,
    }  # fmt: skip
    ServedObject.objects.create(cluster=cluster, kind="Workload", namespace="team", name="known")
    known = ServedObject.objects.get(name="known")
    for column, value in values.items():
        setattr(known, column, value)
    keep_all([entry(cluster, "new", **values), known])
    names = {"kind": "Workload", "namespace": "team"}
    assert stored("new") == {**names, "name": "new", **values}
    assert stored("known") == {**names, "name": "known", **values}
    known.resource_version, known.retry_at = "8", None
    keep_all([known])
    assert (stored("known")["resource_version"], stored("known")["retry_at"]) == ("8", None)


def test_a_version_that_the_watcher_has_noted_stays(cluster: Cluster) -> None:
    for name in ("seen", "left"):
        entry(cluster, name, uid="u", resource_version="5", content="old").save()
    seen, left = (ServedObject.objects.get(name=name) for name in ("seen", "left"))
    ServedObject.objects.filter(name="seen").update(resource_version="6", content="edited")
    for each in (seen, left):
        each.resource_version, each.content = "7", "told"
    keep_all([seen, left, entry(cluster, "seen", content="made")])
    assert (stored("seen")["resource_version"], stored("seen")["content"]) == ("6", "edited")
    assert (stored("left")["resource_version"], stored("left")["content"]) == ("7", "told")
    left.content = "again"
    keep_all([seen, left])
    assert (stored("seen")["content"], stored("left")["content"]) == ("edited", "again")
