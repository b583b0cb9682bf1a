"""Rules about figures: idle devices, used quota, and a queue below its share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone

from accounts.models import Cluster
from foundation.redis_client import redis_client
from gpus.models import DeviceSample
from notifications.models import Event, Notification, NotificationRule
from notifications.services.gathering import gather
from queues.models import LocalQueue, Workload
from scheduler.live.publisher import snapshot_key
from scheduler.models import Lease
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue, make_node
from tests.notifications.test_notifications import RULES, make_own, titles

pytestmark = pytest.mark.django_db

NOW = timezone.now()
EARLIER = (NOW - timedelta(hours=1)).isoformat()
CPU = {"flavor": "default", "resource": "cpu", "nominal": 10_000, "deserved": None}
QUOTA = {"borrowing_limit": None, "lending_limit": None, "borrowed": 0}


@pytest.fixture
def leader(cluster: Cluster) -> Iterator[None]:
    """A leader that published nothing yet."""
    Lease.objects.create(cluster=cluster, epoch=1, holder="test", renewed_at=timezone.now())
    yield
    redis_client().delete(snapshot_key(cluster.name))


def publish(queues: dict[str, Any] | None = None, devices: dict[str, Any] | None = None) -> None:
    data = {"cluster_queues": queues or {}, "cohorts": {}, "devices": devices or {}}
    redis_client().set(snapshot_key("default"), orjson.dumps({"type": "snapshot", "epoch": 1, "data": data}))


def queue(used: int, waiting: int = 0, **changes: Any) -> dict[str, Any]:
    return {"pending": waiting, "inadmissible": 0, "usage": [{**CPU, **QUOTA, "used": used, **changes}]}


def make_rule(client: SchemaClient, event: Event, **fields: Any) -> NotificationRule:
    answer = client.post(RULES, {"event": event.value, **fields})
    assert answer.status_code == 201, answer.json()
    return NotificationRule.objects.get(pk=answer.json()["id"])


def look(cluster: Cluster, minutes: float = 0) -> int:
    return gather(cluster, NOW + timedelta(minutes=minutes))


@pytest.mark.usefixtures("leader")
def test_quota_that_stays_full_is_told_once_and_again_after_it_was_free(cluster: Cluster, alice: SchemaClient) -> None:
    make_rule(alice, Event.QUOTA_USED, threshold=80, minutes=5)
    publish({"main": queue(8_000, waiting=2)})
    assert [look(cluster, minute) for minute in (0, 4, 5, 6)] == [0, 0, 1, 0]
    assert titles(alice) == ["The queue main uses 80% of its quota of cpu"]
    publish({"main": queue(7_900)})
    assert look(cluster, 7) == 0
    assert Notification.objects.get().ended_at is not None
    publish({"main": queue(9_000)})
    assert [look(cluster, minute) for minute in (8, 12, 13)] == [0, 0, 1]


@pytest.mark.usefixtures("leader")
def test_a_state_is_neither_told_nor_ended_while_no_scheduler_leads(cluster: Cluster, alice: SchemaClient) -> None:
    make_rule(alice, Event.QUOTA_USED, threshold=80, minutes=1)
    publish({"main": queue(9_000)})
    assert [look(cluster), look(cluster, 1)] == [0, 1]
    Lease.objects.update(renewed_at=timezone.now() - timedelta(minutes=5))
    assert look(cluster, 2) == 0
    assert Notification.objects.get().ended_at is None


@pytest.mark.usefixtures("leader")
@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (queue(4_900, waiting=1), 1),
        (queue(5_000, waiting=1), 0),
        (queue(0, waiting=0), 0),
        (queue(4_900, waiting=1, deserved=6_000), 0),
        (queue(4_900, waiting=1, nominal=0), 0),
    ],
    ids=["below", "at its share", "nothing waits", "above the share that it deserves", "no quota"],
)
def test_a_queue_below_its_share_is_told_while_workloads_wait(
    cluster: Cluster, alice: SchemaClient, numbers: dict[str, Any], told: int
) -> None:
    make_rule(alice, Event.SHARE_BELOW, minutes=1)
    publish({"main": numbers})
    assert [look(cluster), look(cluster, 1)] == [0, told]


@pytest.mark.usefixtures("leader")
def test_a_rule_is_about_its_queue_and_queues_that_its_user_sees(
    cluster: Cluster, alice: SchemaClient, bob: SchemaClient
) -> None:
    for name in ("main", "hidden"):
        make_cluster_queue(cluster, name, local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team-a", name="local", cluster_queue_name="main", created_at=NOW
    )
    make_rule(alice, Event.QUOTA_USED, minutes=1, cluster_queue="main")
    make_rule(bob, Event.QUOTA_USED, minutes=1)
    publish({"main": queue(9_500), "hidden": queue(9_500)})
    look(cluster)
    look(cluster, 1)
    expected = ["The queue main uses 95% of its quota of cpu"]
    assert (titles(alice), titles(bob)) == (expected, expected)


def idle_device(cluster: Cluster, samples: dict[int, float], admitted: datetime) -> None:
    """A device on which bob's workload runs, with its utilization in percent by minutes ago."""
    device = make_node(cluster, "node-1", [{"uuid": "GPU-1"}]).devices.get()
    workload = make_own(cluster, status="Admitted", admitted_at=admitted)
    for minutes, percent in samples.items():
        DeviceSample.objects.create(device=device, at=NOW - timedelta(minutes=minutes), utilization_percent=percent)
    held = {"workload": workload.key, "namespace": workload.namespace}
    publish(devices={device.uuid: {"node": "node-1", "index": 0, "slices": [held]}})


@pytest.mark.usefixtures("leader")
@pytest.mark.parametrize(
    ("samples", "admitted_minutes", "told"),
    [
        ({25: 3, 5: 4}, 40, 1),
        ({25: 90, 5: 4}, 40, 0),
        ({40: 90, 5: 4}, 40, 1),
        ({25: 3, 5: 4}, 20, 0),
        ({25: 3}, 40, 0),
    ],
    ids=["idle", "busy once", "busy before", "its job is new", "not measured"],
)
def test_a_device_that_is_held_and_idle_is_told(
    cluster: Cluster, bob: SchemaClient, samples: dict[int, float], admitted_minutes: int, told: int
) -> None:
    make_rule(bob, Event.DEVICES_IDLE, minutes=30, threshold=10)
    idle_device(cluster, samples, NOW - timedelta(minutes=admitted_minutes))
    assert [look(cluster), look(cluster)] == [told, 0]


@pytest.mark.usefixtures("leader")
def test_an_idle_device_with_long_names_of_holders_is_told(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.DEVICES_IDLE, minutes=30, threshold=10)
    idle_device(cluster, {5: 0}, NOW - timedelta(hours=1))
    names = [letter * 250 for letter in "abc"]
    Workload.objects.all().delete()
    held = []
    for name in names:
        workload = make_own(cluster, name, status="Admitted", admitted_at=NOW - timedelta(hours=1))
        held.append({"workload": workload.key, "namespace": workload.namespace})
    publish(devices={"GPU-1": {"node": "node-1", "index": 0, "slices": held}})
    assert [look(cluster), look(cluster)] == [1, 0]


@pytest.mark.usefixtures("leader")
def test_the_idle_device_of_another_tenant_is_not_told(cluster: Cluster, charlie: SchemaClient) -> None:
    make_rule(charlie, Event.DEVICES_IDLE, minutes=1)
    idle_device(cluster, {1: 0}, NOW - timedelta(hours=1))
    assert look(cluster) == 0
    assert Workload.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"event": "QuotaUsed", "threshold": 0}, "threshold"),
        ({"event": "WorkloadWaits", "threshold": 5}, "threshold"),
        ({"event": "DevicesIdle", "cluster_queue": "main"}, "cluster_queue"),
        ({"event": "WorkloadStarted", "webhook_format": "carrier pigeon"}, "webhook_format"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(bob: SchemaClient, body: dict[str, Any], field: str) -> None:
    answer = bob.post(RULES, body)
    assert answer.status_code == 400
    assert field in str(answer.json()["errors"])


def test_a_rule_about_a_figure_has_a_threshold(bob: SchemaClient) -> None:
    rule = make_rule(bob, Event.DEVICES_IDLE)
    assert (rule.threshold, rule.minutes, rule.webhook_format) == (10, 30, "json")


def test_another_threshold_begins_anew(bob: SchemaClient) -> None:
    rule = make_rule(bob, Event.QUOTA_USED)
    NotificationRule.objects.update(onsets={"main": EARLIER})
    assert bob.patch(f"{RULES}{rule.pk}/", {"enabled": False}).status_code == 200
    assert NotificationRule.objects.get().onsets
    assert bob.patch(f"{RULES}{rule.pk}/", {"threshold": 95}).status_code == 200
    assert NotificationRule.objects.get().onsets == {}
