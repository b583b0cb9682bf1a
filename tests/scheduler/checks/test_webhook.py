"""Admission checks that ask a URL, against a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import override_settings

from accounts.models import Cluster
from queues.models import AdmissionCheck, Workload
from queues.services.admission_checks import WEBHOOK_CONTROLLER
from scheduler.checks import webhook
from scheduler.checks.webhook import TIMEOUT, URL, ask_pending, signature
from scheduler.leader.engine import Engine
from scheduler.tasks import ask_webhook_checks
from tests.acceptance.processes import wait_for
from tests.factories import START, make_cluster, make_cluster_queue, make_workload
from tests.http_receiver import Receiver, receiving, speaking
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)

NOW = START.timestamp() + 1000


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def cluster(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """With a check whose URL has all the time that it takes."""
    cache.clear()
    for name in ("_MAX_TIMEOUT_SECONDS", "_DEFAULT_TIMEOUT_SECONDS", "_RUN_SECONDS"):
        monkeypatch.setattr(webhook, name, PATIENCE_SECONDS)
    cluster = make_cluster()
    AdmissionCheck.objects.create(
        cluster=cluster,
        name="billing",
        controller_name=WEBHOOK_CONTROLLER,
        annotations={URL: receiver.url},
        created_at=START,
    )
    make_cluster_queue(cluster, admission_checks=[{"name": "billing", "onFlavors": []}])
    make_workload(cluster, "one", submitted_by="alice")
    return cluster


@pytest.fixture
def engine(cluster: Cluster) -> Engine:
    engine = Engine(cluster, "test", clock=lambda: NOW)
    engine.run()
    assert Workload.objects.get().status == "QuotaReserved"
    return engine


def give_seconds(seconds: float) -> None:
    """Let the URL of the check have so long to answer."""
    row = AdmissionCheck.objects.get(name="billing")
    row.annotations[TIMEOUT] = str(seconds)
    row.save()


def check() -> tuple[str, str]:
    [state] = Workload.objects.get().admission_check_states
    return state["state"], state["message"]


def test_quota_is_reserved_and_the_answer_admits(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    assert ask_pending(cluster, NOW) == 1
    engine.run()
    assert check() == ("Ready", "paid")
    assert Workload.objects.get().status == "Admitted"
    headers, body = receiver.asked[0]
    told = json.loads(body)["workload"]
    assert (told["namespace"], told["name"], told["submitted_by"]) == ("team", "one", "alice")
    assert told["pod_sets"] == [
        {"name": "main", "count": 1, "flavors": {"cpu": "default-flavor"}, "resource_usage": {"cpu": "1"}}
    ]
    assert headers["X-Kueueweb-Signature"] == f"sha256={signature(headers['X-Kueueweb-Timestamp'], body)}"
    assert ask_pending(cluster, NOW + 100) == 0


def test_what_it_adds_to_pods_is_kept_and_must_be_for_the_workloads_pods(
    cluster: Cluster, engine: Engine, receiver: Receiver
) -> None:
    receiver.answer = {"state": "Ready", "pod_set_updates": [{"name": "other", "labels": {"paid": "yes"}}]}
    ask_pending(cluster, NOW)
    engine.run()
    state, message = check()
    assert state == "Pending"
    assert "pod_set_updates[0].name" in message
    receiver.answer = {"state": "Ready", "pod_set_updates": [{"name": "main", "labels": {"paid": "yes"}}]}
    ask_pending(cluster, NOW + 20)
    engine.run()
    workload = Workload.objects.get()
    assert workload.status == "Admitted"
    assert workload.admission_check_states[0]["podSetUpdates"] == [{"name": "main", "labels": {"paid": "yes"}}]


def test_the_signature_needs_the_key() -> None:
    with override_settings(ADMISSION_CHECK_SIGNING_KEY="one"):
        first = signature("1", b"{}")
        assert first != signature("2", b"{}")
    with override_settings(ADMISSION_CHECK_SIGNING_KEY="other"):
        assert first != signature("1", b"{}")


def test_rejected_deactivates(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    receiver.answer = {"state": "Rejected", "message": "no money"}
    ask_pending(cluster, NOW)
    engine.run()
    workload = Workload.objects.get()
    assert (workload.status, workload.active) == ("Pending", False)
    evicted = next(condition for condition in workload.conditions if condition["type"] == "Evicted")
    assert evicted["reason"] == "DeactivatedDueToAdmissionCheck"


def test_retry_gives_the_quota_back_for_a_while(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    receiver.answer = {"state": "Retry", "message": "later", "requeue_after_seconds": 10**9}
    ask_pending(cluster, NOW)
    engine.run()
    workload = Workload.objects.get()
    assert workload.status == "Pending"
    assert workload.requeue_at is not None
    assert check()[0] == "Pending"


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (500, b"", "500"),
        (302, b"", "302"),
        (200, b"not json", "does not have the required form"),
        (200, {"state": "Perhaps"}, "does not have the required form"),
        (200, {"state": "Ready", "message": "\0"}, "NUL"),
        (200, {"state": "Retry", "requeue_after_seconds": 10**15}, "does not have the required form"),
        (200, {"state": "Retry", "requeue_after_seconds": -1}, "does not have the required form"),
    ],
)
def test_an_invalid_answer_is_reported_and_retried(
    cluster: Cluster, engine: Engine, receiver: Receiver, status: int, answer: Any, said: str
) -> None:
    receiver.status, receiver.answer = status, answer
    assert ask_pending(cluster, NOW) == 0
    assert check()[0] == "Pending"
    assert said in check()[1]
    assert "Attempt 1" in check()[1]
    ask_pending(cluster, NOW + 1)
    assert len(receiver.asked) == 1
    ask_pending(cluster, NOW + 2)
    assert len(receiver.asked) == 2
    assert "Attempt 2" in check()[1]
    ask_pending(cluster, NOW + 5)
    assert len(receiver.asked) == 2


def test_no_answer_in_time_counts_as_none(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    receiver.hang.clear()
    give_seconds(0.5)
    assert ask_pending(cluster, NOW) == 0
    assert "no answer" in check()[1]
    assert Workload.objects.get().status == "QuotaReserved"


def test_a_silent_url_is_asked_once_and_backs_off_for_everyone(
    cluster: Cluster, engine: Engine, receiver: Receiver
) -> None:
    make_workload(cluster, "two")
    engine.run()
    receiver.hang.clear()
    give_seconds(0.5)
    assert ask_pending(cluster, NOW) == 0
    wait_for("the question", lambda: len(receiver.asked) > 0)
    assert len(receiver.asked) == 1
    receiver.hang.set()
    give_seconds(PATIENCE_SECONDS)
    assert ask_pending(cluster, NOW + 1) == 0
    assert len(receiver.asked) == 1
    assert ask_pending(cluster, NOW + 2) == 2


@pytest.mark.parametrize(
    ("words", "drip", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", b"", "the response cannot be read: SSH-2.0-OpenSSH"),
        (b"\0\r\n\r\n", b"", "the response cannot be read: ?"),
        (b"HTTP/1.1 500 \0\r\n\r\n", b"", "the answer was 500 ?"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"", "does not have the required form"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" ", "no answer: "),
    ],
)
def test_whatever_a_url_says_the_other_checks_are_asked(
    cluster: Cluster, engine: Engine, receiver: Receiver, words: bytes, drip: bytes, said: str
) -> None:
    AdmissionCheck.objects.create(
        cluster=cluster,
        name="other",
        controller_name=WEBHOOK_CONTROLLER,
        annotations={URL: receiver.url},
        created_at=START,
    )
    make_cluster_queue(cluster, "second", local_queue="second", admission_checks=[{"name": "other", "onFlavors": []}])
    make_workload(cluster, "two", queue_name="second")
    engine.run()
    with speaking(words, drip) as url:
        AdmissionCheck.objects.filter(name="billing").update(annotations={URL: url})
        give_seconds(0.5 if drip else PATIENCE_SECONDS)
        assert ask_pending(cluster, NOW) == 1
    [state] = Workload.objects.get(name="one").admission_check_states
    assert (state["state"], said in state["message"]) == ("Pending", True), state


@pytest.mark.parametrize("url", ["http://[::1/", "http://a..b/", "http://127.0.0.1:99999/", "http://h\r\nX: y/"])
def test_a_url_that_cannot_be_is_told(cluster: Cluster, engine: Engine, url: str) -> None:
    AdmissionCheck.objects.update(annotations={URL: url})
    assert ask_pending(cluster, NOW) == 0
    assert "Attempt 1 failed" in check()[1]


def test_a_url_that_hangs_keeps_one_worker_waiting(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    """Beat starts a run each two seconds, and the push worker has four threads."""
    receiver.hang.clear()

    def work() -> None:
        ask_webhook_checks()
        connection.close()

    first = threading.Thread(target=work)
    first.start()
    while first.is_alive() and not receiver.asked:
        first.join(0.01)
    ask_webhook_checks()
    assert len(receiver.asked) == 1
    receiver.hang.set()
    first.join()


def test_a_url_that_hangs_keeps_no_other_cluster_waiting(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    other = make_cluster("other")
    with receiving() as quick:
        AdmissionCheck.objects.create(
            cluster=other,
            name="billing",
            controller_name=WEBHOOK_CONTROLLER,
            annotations={URL: quick.url},
            created_at=START,
        )
        make_cluster_queue(other, admission_checks=[{"name": "billing", "onFlavors": []}])
        make_workload(other, "two")
        Engine(other, "test", clock=lambda: NOW).run()
        receiver.hang.clear()

        def work() -> None:
            ask_webhook_checks()
            connection.close()

        first = threading.Thread(target=work)
        first.start()
        while first.is_alive() and not receiver.asked:
            first.join(0.01)
        ask_webhook_checks()
        assert (len(receiver.asked), len(quick.asked)) == (1, 1)
        receiver.hang.set()
        first.join()


def test_who_was_asked_longest_ago_is_asked_first(
    cluster: Cluster, engine: Engine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster's turn is short: the rest of its workloads comes with the next turns."""
    receiver.answer = {"state": "Pending", "message": "later"}
    make_workload(cluster, "two", submitted_by="bob")
    engine.run()
    monkeypatch.setattr(webhook, "_RUN_SECONDS", 0.0)
    assert [ask_pending(cluster, NOW + minute * 60) for minute in range(3)] == [1, 1, 1]
    assert [json.loads(body)["workload"]["name"] for _, body in receiver.asked] == ["one", "two", "one"]


def test_a_check_without_a_url_says_so(cluster: Cluster, engine: Engine) -> None:
    AdmissionCheck.objects.update(annotations={URL: "file:///etc/passwd"})
    assert ask_pending(cluster, NOW) == 0
    assert "is not an http(s) URL" in check()[1]


def test_a_metadata_service_is_not_asked(cluster: Cluster, engine: Engine, receiver: Receiver) -> None:
    """Whoever may write an AdmissionCheck could have the push worker ask what only it can reach."""
    AdmissionCheck.objects.update(annotations={URL: "http://169.254.169.254/latest/meta-data/"})
    ask_pending(cluster, NOW)
    state, message = check()
    assert state == "Pending"
    assert "OUTGOING_NETWORKS" in message
    assert not receiver.asked
