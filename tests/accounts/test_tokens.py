"""Tokens are named, listed and revoked by their owner."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.utils import timezone
from knox.models import AuthToken

from accounts.models import Cluster, TokenDetails
from tests.api_client import SchemaClient
from tests.users import make_user

TOKEN = "/api/v1/auth/token/"
TOKENS = "/api/v1/auth/tokens/"


@pytest.fixture(autouse=True)
def throttles_start_anew(live_services: None) -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def people(cluster: Cluster) -> None:
    for name in ("bob", "charlie"):
        make_user(name)


def make_token(user: str, **more: str) -> dict[str, Any]:
    response = SchemaClient().post(TOKEN, {"username": user, "password": f"{user}-secret", **more})
    assert response.status_code == 201, response.content
    return response.json()  # type: ignore[no-any-return]  # an object


def client_with(token: dict[str, Any]) -> SchemaClient:
    client = SchemaClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token['token']}")
    return client


def test_tokens_have_names_and_are_listed_without_the_token(people: None) -> None:
    """No name and no list."""
    made = [make_token("bob", name="prometheus"), make_token("bob")]
    make_token("charlie", name="hers")
    response = client_with(made[0]).get(TOKENS)
    rows = response.json()["results"]
    assert [(row["id"], row["name"], row["expires_at"]) for row in rows] == [
        (token["id"], token["name"], token["expires_at"]) for token in reversed(made)
    ]
    assert [row["name"] for row in rows] == ["", "prometheus"]
    assert set(rows[0]) == {"id", "name", "created_at", "expires_at", "last_used_at", "scope", "namespaces", "clusters"}
    for token, row in zip(made, AuthToken.objects.filter(user__username="bob").order_by("created"), strict=True):
        for secret in (token["token"], row.token_key, row.digest):
            assert secret not in response.content.decode()


def test_the_list_has_pages_and_leaves_out_what_has_ended(people: None) -> None:
    made = [make_token("bob", name=str(number)) for number in range(4)]
    AuthToken.objects.filter(details__name="1").update(expiry=timezone.now() - timedelta(seconds=1))
    client = client_with(made[0])
    first = client.get(TOKENS, {"limit": 2}).json()
    second = client.get(TOKENS, {"limit": 2, "after": first["next"]}).json()
    assert [row["name"] for row in first["results"] + second["results"]] == ["3", "2", "0"]
    assert second["next"] is None


def test_one_token_is_revoked(people: None) -> None:
    """Only a request that carried a token could revoke it."""
    kept, lost = make_token("bob"), make_token("bob")
    assert client_with(kept).delete(f"{TOKENS}{lost['id']}/").status_code == 204
    assert client_with(lost).get(TOKENS).status_code == 401
    assert [row["id"] for row in client_with(kept).get(TOKENS).json()["results"]] == [kept["id"]]
    assert client_with(kept).delete(f"{TOKENS}{lost['id']}/").status_code == 404


def test_location_is_where_a_token_is_revoked(people: None) -> None:
    """201 had no Location."""
    client = client_with(make_token("bob"))
    by_password = SchemaClient().post(TOKEN, {"username": "bob", "password": "bob-secret"})
    for answer in (by_password, client.post(TOKENS, {"name": "ci"})):
        assert answer.status_code == 201
        assert client.delete(answer.headers["Location"]).status_code == 204


def test_a_token_of_another_user_is_not_found(people: None) -> None:
    mine, hers = make_token("bob"), make_token("charlie")
    answers = [client_with(mine).delete(f"{TOKENS}{key}/") for key in (hers["id"], uuid4())]
    assert [(answer.status_code, answer.json()["reason"]) for answer in answers] == [(404, "NotFound")] * 2
    assert client_with(hers).get(TOKENS).status_code == 200


def test_all_tokens_are_revoked_at_once(people: None) -> None:
    """After a leak, each had to be found."""
    made, hers = [make_token("bob"), make_token("bob")], make_token("charlie")
    assert client_with(made[0]).delete(TOKENS).status_code == 204
    assert [client_with(token).get(TOKENS).status_code for token in (*made, hers)] == [401, 401, 200]


def test_a_browser_manages_tokens_too(bob: SchemaClient) -> None:
    token = make_token("bob", name="laptop")
    assert [row["name"] for row in bob.get(TOKENS).json()["results"]] == ["laptop"]
    assert bob.delete(f"{TOKENS}{token['id']}/").status_code == 204
    assert bob.get(TOKENS).json() == {"results": [], "next": None}


def test_a_visitor_has_no_tokens(cluster: Cluster) -> None:
    visitor = SchemaClient()
    asked = [visitor.get(TOKENS), visitor.delete(TOKENS), visitor.delete(f"{TOKENS}{uuid4()}/")]
    assert [answer.status_code for answer in asked] == [401] * 3


@pytest.mark.parametrize("name", ["x" * 101, None, ["x"]])
def test_a_name_is_a_short_text(people: None, name: Any) -> None:
    response = SchemaClient().post(TOKEN, {"username": "bob", "password": "bob-secret", "name": name})
    assert (response.status_code, response.json()["errors"][0]["path"]) == (400, "name")
    assert not AuthToken.objects.exists()


def test_the_last_use_of_a_token_is_known_to_the_minute(people: None) -> None:
    """Nobody could tell which token is still in use."""
    used, unused = make_token("bob"), make_token("bob")
    client = client_with(used)
    noted = {row["id"]: row["last_used_at"] for row in client.get(TOKENS).json()["results"]}
    assert noted[unused["id"]] is None
    assert abs(datetime.fromisoformat(noted[used["id"]]) - timezone.now()) < timedelta(minutes=1)
    assert {row["id"]: row["last_used_at"] for row in client.get(TOKENS).json()["results"]} == noted
    TokenDetails.objects.filter(id=used["id"]).update(last_used=timezone.now() - timedelta(seconds=61))
    later = {row["id"]: row["last_used_at"] for row in client.get(TOKENS).json()["results"]}
    assert later[used["id"]] > noted[used["id"]]


def test_a_user_has_so_many_tokens_and_no_more(people: None, settings: Any) -> None:
    """No limit per user; each request looks at all tokens of its user."""
    settings.MAX_TOKENS_PER_USER = 2
    first, second = make_token("bob"), make_token("bob")
    body = {"username": "bob", "password": "bob-secret"}
    refused = SchemaClient().post(TOKEN, body)
    assert (refused.status_code, refused.json()["reason"]) == (429, "LimitReached")
    assert "MAX_TOKENS_PER_USER" in refused.json()["message"]
    assert "Retry-After" not in refused.headers
    make_token("charlie")
    AuthToken.objects.filter(details__id=first["id"]).update(expiry=timezone.now() - timedelta(seconds=1))
    assert make_token("bob")["id"] != second["id"]


@pytest.mark.parametrize("token", ["\u00ff" * 8, "", "x y", "\u00e4"])
def test_a_token_of_any_bytes_is_refused(cluster: Cluster, token: str) -> None:
    client = SchemaClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    assert client.get(TOKENS).status_code == 401
