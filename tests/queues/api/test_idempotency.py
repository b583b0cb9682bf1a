"""A request that is sent twice with one Idempotency-Key is done once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster, KeptAnswer
from accounts.services.kept_answers import forget_answers
from queues.models import Workload
from tests.api_client import SchemaClient
from tests.patience import PATIENCE_SECONDS
from tests.users import client_of

pytestmark = pytest.mark.django_db(transaction=True)

BATCH = [{"namespace": "team-a", "generate_name": "b-", "pod_sets": [{"count": 1, "requests": {"cpu": "1"}}]}] * 3


def test_the_answer_comes_again_and_nothing_is_done_twice(bob: SchemaClient, cluster: Cluster) -> None:
    first = bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    again = bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert Workload.objects.count() == 3
    bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k2")
    assert Workload.objects.count() == 6


def test_a_key_that_is_none_is_refused_whatever_the_body(bob: SchemaClient, cluster: Cluster) -> None:
    """It was a server error where the body could not be read either: what was sent is looked up for the message."""
    for body in ("- null\n", "a: [", "{}"):
        answer = bob.generic(
            "POST", "/api/v1/workloads/", body, content_type="application/yaml", HTTP_IDEMPOTENCY_KEY="\u00fc"
        )
        assert answer.status_code == 400
        assert [mistake["path"] for mistake in answer.json()["errors"]] == ["Idempotency-Key"]


def test_another_body_under_the_key_is_a_conflict(bob: SchemaClient, cluster: Cluster) -> None:
    bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    answer = bob.post("/api/v1/workloads/", BATCH[:1], format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert answer.status_code == 409
    assert Workload.objects.count() == 3


def test_a_request_that_fails_leaves_no_key(bob: SchemaClient, cluster: Cluster) -> None:
    wrong = [{**BATCH[0], "pod_sets": []}]
    assert bob.post("/api/v1/workloads/", wrong, format="json", HTTP_IDEMPOTENCY_KEY="k1").status_code == 400
    assert not KeptAnswer.objects.exists()
    assert bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1").status_code == 201


def test_keys_belong_to_their_user(bob: SchemaClient, alice: SchemaClient, cluster: Cluster) -> None:
    bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    answer = alice.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert (answer.status_code, "Idempotency-Replayed" in answer.headers) == (201, False)


def test_of_two_at_once_one_is_done(bob: SchemaClient, cluster: Cluster) -> None:
    answers = []
    both = threading.Barrier(2)

    def post() -> None:
        client = client_of(User.objects.get(username="bob"))
        both.wait(PATIENCE_SECONDS)
        answers.append(client.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1").json())
        connection.close()

    threads = [threading.Thread(target=post) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers[0] == answers[1]
    assert Workload.objects.count() == 3


def test_a_day_later_the_key_is_new(bob: SchemaClient, cluster: Cluster) -> None:
    bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    KeptAnswer.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    answer = bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert "Idempotency-Replayed" not in answer.headers
    forget_answers(timezone.now() + timedelta(days=2))
    assert not KeptAnswer.objects.exists()


def test_a_key_that_is_none(bob: SchemaClient, cluster: Cluster) -> None:
    assert bob.post("/api/v1/workloads/", BATCH, format="json", HTTP_IDEMPOTENCY_KEY="k" * 256).status_code == 400
