"""One tenant may have so much, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from accounts.models import Cluster
from foundation.exceptions import LimitReached
from foundation.redis_client import redis_client
from queues.api.workload_input import read_workload
from queues.models import Workload
from queues.services import limits
from queues.services.limits import check_rate
from queues.services.submission import create_workloads
from tests.api_client import SchemaClient
from tests.users import alice, bob, cluster

__all__ = ["alice", "bob", "cluster"]

URL = "/api/v1/workloads/"


def document(**more: Any) -> dict[str, Any]:
    pod_sets = [{"count": 1, "requests": {"cpu": "1"}}]
    return {"namespace": "team-a", "generate_name": "w-", "local_queue": "main", "pod_sets": pod_sets, **more}


@pytest.fixture(autouse=True)
def counts_start_anew(live_services: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test begins in one minute, which is counted, and ends in the next one."""
    monkeypatch.setattr(limits, "time", SimpleNamespace(time=lambda: 1_800_000_030.0))
    _forget()
    yield
    _forget()


def _forget() -> None:
    for key in redis_client().keys("kueueweb:submissions:*"):
        redis_client().delete(key)


@pytest.mark.parametrize(
    ("setting", "whose"),
    [
        ("MAX_UNFINISHED_PER_NAMESPACE", "Namespace team-a has 2 unfinished workloads and may have 3: 2 more"),
        ("MAX_UNFINISHED_PER_LOCAL_QUEUE", "LocalQueue team-a/main has 2 unfinished workloads and may have 3"),
        ("MAX_UNFINISHED_PER_USER", "User bob has 2 unfinished workloads and may have 3"),
        ("MAX_SUBMISSIONS_PER_MINUTE", "User bob may submit 3 workloads a minute and has submitted 2"),
    ],
)
def test_more_is_too_many(bob: SchemaClient, settings: Any, setting: str, whose: str) -> None:
    setattr(settings, setting, 3)
    assert bob.post(URL, [document(), document()]).status_code == 201
    refused = bob.post(URL, [document(), document()])
    assert (refused.status_code, refused.json()["reason"]) == (429, "LimitReached")
    assert whose in refused.json()["message"]
    assert setting in refused.json()["message"]
    assert int(refused.headers["Retry-After"]) > 0
    assert Workload.objects.count() == 2
    assert bob.post(URL, [document()]).status_code == 201


def test_manifests_count_too(bob: SchemaClient, settings: Any) -> None:
    settings.MAX_SUBMISSIONS_PER_MINUTE = 1
    text = """apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: main}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
"""
    for name, status in (("one", 200), ("one", 200), ("two", 429)):
        answer = bob.generic("POST", "/api/v1/manifests/", text % name, content_type="application/yaml")
        assert answer.status_code == status, answer.content


def test_what_has_ended_does_not_count(bob: SchemaClient, settings: Any) -> None:
    settings.MAX_UNFINISHED_PER_NAMESPACE = 1
    assert bob.post(URL, document()).status_code == 201
    Workload.objects.update(status="Finished")
    assert bob.post(URL, document()).status_code == 201


def test_one_tenants_limit_is_not_anothers(alice: SchemaClient, bob: SchemaClient, settings: Any) -> None:
    settings.MAX_UNFINISHED_PER_NAMESPACE = settings.MAX_SUBMISSIONS_PER_MINUTE = 1
    assert bob.post(URL, document()).status_code == 201
    assert alice.post(URL, document(namespace="team-b")).status_code == 201


def test_workloads_without_a_submitter_have_no_limit(cluster: Cluster, settings: Any) -> None:
    settings.MAX_UNFINISHED_PER_NAMESPACE = 1
    for _ in range(2):
        create_workloads(cluster, [read_workload(document(), 0)], actor="watcher")
    assert Workload.objects.count() == 2


def test_a_new_minute_counts_from_none(settings: Any) -> None:
    settings.MAX_SUBMISSIONS_PER_MINUTE = 5
    check_rate(5, "bob", 60.0)
    with pytest.raises(LimitReached) as refusal:
        check_rate(1, "bob", 110.0)
    assert refusal.value.retry_after == 10
    check_rate(5, "bob", 120.0)


def test_without_redis_the_rate_does_not_count(settings: Any) -> None:
    settings.MAX_SUBMISSIONS_PER_MINUTE = 1
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    check_rate(5, "bob")
