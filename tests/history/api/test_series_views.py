"""`history/`: what it answers, what it refuses, and who sees what."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone

from accounts.models import Cluster
from foundation.redis_client import redis_client
from foundation.time_series import Resolution, start_of
from history.models import CountSample, QuotaSample, Scope, WorkloadSample
from history.services.sampling.gathered import SubjectKey
from history.services.sampling.sample import subject_ids
from queues.models import LocalQueue
from scheduler.live.publisher import snapshot_key
from scheduler.models import Lease
from tests.api_client import SchemaClient
from tests.users import EPOCH

URL = "/api/v1/history/"


@pytest.fixture
def now() -> datetime:
    return start_of(timezone.now(), Resolution.RAW)


@pytest.fixture
def series(cluster: Cluster, now: datetime) -> None:
    """team-a waits in queue a below cohort science, team-b in b below sales; each with as many as its name is long."""
    above = {"a": "science", "bb": "sales"}
    for namespace, queue in (("team-a", "a"), ("team-b", "bb")):
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="q", cluster_queue_name=queue, created_at=EPOCH
        )
        for scope, name in (
            (Scope.NAMESPACE, namespace),
            (Scope.CLUSTER_QUEUE, queue),
            (Scope.COHORT, above[queue]),
            (Scope.LOCAL_QUEUE, f"{namespace}/q"),
        ):
            note(cluster, now, scope, name, len(queue))
    note(cluster, now, Scope.CLUSTER, "", 3)
    queues = {name: {"cohort": cohort} for name, cohort in above.items()}
    cohorts = {name: {"parent": ""} for name in above.values()}
    Lease.objects.create(cluster=cluster, epoch=1, renewed_at=timezone.now())
    data = {"cluster_queues": queues, "cohorts": cohorts}
    redis_client().set(snapshot_key(cluster.name), orjson.dumps({"epoch": 1, "data": data}))


def note(cluster: Cluster, at: datetime, scope: Scope, name: str, pending: int) -> None:
    keys = [
        SubjectKey(scope, name),
        SubjectKey(scope, name, "pending", detail="WaitingForQuota"),
        SubjectKey(scope, name, "", "v100", "cpu"),
    ]
    ids = subject_ids(cluster.pk, keys)
    WorkloadSample.objects.create(
        subject_id=ids[keys[0]], at=at, pending=pending, pending_peak=pending, held=0, reserving=0, admitted=0
    )
    CountSample.objects.create(subject_id=ids[keys[1]], at=at, total=pending)
    QuotaSample.objects.create(subject_id=ids[keys[2]], at=at, nominal=10, used=pending, used_peak=pending)


def last(client: SchemaClient, **more: Any) -> dict[str, float | None]:
    """name -> the newest value."""
    query: dict[str, Any] = {"metric": "pending", "since": _minutes_ago(2), "step": 15, **more}
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    found = {}
    for line in response.json()["series"]:
        known = [value for value in line["values"] if value is not None]
        found[line["name"]] = known[-1] if known else None
    return found


def _minutes_ago(minutes: float) -> str:
    return (timezone.now() - timedelta(minutes=minutes)).isoformat()


def test_series_share_one_grid(alice: SchemaClient, series: None, now: datetime) -> None:
    answer = alice.get(URL, {"metric": ["pending", "used", "started", "pending_by_reason"], "scope": "cluster"}).json()
    assert answer["step"] == 15
    assert answer["times"][-1] >= int(now.timestamp())
    place = answer["times"].index(int(now.timestamp()))
    found = {(line["metric"], line["resource"], line["reason"]): line["values"][place] for line in answer["series"]}
    assert found == {
        ("pending", "", ""): 3,
        ("pending_by_reason", "", "WaitingForQuota"): 3,
        ("started", "", ""): 0,
        ("used", "cpu", ""): 3,
    }
    assert {len(line["values"]) for line in answer["series"]} == {len(answer["times"])}
    assert all(line["values"][0] is None for line in answer["series"])


# who, scope -> what they see of it: name -> pending
SEEN = {
    "alice": {
        "cluster": {"": 3},
        "cluster_queue": {"a": 1, "bb": 2},
        "cohort": {"science": 1, "sales": 2},
        "namespace": {"team-a": 1, "team-b": 2},
    },
    "bob": {
        "cluster": {"": 1},
        "cluster_queue": {"a": 1},
        "cohort": {"science": 1},
        "namespace": {"team-a": 1},
    },
    "charlie": {
        "cluster": {"": 2},
        "cluster_queue": {"bb": 2},
        "cohort": {"sales": 2},
        "namespace": {"team-b": 2},
    },
}
SEEN["vera"] = SEEN["alice"]


@pytest.mark.parametrize("who", sorted(SEEN))
def test_everybody_sees_their_own(who: str, series: None, request: pytest.FixtureRequest) -> None:
    client: SchemaClient = request.getfixturevalue(who)
    for scope, seen in SEEN[who].items():
        assert last(client, scope=scope) == seen, scope
        everybody = SEEN["alice"][scope]
        if scope != "cluster":
            assert last(client, scope=scope, name=sorted(everybody)) == seen, scope
    for queue in ("team-a/q", "team-b/q"):
        expected = SEEN[who]["namespace"].get(queue.partition("/")[0])
        assert last(client, scope="local_queue", name=queue) == ({queue: expected} if expected else {})


def test_tenants_see_the_quota_that_their_own_namespaces_use(bob: SchemaClient, series: None) -> None:
    query: dict[str, Any] = {"metric": ["used", "nominal"], "since": _minutes_ago(2), "step": 15}
    answer = bob.get(URL, query).json()
    assert [(line["metric"], line["resource"], max(filter(None, line["values"]))) for line in answer["series"]] == [
        ("used", "cpu", 1)
    ]


def test_not_for_those_without_a_role(nobody: SchemaClient, cluster: Cluster) -> None:
    assert nobody.get(URL, {"metric": "pending"}).status_code == 403
    assert SchemaClient().get(URL, {"metric": "pending"}).status_code == 401


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ({}, "metric", "Required value"),
        ({"metric": "pendng"}, "metric", "Unsupported value 'pendng'"),
        ({"metric": "pending", "scope": "galaxy"}, "scope", "galaxy"),
        ({"metric": "pending", "step": 20}, "step", "not a multiple of 15"),
        ({"metric": "pending", "step": 15, "since": _minutes_ago(60 * 48)}, "step", "Request 300 or more"),
        ({"metric": "pending", "step": 300, "since": _minutes_ago(60 * 24 * 10)}, "step", "more than 1500 steps"),
        ({"metric": "pending", "since": "2100-01-01T00:00:00Z"}, "since", "is not before"),
        ({"metric": "pending", "since": "2001-01-01T00:00:00Z"}, "since", "more than 400 days ago"),
        ({"metric": "pending", "since": "yesterday"}, "since", "RFC 3339"),
        ({"metric": "pending", "name": [str(number) for number in range(51)]}, "name", "at most 50"),
    ],
)
def test_what_is_refused_is_named(alice: SchemaClient, query: dict[str, Any], field: str, says: str) -> None:
    response = alice.get(URL, query)
    assert response.status_code == 400
    assert field in response.content.decode()
    assert says in response.content.decode()


def test_tenants_name_their_users_and_local_queues(bob: SchemaClient, cluster: Cluster) -> None:
    assert bob.get(URL, {"metric": "devices_held", "scope": "user"}).status_code == 400
