"""Logging in and out, by session and by token; guessing is slow."""

import pickle
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken
from redis import RedisError

from accounts.models import Cluster
from foundation.redis_client import redis_client
from tests.api_client import SchemaClient
from tests.users import make_user

SESSION = "/api/v1/session/"
LOGIN = "/api/v1/auth/login/"
TOKEN = "/api/v1/auth/token/"
LOGOUT = "/api/v1/auth/logout/"
BY_PASSWORD = {"password": True, "provider": None}
CREDENTIALS = {"username": "bob", "password": "bob-secret"}


@pytest.fixture(autouse=True)
def throttles_start_anew(live_services: None) -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def site(cluster: Cluster) -> Any:
    """A browser that has asked for the session once, and so has the CSRF cookie."""
    make_user("bob")
    client = SchemaClient(enforce_csrf_checks=True)
    client.get(SESSION)
    return client


def csrf(client: SchemaClient) -> dict[str, Any]:
    return {"headers": {"X-CSRFToken": client.cookies["csrftoken"].value}}


def test_a_visitor_learns_nothing(site: SchemaClient) -> None:
    nothing: dict[str, Any] = {
        "authenticated": False,
        "user": None,
        "roles": [],
        "clusters": [],
        "login_methods": BY_PASSWORD,
    }
    assert site.get(SESSION).json() == nothing


def test_a_browser_logs_in_and_out(site: SchemaClient) -> None:
    response = site.post(LOGIN, CREDENTIALS, **csrf(site))
    assert response.status_code == 200
    expected = {
        "authenticated": True,
        "user": {"username": "bob", "is_cluster_admin": False, "may_use_admin": False},
        "roles": [{"role": "submitter", "namespace": "team-a", "cohort": None, "cluster": None}],
        "clusters": [{"name": "default", "mode": "schedule"}],
        "login_methods": BY_PASSWORD,
    }
    assert response.json() == expected
    assert site.get(SESSION).json() == expected
    assert site.get("/api/v1/workloads/").status_code == 200
    assert site.post(LOGOUT).status_code == 403  # without the CSRF header
    assert site.post(LOGOUT, **csrf(site)).status_code == 204
    assert site.get("/api/v1/workloads/").status_code == 401


def test_a_login_needs_the_csrf_header(site: SchemaClient) -> None:
    refused = site.post(LOGIN, CREDENTIALS)
    assert (refused.status_code, refused.json()["reason"]) == (403, "CsrfFailed")


def test_a_wrong_password(site: SchemaClient) -> None:
    for wrong in ({**CREDENTIALS, "password": "x"}, {**CREDENTIALS, "username": "x"}):
        refused = site.post(LOGIN, wrong, **csrf(site))
        assert (refused.status_code, refused.json()["reason"]) == (401, "InvalidCredentials")
    assert site.post(LOGIN, {"username": "bob"}, **csrf(site)).status_code == 400
    assert site.post(LOGIN, ["bob"], **csrf(site)).status_code == 400


def test_guessing_is_slow(site: SchemaClient) -> None:
    wrong = {**CREDENTIALS, "password": "x"}
    statuses = [site.post(TOKEN, wrong).status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    refused = site.post(TOKEN, CREDENTIALS)
    assert (refused.status_code, refused.json()["reason"]) == (429, "Throttled")
    assert int(refused.headers["Retry-After"]) > 0
    assert site.post(TOKEN, {"username": "someone-else", "password": "x"}).status_code == 401


def test_guessing_is_as_slow_with_forged_addresses(site: SchemaClient) -> None:
    wrong = {**CREDENTIALS, "password": "x"}
    statuses = [site.post(TOKEN, wrong, headers={"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(11)]
    assert statuses[-1] == 429


def test_guessing_is_as_slow_with_spaces_around_the_name(site: SchemaClient) -> None:
    """The login takes no notice of them."""
    wrong = [{"username": f"{' ' * number}{CREDENTIALS['username']}\t", "password": "x"} for number in range(11)]
    assert [site.post(TOKEN, each).status_code for each in wrong] == [401] * 10 + [429]


def test_guessing_from_a_whole_network_of_ipv6_is_as_slow(site: SchemaClient) -> None:
    """A customer has 2^64 addresses there: a count for each of them would be none."""
    wrong = {**CREDENTIALS, "password": "x"}
    statuses = [site.post(TOKEN, wrong, REMOTE_ADDR=f"2001:db8::{number:x}:1").status_code for number in range(11)]
    assert statuses == [401] * 10 + [429]
    assert site.post(TOKEN, wrong, REMOTE_ADDR="2001:db8:0:1::1").status_code == 401


def test_whoever_comes_through_a_unix_socket_has_no_address_and_is_counted(site: SchemaClient) -> None:
    wrong = [{"username": f"user-{number}", "password": "x"} for number in range(101)]
    statuses = [site.post(TOKEN, each, REMOTE_ADDR=None).status_code for each in wrong]
    assert statuses == [401] * 100 + [429]


def test_guessing_from_many_addresses_is_slow_too(site: SchemaClient) -> None:
    """A name has a count of its own; from where its user has been before, it does not count."""
    assert site.post(TOKEN, CREDENTIALS, REMOTE_ADDR="10.9.0.1").status_code == 201
    wrong = {**CREDENTIALS, "password": "x"}
    statuses = [site.post(TOKEN, wrong, REMOTE_ADDR=f"10.0.0.{number}").status_code for number in range(100)]
    assert statuses == [401] * 99 + [429]
    assert site.post(TOKEN, CREDENTIALS, REMOTE_ADDR="10.0.1.1").status_code == 429
    assert site.post(TOKEN, CREDENTIALS, REMOTE_ADDR="10.9.0.1").status_code == 201


def test_the_admin_has_no_login_of_its_own(client: Client, cluster: Cluster) -> None:
    """Django's has no throttle."""
    asked = client.get("/admin/queues/cluster/")
    there = client.get(asked.headers["Location"])
    assert (there.status_code, there.headers["Location"]) == (302, "/login?next=%2Fadmin%2Fqueues%2Fcluster%2F")
    assert client.get("/admin/login/?next=https://evil.example/").headers["Location"] == "/login?next=%2Fadmin%2F"
    assert client.post("/admin/login/", {"username": "admin", "password": "x"}).status_code == 405
    client.force_login(make_user("bob"))
    assert client.get("/admin/login/?next=/admin/").status_code == 403


def test_an_unused_session_ends(site: SchemaClient, settings: Any) -> None:
    """Idle for too long, or simply too old."""
    site.post(LOGIN, CREDENTIALS, **csrf(site))
    site.get(SESSION)
    assert site.cookies["sessionid"]["max-age"] == 8 * 3600
    stored = Session.objects.get()
    assert stored.expire_date - timezone.now() <= timedelta(hours=8)
    settings.SESSION_MAX_SECONDS = -1
    assert site.get(SESSION).json()["authenticated"] is False
    assert not Session.objects.exists()


def test_the_cache_holds_json_and_nothing_that_runs(site: SchemaClient) -> None:
    """A pickle in Redis was loaded, and so ran, for an anonymous request."""
    for value in (3, 1.5, "text", None, [1, {"a": True}]):
        cache.set("value", value)
        assert cache.get("value") == value
    redis_client().set(cache.make_key("value"), pickle.dumps(print))
    with pytest.raises(RedisError, match="not JSON"):
        cache.get("value")
    redis_client().set(cache.make_key(f"known-login-{sha256(b'127.0.0.1 bob').hexdigest()}"), pickle.dumps(print))
    assert site.post(TOKEN, CREDENTIALS).status_code == 503


def test_the_schema_is_for_users(site: SchemaClient) -> None:
    assert site.get("/api/v1/schema/").status_code == 401


def test_a_tool_gets_a_token(cluster: Cluster) -> None:
    make_user("bob")
    client = SchemaClient()
    body = client.post(TOKEN, CREDENTIALS).json()
    client.credentials(HTTP_AUTHORIZATION=f"Token {body['token']}")
    assert client.get(SESSION).json()["user"]["username"] == "bob"
    assert client.post(LOGOUT).status_code == 204
    assert not AuthToken.objects.exists()
    refused = client.get("/api/v1/workloads/")
    assert (refused.status_code, refused.json()["reason"]) == (401, "AuthenticationFailed")


@pytest.mark.parametrize("word", ["Token", "Bearer", "bearer"])
def test_a_token_has_an_end_and_either_word(cluster: Cluster, word: str) -> None:
    """Tokens lived forever, and `Bearer` was 401."""
    make_user("bob")
    client = SchemaClient()
    body = client.post(TOKEN, CREDENTIALS).json()
    assert timedelta(days=89) < datetime.fromisoformat(body["expires_at"]) - timezone.now() <= timedelta(days=90)
    client.credentials(HTTP_AUTHORIZATION=f"{word} {body['token']}")
    assert client.get("/api/v1/workloads/").status_code == 200
    AuthToken.objects.update(expiry=timezone.now())
    assert client.get("/api/v1/workloads/").status_code == 401


def test_a_new_password_revokes_the_tokens(cluster: Cluster) -> None:
    """A token made before `changepassword` still answered 200 after it."""
    user = make_user("bob")
    client = SchemaClient()
    token = client.post(TOKEN, CREDENTIALS).json()["token"]
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    user.set_password("another-secret-of-bob")
    user.save()
    assert client.get("/api/v1/workloads/").status_code == 401
    assert not AuthToken.objects.exists()


def test_an_account_that_is_switched_off_and_on_begins_without_tokens(cluster: Cluster) -> None:
    user = make_user("bob")
    SchemaClient().post(TOKEN, CREDENTIALS)
    for active in (False, True):
        user.is_active = active
        user.save()
    assert not AuthToken.objects.exists()


def test_a_deactivated_account(cluster: Cluster) -> None:
    user = make_user("bob")
    client = SchemaClient()
    token = client.post(TOKEN, CREDENTIALS).json()["token"]
    user.is_active = False
    user.save()
    assert client.post(TOKEN, CREDENTIALS).status_code == 401
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    assert client.get("/api/v1/workloads/").status_code == 401


def test_the_demo_shows_its_accounts(cluster: Cluster, settings: Any) -> None:
    settings.DEMO = True
    settings.DEMO_ACCOUNTS = [{"username": "admin", "password": "admin"}]
    assert SchemaClient().get(SESSION).json()["demo_accounts"] == settings.DEMO_ACCOUNTS


def test_successful_logins_are_not_throttled(site: SchemaClient) -> None:
    wrong = {**CREDENTIALS, "password": "x"}
    assert [site.post(TOKEN, CREDENTIALS).status_code for _ in range(12)] == [201] * 12
    assert [site.post(TOKEN, wrong).status_code for _ in range(9)] == [401] * 9
    assert site.post(TOKEN, CREDENTIALS).status_code == 201
    assert [site.post(TOKEN, wrong).status_code for _ in range(11)] == [401] * 10 + [429]
