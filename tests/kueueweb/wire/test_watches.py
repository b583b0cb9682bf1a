"""Watches in Kubernetes' wire format: events as they happen, what was missed, and when a version is too old."""

from __future__ import annotations

import http.client
import json
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.core.cache import cache

from accounts.models import Cluster, RoleBinding
from accounts.services.tokens import create_token
from clusters.manifests import apply_manifests
from kueueweb.wire.refusals import Refusal
from kueueweb.wire.watches import recall, remember
from queues.models import ClusterQueue, Job, Workload
from queues.services.jobs import delete_jobs
from scheduler.leader.engine import Engine
from tests.kueueweb.wire.conftest import OBJECTS, TABLE, submit
from tests.users import EPOCH, make_user
from tests.web_server import listening_server

pytestmark = pytest.mark.django_db(transaction=True)

KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
JOBS: Final = "/apis/batch/v1/namespaces/team-a/jobs"
_PATIENCE: Final = 120


class Client:
    """A user of a running web process."""

    def __init__(self, server: str, name: str) -> None:
        self._server = server
        self._headers = {"Authorization": f"Bearer {create_token(make_user(name))[0]}"}

    def _open(self, path: str, headers: dict[str, str], **query: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self._server, timeout=_PATIENCE)
        connection.request("GET", f"{path}?{urlencode(query)}", headers={**self._headers, **headers})
        return connection.getresponse()

    def get(self, path: str, **query: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._open(path, {}, **query).read())
        return found

    def version(self, path: str, **query: str) -> str:
        """The version of a list."""
        return str(self.get(path, **query)["metadata"]["resourceVersion"])

    @contextmanager
    def watch(self, path: str, accept: str = "application/json", **query: str) -> Iterator[Callable[[], Any]]:
        """Reads the next event; None at the end."""
        response = self._open(path, {"Accept": accept}, watch="true", **query)
        assert response.status == 200, response.read()

        def following() -> Any:
            line = response.readline()
            return json.loads(line) if line else None

        try:
            yield following
        finally:
            response.close()


@pytest.fixture
def server(cluster: Cluster) -> Iterator[str]:
    apply_manifests(cluster, OBJECTS, user=None)
    with listening_server() as found:
        yield found


def short(event: Any) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def remove(cluster: Cluster, name: str) -> None:
    """Delete a job, as a user does."""
    delete_jobs(cluster, list(Job.objects.filter(name=name)), actor="test", now=EPOCH)
    Workload.objects.filter(job__name=name).delete()
    Job.objects.filter(name=name).delete()


def test_events_follow_a_list(cluster: Cluster, server: str) -> None:
    bob = Client(server, "bob")
    submit(cluster, "first")
    with bob.watch(JOBS, resourceVersion=bob.version(JOBS)) as following:
        submit(cluster, "second")
        added = following()
        assert short(added) == ("ADDED", "second")
        Engine(cluster, "test").run()
        assert {short(following()), short(following())} == {("MODIFIED", "first"), ("MODIFIED", "second")}
        submit(cluster, "elsewhere", "team-b")
        remove(cluster, "first")
        gone = following()
        assert short(gone) == ("DELETED", "first")
        assert gone["object"]["metadata"]["namespace"] == "team-a"
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(added["object"]["metadata"]["resourceVersion"])


def test_a_client_follows_the_pending_workloads_of_a_queue(cluster: Cluster, server: str) -> None:
    """The commands of docs/api.md: a workload that is admitted leaves the list."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
    [listed, watched] = re.findall(r'"\$URL(/apis/[^"]+)"', page)
    bob = Client(server, "bob")
    submit(cluster, "first")
    path, query = urlsplit(listed).path, dict(parse_qsl(urlsplit(listed).query))
    found = bob.get(path, **query)
    assert [item["spec"]["queueName"] for item in found["items"]] == ["main"]
    more = dict(parse_qsl(urlsplit(watched).query))
    assert more.pop("watch") == "true"
    with bob.watch(path, **{**more, "resourceVersion": found["metadata"]["resourceVersion"]}) as following:
        submit(cluster, "second")
        assert following()["type"] == "ADDED"
        Engine(cluster, "test").run()
        assert {following()["type"], following()["type"]} == {"DELETED"}


def test_watches_are_no_errors_in_the_log(cluster: Cluster, server: str, caplog: pytest.LogCaptureFixture) -> None:
    bob = Client(server, "bob")
    submit(cluster, "first")
    one = Workload.objects.get()
    with bob.watch(JOBS) as following:
        assert short(following()) == ("ADDED", "first")
    with bob.watch(f"/api/v1/workloads/team-a/{one.name}/") as following:
        assert following()["type"] == "ADDED"
    assert [record.getMessage() for record in caplog.records if record.name == "django.request"] == []


def test_what_happened_between_the_list_and_the_watch_is_told(cluster: Cluster, server: str) -> None:
    bob = Client(server, "bob")
    for name in ("stays", "goes"):
        submit(cluster, name)
    version = bob.version(JOBS, limit="1")
    submit(cluster, "comes")
    remove(cluster, "goes")
    with bob.watch(JOBS, resourceVersion=version) as following:
        assert {short(following()), short(following())} == {("ADDED", "comes"), ("DELETED", "goes")}


def test_a_watch_without_a_version_begins_with_all(cluster: Cluster, server: str) -> None:
    bob = Client(server, "bob")
    submit(cluster, "first")
    options = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    with bob.watch(JOBS, **options) as following:
        assert short(following()) == ("ADDED", "first")
        bookmark = following()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        submit(cluster, "second")
        assert short(following()) == ("ADDED", "second")


def test_a_watch_continues_from_its_last_event(cluster: Cluster, server: str) -> None:
    bob = Client(server, "bob")
    version = bob.version(JOBS)
    with bob.watch(JOBS, resourceVersion=version) as following:
        submit(cluster, "first")
        last = following()
        assert short(last) == ("ADDED", "first")
    version = last["object"]["metadata"]["resourceVersion"]
    with bob.watch(JOBS, resourceVersion=version, timeoutSeconds="1") as following:
        assert following() is None
    submit(cluster, "second")
    with bob.watch(JOBS, resourceVersion=version) as following:
        assert short(following()) == ("ADDED", "second")


def test_a_version_that_is_too_old_is_gone(cluster: Cluster, server: str) -> None:
    bob = Client(server, "bob")
    version = bob.version(JOBS)
    cache.clear()  # as after five minutes
    answer = bob.get(JOBS, watch="true", resourceVersion=version)
    assert (answer["code"], answer["reason"]) == (410, "Expired")
    assert bob.get(JOBS, watch="maybe")["code"] == 400


def test_an_object_that_no_longer_matches_is_deleted_from_the_watch(cluster: Cluster, server: str) -> None:
    alice = Client(server, "alice")
    path = f"{KUEUE}/clusterqueues"
    query = {"labelSelector": "tier=gold"}
    with alice.watch(path, resourceVersion=alice.version(path, **query), **query) as following:
        ClusterQueue.objects.filter(name="research").update(labels={"tier": "silver"})
        assert short(following()) == ("DELETED", "research")


def test_a_computed_status_is_told(cluster: Cluster, server: str) -> None:
    alice = Client(server, "alice")
    path = f"{KUEUE}/clusterqueues"
    with alice.watch(path, TABLE, resourceVersion=alice.version(path)) as following:
        submit(cluster, "first")
        Engine(cluster, "test").run()
        cells: list[Any] = []
        while cells[-1:] != [1]:
            event = following()
            assert (event["type"], event["object"]["kind"]) == ("MODIFIED", "Table")
            cells = event["object"]["rows"][0]["cells"]
        assert cells[0] == "research"


def test_a_user_whose_role_is_gone_sees_no_more(cluster: Cluster, server: str) -> None:
    bob = Client(server, "bob")
    with bob.watch(JOBS, resourceVersion=bob.version(JOBS)) as following:
        RoleBinding.objects.filter(username="bob").delete()
        submit(cluster, "secret")
        event = following()
        assert (event["type"], event["object"]["reason"]) == ("ERROR", "Forbidden")
        assert following() is None


def test_a_tenant_watches_their_own(cluster: Cluster, server: str) -> None:
    charlie = Client(server, "charlie")
    assert charlie.get(JOBS, watch="true")["code"] == 403
    path = "/apis/batch/v1/jobs"
    with charlie.watch(path, resourceVersion=charlie.version(path)) as following:
        submit(cluster, "of-others")
        submit(cluster, "mine", "team-b")
        assert short(following()) == ("ADDED", "mine")
        remove(cluster, "of-others")
        remove(cluster, "mine")
        assert short(following()) == ("DELETED", "mine")


def test_long_lists_of_a_user_make_room_for_later_ones(live_services: None) -> None:
    keys = [(str(uuid.uuid4()), "team-a", f"train-{number}") for number in range(50_000)]
    for version in range(10):
        remember(1, "question", str(version), version, keys)
    remember(2, "question", "others", 0, keys[:1])
    with pytest.raises(Refusal) as refused:
        recall("question", "0")
    assert refused.value.code == HTTPStatus.GONE
    assert recall("question", "9") == (9, keys)
    assert recall("question", "others") == (0, keys[:1])
