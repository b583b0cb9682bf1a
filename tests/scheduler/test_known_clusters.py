"""The clusters that a tick of the leader schedules."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from scheduler.tasks import _Clusters
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db(transaction=True)


def read(clusters: _Clusters) -> tuple[list[tuple[str, str]], int]:
    with CaptureQueriesContext(connection) as queries:
        found = clusters.all()
    return [(row.name, row.mode) for row in found], len(queries)


def test_rows_of_clusters_are_read_again_when_one_has_changed() -> None:
    clusters = _Clusters()
    assert read(clusters) == ([], 1)
    make_cluster("east")
    assert read(clusters) == ([("east", "schedule")], 2)
    assert read(clusters) == ([("east", "schedule")], 1)
    Cluster.objects.filter(name="east").update(mode="observe")
    make_cluster("west")
    assert read(clusters) == ([("east", "observe"), ("west", "schedule")], 2)
    assert read(clusters)[1] == 1
