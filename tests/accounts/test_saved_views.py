"""Saved views of lists: each user's own, in the account and not in the browser."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from accounts.models import AuditRecord, Cluster, SavedView
from accounts.services.own_objects import SAVED_VIEWS
from accounts.services.tokens import create_token
from foundation.exceptions import AlreadyExists
from tests.api_client import SchemaClient
from tests.users import client_of, make_user

URL = "/api/v1/saved-views/"
WAITING = {"page": "workloads", "name": "waiting", "search": {"status": "Pending", "widths": "name~300"}}


@pytest.fixture
def bob(cluster: Cluster) -> SchemaClient:
    return client_of(make_user("bob"))


@pytest.fixture
def charlie(cluster: Cluster) -> SchemaClient:
    return client_of(make_user("charlie"))


def saved(client: SchemaClient, **changes: Any) -> dict[str, Any]:
    response = client.post(URL, WAITING | changes, format="json")
    assert response.status_code == 201, response.content
    row: dict[str, Any] = response.json()
    assert response.headers["Location"] == f"{URL}{row['id']}/"
    return row


@pytest.mark.django_db
def test_a_view_is_saved_listed_renamed_and_deleted(bob: SchemaClient) -> None:
    row = saved(bob)
    saved(bob, name="mine", search={"submitted_by": "bob"})
    rows = bob.get(URL, {"page": "workloads"}).json()["results"]
    assert [(found["name"], found["search"]) for found in rows] == [
        ("mine", {"submitted_by": "bob"}),
        ("waiting", WAITING["search"]),
    ]
    changed = bob.patch(f"{URL}{row['id']}/", {"name": "later", "search": {}}, format="json")
    assert (changed.json()["name"], changed.json()["search"]) == ("later", {})
    assert changed.headers["ETag"] == f'"{changed.json()["generation"]}"' == '"2"'
    assert bob.delete(f"{URL}{row['id']}/").status_code == 204
    assert [found["name"] for found in bob.get(URL).json()["results"]] == ["mine"]


@pytest.mark.django_db
def test_nobody_reads_or_changes_the_views_of_another(bob: SchemaClient, charlie: SchemaClient) -> None:
    """Also not an admin of the cluster: they are no business of others."""
    row = saved(bob)
    for client in (charlie, client_of(make_user("alice"))):
        assert client.get(URL).json()["results"] == []
        for answer in (
            client.get(f"{URL}{row['id']}/"),
            client.patch(f"{URL}{row['id']}/", {"name": "hers"}, format="json"),
            client.delete(f"{URL}{row['id']}/"),
        ):
            assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")
    saved(charlie)  # the same name, of another user
    assert SchemaClient().get(URL).status_code == 401
    assert SavedView.objects.get(pk=row["id"]).name == "waiting"


@pytest.mark.django_db
def test_a_stale_write_is_refused_with_what_the_view_is_now(bob: SchemaClient) -> None:
    row = saved(bob)
    address, stale = f"{URL}{row['id']}/", {"If-Match": '"1"'}
    assert bob.get(address).headers["ETag"] == '"1"'
    assert bob.patch(address, {"search": {"a": "b"}}, format="json", headers=stale).status_code == 200
    for answer in (
        bob.patch(address, {"name": "other"}, format="json", headers=stale),
        bob.delete(address, headers=stale),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (412, "PreconditionFailed")
        assert answer.json()["current"]["search"] == {"a": "b"}


@pytest.mark.django_db
def test_names_are_unique_and_views_are_bounded(bob: SchemaClient) -> None:
    saved(bob)
    other = saved(bob, name="other")
    for answer in (
        bob.post(URL, WAITING, format="json"),
        bob.patch(f"{URL}{other['id']}/", {"name": "waiting"}, format="json"),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (409, "AlreadyExists")
    for change, path in (
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"page": "nowhere"}, "page"),
        ({"search": {"a": 1}}, "search.a"),
        ({"search": {"a": "x" * 2049}}, "search.a"),
        ({"search": {f"p{number}": "" for number in range(41)}}, "search"),
        ({"search": {"x" * 64: ""}}, "search"),
        ({"search": []}, "search"),
    ):
        refused = bob.post(URL, WAITING | {"name": "new"} | change, format="json")
        assert refused.status_code == 400, change
        assert refused.json()["errors"][0]["path"] == path
    SavedView.objects.bulk_create(
        SavedView(user=User.objects.get(username="bob"), page="workloads", name=f"v{number}", search={})
        for number in range(SAVED_VIEWS.maximum - 2)
    )
    full = bob.post(URL, WAITING | {"name": "one more"}, format="json")
    assert (full.status_code, full.json()["reason"]) == (429, "LimitReached")


@pytest.mark.django_db
def test_a_limited_token_reads_views_and_saves_none(bob: SchemaClient) -> None:
    row = saved(bob)
    tool = SchemaClient()
    token, _ = create_token(User.objects.get(username="bob"), scope="read")
    tool.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    assert [found["name"] for found in tool.get(URL).json()["results"]] == ["waiting"]
    for answer in (
        tool.post(URL, WAITING | {"name": "other"}, format="json"),
        tool.patch(f"{URL}{row['id']}/", {"name": "other"}, format="json"),
        tool.delete(f"{URL}{row['id']}/"),
    ):
        assert answer.status_code == 403


@pytest.mark.django_db(transaction=True)
def test_twice_at_once_is_saved_once_and_recorded(cluster: Cluster) -> None:
    """Two tabs that take over the same view from the browser."""
    user = make_user("bob")
    newest = AuditRecord.objects.first()

    def save(_: int) -> bool:
        try:
            SAVED_VIEWS.save(user, {"page": "workloads", "name": "waiting", "search": {}})
        except AlreadyExists:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(save, range(4))) == [False, False, False, True]
    found = AuditRecord.objects.filter(kind="SavedView", id__gt=newest.id if newest else 0)
    assert [(record.verb, record.name) for record in found] == [("create", "waiting")]
