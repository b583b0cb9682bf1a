"""What users ask to be told is told once: in the page, by webhook and by mail."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditRecord, Cluster
from gpus.models import Device
from notifications.models import Delivery, Event, Notification, NotificationRule, Scan
from notifications.services import delivery
from notifications.services.delivery import MAX_ATTEMPTS, MAX_OF_ONE_USER, deliver
from notifications.services.gathering import forget_notifications, gather
from notifications.tasks import notify
from queues.models import Workload
from scheduler.models import Lease
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue, make_node, make_workload
from tests.http_receiver import receiving, speaking

pytestmark = pytest.mark.django_db

RULES = "/api/v1/notification-rules/"
TOLD = "/api/v1/notifications/"


def make_rule(client: SchemaClient, event: Event, **fields: Any) -> NotificationRule:
    answer = client.post(RULES, {"event": event.value, **fields})
    assert answer.status_code == 201, answer.json()
    NotificationRule.objects.filter(pk=answer.json()["id"]).update(created_at=timezone.now() - timedelta(hours=2))
    return NotificationRule.objects.get(pk=answer.json()["id"])


def make_own(cluster: Cluster, name: str = "train", user: str = "bob", **fields: Any) -> Workload:
    """A workload of a user in team-a; the times are minutes ago."""
    workload = make_workload(cluster, name, {"cpu": "1"}, namespace="team-a")
    created = {"created_at": timezone.now(), "submitted_by": user, "cluster_queue_name": "main", **fields}
    Workload.objects.filter(pk=workload.pk).update(**created)
    return Workload.objects.get(pk=workload.pk)


def give_address(client: SchemaClient) -> None:
    user = User.objects.get(username="bob")
    user.email = "bob@example.org"
    user.save()
    client.force_authenticate(user)


def ago(minutes: float) -> datetime:
    return timezone.now() - timedelta(minutes=minutes)


def titles(client: SchemaClient) -> list[str]:
    return [row["title"] for row in client.get(TOLD).json()["results"]]


def look(cluster: Cluster) -> int:
    return gather(cluster, timezone.now())


@pytest.mark.parametrize(
    ("event", "fields", "title"),
    [
        (Event.WORKLOAD_STARTED, {"status": "Admitted", "admitted_at": timezone.now}, "team-a/train has started"),
        (Event.WORKLOAD_PREEMPTED, {"last_preempted_at": timezone.now}, "team-a/train was preempted"),
        (
            Event.WORKLOAD_FAILED,
            {"status": "Finished", "finished_at": timezone.now, "reason": "Failed", "message": "exit code 1"},
            "team-a/train has failed",
        ),
    ],
)
def test_what_happens_to_my_workload_is_told_once(
    cluster: Cluster, bob: SchemaClient, charlie: SchemaClient, event: Event, fields: dict[str, Any], title: str
) -> None:
    make_rule(bob, event)
    make_rule(charlie, event)
    make_own(cluster, **{key: value() if callable(value) else value for key, value in fields.items()})
    assert [look(cluster), look(cluster)] == [1, 0]
    assert titles(bob) == [title]
    assert titles(charlie) == []


def test_a_workload_that_starts_again_is_told_again(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.WORKLOAD_STARTED)
    workload = make_own(cluster, status="Admitted", admitted_at=ago(1))
    look(cluster)
    Workload.objects.filter(pk=workload.pk).update(admitted_at=timezone.now())
    assert look(cluster) == 1
    assert len(titles(bob)) == 2


def test_a_success_is_no_failure(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.WORKLOAD_FAILED)
    make_own(cluster, status="Finished", finished_at=timezone.now(), reason="Succeeded")
    assert look(cluster) == 0


def test_what_was_before_the_rule_is_no_news(cluster: Cluster, bob: SchemaClient) -> None:
    make_own(cluster, status="Admitted", admitted_at=ago(1))
    bob.post(RULES, {"event": "WorkloadStarted"})
    assert look(cluster) == 0


def test_a_wait_is_told_when_it_is_longer_than_the_rule_says(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.WORKLOAD_WAITS, minutes=10)
    make_own(cluster, "short", created_at=ago(9))
    make_own(cluster, "long", created_at=ago(11), message="No quota is free.")
    make_own(cluster, "held", created_at=ago(11), active=False)
    make_own(cluster, "preempted-lately", created_at=ago(60), evicted_at=ago(2))
    assert [look(cluster), look(cluster)] == [1, 0]
    row = bob.get(TOLD).json()["results"][0]
    assert row["title"] == "team-a/long has waited for more than 10 min"
    assert row["message"] == "No quota is free."
    assert row["path"] == "/workloads/team-a/long"


def test_a_starved_queue_is_told_when_it_begins_and_again_after_it_ended(cluster: Cluster, alice: SchemaClient) -> None:
    make_cluster_queue(cluster)
    make_rule(alice, Event.QUEUE_STARVED, minutes=10, cluster_queue="main")
    make_own(cluster, created_at=ago(20))
    assert [look(cluster), look(cluster)] == [1, 0]
    served = make_own(cluster, "other", status="Admitted", admitted_at=ago(1))
    assert look(cluster) == 0
    assert alice.get(TOLD).json()["results"][0]["ended_at"] is not None
    served.delete()
    assert look(cluster) == 1
    assert titles(alice) == ["The queue main has admitted no workload for 10 min"] * 2


def test_a_queue_that_the_user_may_not_see_is_not_told(cluster: Cluster, charlie: SchemaClient) -> None:
    make_cluster_queue(cluster)
    make_rule(charlie, Event.QUEUE_STARVED, minutes=10)
    make_own(cluster, created_at=ago(20))
    assert look(cluster) == 0


def test_a_device_that_fails_is_told_until_it_is_healthy(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.DEVICE_FAILED)
    device = Device.objects.create(node=make_node(cluster, "n1"), uuid="GPU-1", index=3, slots=1, memory_mib=100)
    assert look(cluster) == 0
    Device.objects.filter(pk=device.pk).update(healthy=False)
    assert [look(cluster), look(cluster)] == [1, 0]
    assert titles(bob) == ["GPU 3 of n1 is unhealthy"]


def test_a_scheduler_that_is_silent_is_told(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.SCHEDULER_SILENT, minutes=1)
    Lease.objects.create(cluster=cluster, renewed_at=timezone.now())
    assert look(cluster) == 0
    Lease.objects.update(renewed_at=ago(2))
    assert [look(cluster), look(cluster)] == [1, 0]
    assert titles(bob) == ["The scheduler of cluster default is silent"]


def test_after_a_pause_what_happened_meanwhile_is_told(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.WORKLOAD_STARTED)
    Scan.objects.create(cluster=cluster, until=ago(60))
    make_own(cluster, status="Admitted", admitted_at=ago(30))
    assert look(cluster) == 1


def test_a_rule_that_is_off_tells_nothing(cluster: Cluster, bob: SchemaClient) -> None:
    rule = make_rule(bob, Event.WORKLOAD_STARTED)
    assert bob.patch(f"{RULES}{rule.pk}/", {"enabled": False}).status_code == 200
    make_own(cluster, status="Admitted", admitted_at=timezone.now())
    assert look(cluster) == 0


def test_who_has_lost_their_role_is_told_nothing(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.WORKLOAD_STARTED)
    make_own(cluster, status="Admitted", admitted_at=timezone.now())
    User.objects.filter(username="bob").update(is_active=False)
    assert look(cluster) == 0


def test_a_webhook_is_called_once(cluster: Cluster, bob: SchemaClient, settings: Any) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    settings.PUBLIC_URL = "https://kueueweb.example.org"
    with receiving() as receiver:
        make_rule(bob, Event.WORKLOAD_STARTED, channels=["webhook"], webhook_url=receiver.url)
        make_own(cluster, status="Admitted", admitted_at=timezone.now())
        notify()
        notify()
        assert len(receiver.asked) == 1
        headers, body = receiver.asked[0]
    assert headers["Content-Type"] == "application/json"
    assert b'"link":"https://kueueweb.example.org/workloads/team-a/train"' in body
    assert bob.get(TOLD).json()["results"][0]["deliveries"] == [
        {"channel": "webhook", "state": "Sent", "attempts": 1, "error": ""}
    ]


def test_a_webhook_in_a_private_network_is_not_called(cluster: Cluster, bob: SchemaClient) -> None:
    with receiving() as receiver:
        rule = make_rule(bob, Event.WORKLOAD_STARTED, channels=["webhook"], webhook_url=receiver.url)
        assert bob.post(f"{RULES}{rule.pk}/test/").status_code == 202
        assert deliver(timezone.now()) == 0
        assert receiver.asked == []
    assert "OUTGOING_NETWORKS" in Delivery.objects.get().error


def test_a_refused_webhook_is_tried_again_with_pauses_and_then_given_up(
    cluster: Cluster, bob: SchemaClient, settings: Any
) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    with receiving() as receiver:
        receiver.status = 503
        rule = make_rule(bob, Event.WORKLOAD_STARTED, channels=["webhook"], webhook_url=receiver.url)
        bob.post(f"{RULES}{rule.pk}/test/")
        now = timezone.now()
        deliver(now)
        deliver(now + timedelta(seconds=5))
        assert len(receiver.asked) == 1
        for attempt in range(10):
            deliver(now + timedelta(hours=attempt + 1))
        assert len(receiver.asked) == MAX_ATTEMPTS
    assert Delivery.objects.get().state == "Failed"


def test_what_was_being_sent_when_the_process_ended_is_not_sent_again(
    cluster: Cluster, bob: SchemaClient, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    give_address(bob)
    rule = make_rule(bob, Event.WORKLOAD_STARTED, channels=["mail"])
    bob.post(f"{RULES}{rule.pk}/test/")
    Delivery.objects.update(state="Sending", attempts=1)
    assert deliver(timezone.now()) == 0
    assert mail.outbox == []


def test_a_mail_is_sent_once(cluster: Cluster, bob: SchemaClient, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    give_address(bob)
    make_rule(bob, Event.WORKLOAD_FAILED, channels=["mail"])
    make_own(cluster, status="Finished", finished_at=timezone.now(), reason="Failed", message="exit code 1")
    notify()
    notify()
    assert [(sent.subject, sent.to) for sent in mail.outbox] == [("team-a/train has failed", ["bob@example.org"])]
    assert "exit code 1" in mail.outbox[0].body


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"event": "Nothing"}, "event"),
        ({"event": "WorkloadStarted", "minutes": 5}, "minutes"),
        ({"event": "DeviceFailed", "cluster_queue": "main"}, "cluster_queue"),
        ({"event": "WorkloadStarted", "channels": ["webhook"]}, "webhook_url"),
        ({"event": "WorkloadStarted", "channels": ["webhook"], "webhook_url": "file:///etc/passwd"}, "webhook_url"),
        ({"event": "WorkloadStarted", "channels": ["webhook"], "webhook_url": "http://[::1"}, "webhook_url"),
        ({"event": "WorkloadStarted", "channels": ["webhook"], "webhook_url": "http://h:99999/"}, "webhook_url"),
        ({"event": "WorkloadStarted", "channels": ["webhook"], "webhook_url": "http://a..b/"}, "webhook_url"),
        ({"event": "WorkloadStarted", "channels": ["webhook"], "webhook_url": "http://h\r\nX: y/"}, "webhook_url"),
        ({"event": "WorkloadStarted", "channels": ["mail"]}, "channels"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(bob: SchemaClient, body: dict[str, Any], field: str) -> None:
    answer = bob.post(RULES, body)
    assert answer.status_code == 400
    assert field in str(answer.json()["errors"])


def test_a_rule_is_its_users_alone(bob: SchemaClient, charlie: SchemaClient) -> None:
    rule = make_rule(bob, Event.WORKLOAD_STARTED)
    assert charlie.get(RULES).json()["results"] == []
    for answer in (charlie.patch(f"{RULES}{rule.pk}/", {}), charlie.delete(f"{RULES}{rule.pk}/")):
        assert answer.status_code == 404


def test_a_new_and_a_changed_rule_are_recorded_without_its_secret(bob: SchemaClient) -> None:
    """The URL of a chat's webhook is its password."""
    secret = "https://chat.example.com/services/T00/B00/secret"
    rule = make_rule(bob, Event.WORKLOAD_FAILED, channels=["webhook"], webhook_url=secret)
    assert bob.patch(f"{RULES}{rule.pk}/", {"enabled": False}).status_code == 200
    changed, made = AuditRecord.objects.filter(kind="NotificationRule").order_by("-id")
    assert (made.verb, changed.verb, changed.after) == ("create", "update", {"enabled": False})
    assert "secret" not in str([made.before, made.after, changed.before, changed.after])


def test_what_was_read_is_no_longer_counted(cluster: Cluster, bob: SchemaClient) -> None:
    rule = make_rule(bob, Event.WORKLOAD_STARTED)
    for _ in range(2):
        bob.post(f"{RULES}{rule.pk}/test/")
    assert bob.get(f"{TOLD}status/").json()["unread"] == 2
    bob.post(f"{TOLD}read/", {"ids": [bob.get(TOLD).json()["results"][0]["id"]]})
    assert bob.get(f"{TOLD}status/").json()["unread"] == 1
    bob.post(f"{TOLD}read/", {})
    assert bob.get(f"{TOLD}status/").json()["unread"] == 0


def test_old_notifications_are_forgotten_and_states_that_hold_are_not(cluster: Cluster, bob: SchemaClient) -> None:
    rule = make_rule(bob, Event.SCHEDULER_SILENT)
    look(cluster)
    bob.post(f"{RULES}{rule.pk}/test/")
    Notification.objects.filter(key__startswith="test").update(ended_at=timezone.now())
    forget_notifications(timezone.now() + timedelta(days=1))
    assert titles(bob) == ["The scheduler of cluster default is silent"]


@pytest.mark.django_db(transaction=True)
def test_two_workers_tell_once_and_send_once(cluster: Cluster, bob: SchemaClient, settings: Any) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    barrier = threading.Barrier(2)

    def work() -> None:
        barrier.wait()
        for _ in range(3):
            notify()
        connection.close()

    with receiving() as receiver:
        make_rule(bob, Event.WORKLOAD_STARTED, channels=["webhook"], webhook_url=receiver.url)
        for index in range(5):
            make_own(cluster, f"train-{index}", status="Admitted", admitted_at=timezone.now())
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(receiver.asked) == 5
    assert Notification.objects.count() == 5


@pytest.mark.django_db(transaction=True)
def test_a_worker_leaves_a_cluster_that_another_looks_at(cluster: Cluster, bob: SchemaClient) -> None:
    make_rule(bob, Event.SCHEDULER_SILENT)
    Scan.objects.create(cluster=cluster, until=timezone.now())
    told: list[int] = []

    def work() -> None:
        told.append(look(cluster))
        connection.close()

    with transaction.atomic():
        Scan.objects.select_for_update().get(cluster=cluster)
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert told == [0]


def test_tests_are_counted(bob: SchemaClient, charlie: SchemaClient) -> None:
    """Each is stored and sent: without a limit one user could fill the table and call others as often as they like."""
    rule = make_rule(bob, Event.WORKLOAD_STARTED)
    statuses = [bob.post(f"{RULES}{rule.pk}/test/").status_code for _ in range(11)]
    assert statuses == [202] * 10 + [429]
    other = make_rule(charlie, Event.WORKLOAD_STARTED)
    assert charlie.post(f"{RULES}{other.pk}/test/").status_code == 202


def order_a_test(client: SchemaClient, url: str, times: int = 1) -> None:
    """What a rule has sent when its user asks for a test."""
    rule = make_rule(client, Event.WORKLOAD_STARTED, channels=["webhook"], webhook_url=url)
    for _ in range(times):
        assert client.post(f"{RULES}{rule.pk}/test/").status_code == 202


def test_a_receiver_that_never_ends_its_answer_keeps_nobody_else_waiting(
    cluster: Cluster, bob: SchemaClient, charlie: SchemaClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The push worker has four threads: who could keep them busy would stop every Job of every tenant."""
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(delivery, "_TIMEOUT_SECONDS", 3.0)  # of the slow receiver; the other one answers at once
    monkeypatch.setattr(delivery, "_PATIENCE_SECONDS", 0.4)
    with speaking(b"HTTP/1.1 200 OK\r\n", drip=b"a") as slow, receiving() as receiver:
        order_a_test(bob, slow, times=3)
        order_a_test(charlie, receiver.url)
        assert deliver(timezone.now()) == 1
        assert len(receiver.asked) == 1
    assert sorted(Delivery.objects.filter(target=slow).values_list("attempts", flat=True)) == [0, 0, 1]


def test_what_one_user_is_told_by_the_hundred_keeps_nobody_else_waiting(
    cluster: Cluster, bob: SchemaClient, charlie: SchemaClient, settings: Any
) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    with receiving() as many, receiving() as one:
        order_a_test(bob, many.url)
        told = Notification.objects.get()
        for number in range(MAX_OF_ONE_USER + 5):
            row = Notification.objects.create(
                user=told.user, cluster=cluster, event=told.event, key=str(number), title="more", path="/", at=told.at
            )
            Delivery.objects.create(notification=row, channel="webhook", target=many.url, next_at=told.at)
        order_a_test(charlie, one.url)
        assert deliver(timezone.now()) == MAX_OF_ONE_USER + 1
        assert (len(many.asked), len(one.asked)) == (MAX_OF_ONE_USER, 1)
        assert deliver(timezone.now()) == 6


@pytest.mark.django_db(transaction=True)
def test_one_worker_sends_at_a_time(cluster: Cluster, bob: SchemaClient, settings: Any) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    with receiving() as receiver:
        order_a_test(bob, receiver.url)
        receiver.hang.clear()
        sent: list[int] = []

        def work() -> None:
            sent.append(deliver(timezone.now()))
            connection.close()

        first = threading.Thread(target=work)
        first.start()
        while not receiver.asked:
            first.join(0.01)
        order_a_test(bob, receiver.url)
        assert deliver(timezone.now()) == 0
        receiver.hang.set()
        first.join()
        assert sent == [1]  # the second is due after this pass began


def test_a_receiver_that_speaks_no_http_stops_no_other(
    cluster: Cluster, bob: SchemaClient, charlie: SchemaClient, settings: Any
) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    with speaking(b"\0\0\0\r\n\r\n") as rubbish, receiving() as receiver:
        order_a_test(bob, rubbish)
        order_a_test(charlie, receiver.url)
        assert deliver(timezone.now()) == 1
        assert len(receiver.asked) == 1
    assert Delivery.objects.get(target=rubbish).state == "Pending"
