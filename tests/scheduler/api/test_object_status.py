"""Kueue's `status` of queues, as their manifests show it."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from queues.models import LocalQueue
from scheduler.api.object_status import local_queue_statuses
from tests.factories import START, make_cluster, make_cluster_queue

pytestmark = pytest.mark.django_db


def test_a_local_queue_shows_its_past_usage_where_it_is_sampled(cluster: Cluster) -> None:
    make_cluster(cluster.name)
    make_cluster_queue(cluster)
    (queue,) = LocalQueue.objects.all()
    assert "fairSharing" not in local_queue_statuses(cluster, [queue])[0]
    consumed = {"cpu": 4.25, "memory": 419430400.2}
    queue.admission_fair_sharing = {"consumedResources": consumed, "lastUpdate": START.timestamp()}
    assert local_queue_statuses(cluster, [queue])[0]["fairSharing"] == {
        "weightedShare": 0,
        "admissionFairSharingStatus": {
            "consumedResources": {"cpu": "4250m", "memory": "400Mi"},
            "lastUpdate": START.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }
