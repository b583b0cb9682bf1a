"""Admins see who is here, make local accounts, switch accounts off, set groups and revoke tokens."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from accounts.models import AuditRecord, Cluster, ExternalIdentity
from accounts.services.service_accounts import create_service_account
from accounts.services.tokens import create_token
from tests.api_client import SchemaClient
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db
USERS = "/api/v1/users/"


@pytest.fixture(autouse=True)
def throttles_start_anew(live_services: None) -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def names(answer: Any) -> list[tuple[str, str]]:
    return [(row["username"], row["origin"]) for row in answer.json()["results"]]


def test_the_list_says_where_each_comes_from(alice: SchemaClient) -> None:
    create_service_account("robot")
    paula = make_user("paula")
    ExternalIdentity.objects.create(issuer="https://login.company.org", subject="1", user=paula)
    assert names(alice.get(USERS)) == [("alice", "local"), ("paula", "provider"), ("robot", "machine")]
    assert names(alice.get(f"{USERS}?search=AUL")) == [("paula", "provider")]


def test_an_admin_makes_a_local_account_that_can_log_in(alice: SchemaClient) -> None:
    made = alice.post(USERS, {"username": "dora", "password": "a-long-and-odd-one-7", "email": "dora@example.org"})
    assert made.status_code == 201
    assert made.headers["Location"] == "/api/v1/users/dora/"
    assert "password" not in made.json()
    token = SchemaClient().post("/api/v1/auth/token/", {"username": "dora", "password": "a-long-and-odd-one-7"})
    assert token.status_code == 201
    assert alice.post(USERS, {"username": "DORA", "password": "a-long-and-odd-one-7"}).status_code == 409


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"username": "dora", "password": "12345678"}, "password"),
        ({"username": "dora meier", "password": "a-long-and-odd-one-7"}, "username"),
        ({"username": "dora"}, "password"),
        ({"username": "dora", "password": "a-long-and-odd-one-7", "email": "nowhere"}, "email"),
    ],
)
def test_an_account_that_cannot_be_made_says_why(alice: SchemaClient, body: dict[str, str], path: str) -> None:
    answer = alice.post(USERS, body)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]
    assert "12345678" not in answer.content.decode()


def test_who_is_switched_off_is_out_and_has_no_tokens(alice: SchemaClient) -> None:
    bob = make_user("bob")
    tool = SchemaClient()
    tool.credentials(HTTP_AUTHORIZATION=f"Token {create_token(bob, 'laptop')[0]}")
    assert tool.get("/api/v1/workloads/").status_code == 200
    assert alice.patch(f"{USERS}bob/", {"is_active": False}).json()["is_active"] is False
    assert tool.get("/api/v1/workloads/").status_code == 401
    assert alice.get(f"{USERS}bob/tokens/").json()["results"] == []
    assert alice.patch(f"{USERS}bob/", {"is_active": True}).json()["is_active"] is True
    assert tool.get("/api/v1/workloads/").status_code == 401
    assert AuditRecord.objects.filter(kind="User", name="bob", verb="update").count() == 2


def test_groups_are_replaced(alice: SchemaClient) -> None:
    make_user("bob")
    assert alice.patch(f"{USERS}bob/", {"groups": ["b", "a", "a"]}).json()["groups"] == ["a", "b"]
    assert alice.patch(f"{USERS}bob/", {"groups": ["c"]}).json()["groups"] == ["c"]


def test_what_the_provider_says_is_not_changed_here(alice: SchemaClient) -> None:
    ExternalIdentity.objects.create(issuer="https://login.company.org", subject="1", user=make_user("paula"))
    for body in ({"groups": ["ops"]}, {"password": "a-long-and-odd-one-7"}):
        answer = alice.patch(f"{USERS}paula/", body)
        assert answer.status_code == 400
        assert [error["path"] for error in answer.json()["errors"]] == list(body)


def test_a_new_password_revokes_tokens(alice: SchemaClient) -> None:
    create_token(make_user("bob"), "laptop")
    assert len(alice.get(f"{USERS}bob/tokens/").json()["results"]) == 1
    assert alice.patch(f"{USERS}bob/", {"password": "a-long-and-odd-one-7"}).status_code == 200
    assert alice.get(f"{USERS}bob/tokens/").json()["results"] == []


def test_one_token_of_a_user_is_revoked(alice: SchemaClient) -> None:
    bob = make_user("bob")
    _, first = create_token(bob, "laptop")
    create_token(bob, "ci")
    assert alice.delete(f"{USERS}bob/tokens/{first.pk}/").status_code == 204
    assert [row["name"] for row in alice.get(f"{USERS}bob/tokens/").json()["results"]] == ["ci"]
    assert alice.delete(f"{USERS}bob/tokens/{first.pk}/").status_code == 404


def test_an_admin_by_role_changes_no_superuser_and_not_their_own_state(alice: SchemaClient, cluster: Cluster) -> None:
    root = User.objects.create_superuser("root", password="root-secret")
    changes: tuple[dict[str, Any], ...] = ({"password": "a-long-and-odd-one-7"}, {"is_active": False}, {"groups": []})
    for body in changes:
        assert alice.patch(f"{USERS}root/", body).status_code == 403
    assert alice.patch(f"{USERS}alice/", {"is_active": False}).status_code == 403
    assert client_of(root).patch(f"{USERS}alice/", {"is_active": False}).status_code == 200


def test_a_user_that_is_not_there_is_not_found(alice: SchemaClient) -> None:
    assert alice.get(f"{USERS}nobody/").status_code == 404
    assert alice.patch(f"{USERS}nobody/", {"is_active": False}).status_code == 404
    assert alice.get(f"{USERS}nobody/tokens/").status_code == 404
