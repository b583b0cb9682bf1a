"""Who edits what somebody else has changed meanwhile is told so, and takes back nothing."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from accounts.models import Cluster
from queues.models import ClusterQueue
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.patience import PATIENCE_SECONDS
from tests.users import client_of, make_user

URL = "/api/v1/cluster-queues/research/"
CREATED = {
    URL: {"cohort": "company"},
    "/api/v1/cohorts/science/": {"parent": "company"},
    "/api/v1/local-queues/team-a/main/": {"cluster_queue": "research"},
    "/api/v1/resource-flavors/v100/": {"node_labels": {"gpu": "v100"}},
}


@pytest.mark.parametrize("url", CREATED)
def test_every_answer_names_the_state_it_shows(alice: SchemaClient, cluster: Cluster, url: str) -> None:
    created = alice.put(url, CREATED[url])
    read = alice.get(url)
    assert read.headers["ETag"] == created.headers["ETag"] == f'"{read.json()["generation"]}"'

    changed = alice.patch(url, {"labels": {"a": "b"}}, headers={"If-Match": read.headers["ETag"]})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != read.headers["ETag"]
    assert changed.headers["ETag"] == alice.get(url).headers["ETag"]

    for refused in (
        alice.patch(url, {"labels": {"c": "d"}}, headers={"If-Match": read.headers["ETag"]}),
        alice.put(url, CREATED[url], headers={"If-Match": read.headers["ETag"]}),
        alice.delete(url, headers={"If-Match": read.headers["ETag"]}),
    ):
        assert refused.status_code == 412
        assert refused.headers["ETag"] == changed.headers["ETag"]
        body = refused.json()
        assert (body["reason"], body["current"]) == ("PreconditionFailed", changed.json())
        assert body["errors"][0]["path"] == "If-Match"
        assert changed.headers["ETag"] in body["errors"][0]["remedy"]
    assert alice.get(url).json() == changed.json()

    assert alice.delete(url, headers={"If-Match": changed.headers["ETag"]}).status_code == 204


def test_a_changed_quota_is_another_state(alice: SchemaClient, cluster: Cluster) -> None:
    resources = [{"name": "cpu", "nominal_quota": "4", "borrowing_limit": None, "lending_limit": None}]
    groups = [{"covered_resources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}]
    read = alice.put(URL, {"resource_groups": groups})
    resources[0]["nominal_quota"] = "8"
    assert alice.patch(URL, {"resource_groups": groups}, headers={"If-Match": "*"}).status_code == 200
    assert alice.patch(URL, {"fair_weight": "2"}, headers={"If-Match": read.headers["ETag"]}).status_code == 412


@pytest.mark.parametrize("tags", ["*", '"{0}"', 'W/"{0}"', '"0", "{0}"', '"0" ,W/"{0}" '])
def test_tags_that_match(alice: SchemaClient, cluster: Cluster, tags: str) -> None:
    generation = alice.put(URL, {}).json()["generation"]
    assert alice.patch(URL, {"fair_weight": "2"}, headers={"If-Match": tags.format(generation)}).status_code == 200


@pytest.mark.parametrize("tags", ["", "1", "W/1", '"1', '"1" "2"', '"1",', "*, *", '"a b"'])
def test_malformed_tags(alice: SchemaClient, cluster: Cluster, tags: str) -> None:
    alice.put(URL, {})
    for refused in (
        alice.patch(URL, {"fair_weight": "2"}, headers={"If-Match": tags}),
        alice.put(URL, {"fair_weight": "2"}, headers={"If-Match": tags}),
        alice.delete(URL, headers={"If-Match": tags}),
    ):
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "If-Match")
    assert alice.get(URL).json()["fair_weight"] == "1"


@pytest.mark.parametrize("tags", ["*", '"1"'])
def test_what_is_absent_matches_nothing(alice: SchemaClient, cluster: Cluster, tags: str) -> None:
    refused = alice.put(URL, {}, headers={"If-Match": tags})
    assert (refused.status_code, refused.json()["current"]) == (412, None)
    assert alice.patch(URL, {}, headers={"If-Match": tags}).status_code == 404
    assert alice.delete(URL, headers={"If-Match": tags}).status_code == 404
    assert not ClusterQueue.objects.exists()


def test_generation_in_the_body_counts(alice: SchemaClient, cluster: Cluster) -> None:
    read = alice.put(URL, {}).json()
    assert alice.put(URL, {**read, "fair_weight": "2"}).status_code == 200
    for refused in (
        alice.put(URL, {**read, "fair_weight": "3"}),
        alice.patch(URL, {"generation": read["generation"], "fair_weight": "3"}),
    ):
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (412, "generation")
    for wrong in ("1", True, 1.0):
        malformed = alice.patch(URL, {"generation": wrong, "fair_weight": "3"})
        assert (malformed.status_code, malformed.json()["errors"][0]["path"]) == (400, "generation")
    assert alice.get(URL).json()["fair_weight"] == "2"


def _together(user: User, *changes: dict[str, Any], headers: dict[str, str]) -> list[int]:
    """The statuses of patches that are sent at once, each over a connection of its own."""
    codes: list[int] = []
    ready = threading.Barrier(len(changes))

    def run(change: dict[str, Any]) -> None:
        try:
            ready.wait(timeout=PATIENCE_SECONDS)
            codes.append(client_of(user).patch(URL, change, headers=headers).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return sorted(codes)


@pytest.mark.django_db(transaction=True)
def test_of_two_writers_at_once_exactly_one_wins() -> None:
    queue = make_cluster_queue(Cluster.objects.create(name="default"), "research")
    alice = make_user("alice")
    for round_ in range(5):
        queue.refresh_from_db()
        headers = {"If-Match": f'"{queue.generation}"'}
        changes = ({"labels": {"by": f"a{round_}"}}, {"labels": {"by": f"b{round_}"}})
        assert _together(alice, *changes, headers=headers) == [200, 412]


@pytest.mark.django_db(transaction=True)
def test_patches_of_two_fields_at_once_both_count() -> None:
    queue = make_cluster_queue(Cluster.objects.create(name="default"), "research")
    alice = make_user("alice")
    for round_ in range(5):
        changes = ({"labels": {"by": f"a{round_}"}}, {"annotations": {"by": f"b{round_}"}})
        assert _together(alice, *changes, headers={}) == [200, 200]
        queue.refresh_from_db()
        assert (queue.labels["by"], queue.annotations["by"]) == (f"a{round_}", f"b{round_}")
