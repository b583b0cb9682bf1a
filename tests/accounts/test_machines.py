"""Tokens with scopes, accounts of machines, and logging in a command line through a page."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from accounts.models import AuditRecord, Cluster, Role, RoleBinding
from accounts.services.tokens import create_token
from tests.api_client import SchemaClient
from tests.users import make_user

pytestmark = pytest.mark.django_db
WORKLOAD = {"namespace": "team-a", "name": "w", "local_queue": "q", "pod_sets": [{"requests": {"cpu": "1"}}]}


@pytest.fixture(autouse=True)
def start(live_services: None) -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def tool(user: User, **limits: Any) -> SchemaClient:
    client = SchemaClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(user, 'tool', **limits)[0]}")
    return client


@pytest.mark.parametrize(
    ("scope", "reads", "submits", "administers"),
    [
        ("metrics", False, False, False),
        ("read", True, False, False),
        ("submit", True, True, False),
        ("administer", True, True, True),
    ],
)
@pytest.mark.parametrize("superuser", [False, True])
def test_a_scope_is_the_most_that_a_token_may(
    cluster: Cluster, scope: str, reads: bool, submits: bool, administers: bool, superuser: bool
) -> None:
    user = User.objects.create_superuser("root") if superuser else make_user("alice")
    client = tool(user, scope=scope)
    assert (client.get("/api/v1/workloads/").status_code == 200) is reads
    assert (client.post("/api/v1/workloads/", WORKLOAD).status_code == 201) is submits
    assert (client.put("/api/v1/resource-flavors/x/", {}).status_code == 201) is administers
    assert (client.post("/api/v1/auth/tokens/", {}).status_code == 201) is administers
    assert (client.delete("/api/v1/auth/tokens/").status_code == 204) is administers


def test_the_metrics_scope_reads_metrics_and_a_tenants_token_does_not(cluster: Cluster) -> None:
    assert tool(make_user("vera"), scope="metrics").get("/metrics").status_code == 200
    assert tool(make_user("alice"), scope="read", namespaces=["team-a"]).get("/metrics").status_code == 403
    assert tool(make_user("bob"), scope="metrics").get("/metrics").status_code == 403


def test_a_token_for_some_namespaces(cluster: Cluster) -> None:
    client = tool(make_user("alice"), namespaces=["team-a"])
    assert client.post("/api/v1/workloads/", WORKLOAD).status_code == 201
    assert client.post("/api/v1/workloads/", {**WORKLOAD, "namespace": "team-b"}).status_code in (403, 404)
    assert client.put("/api/v1/resource-flavors/x/", {}).status_code == 403
    elsewhere = tool(User.objects.get(username="alice"), namespaces=["team-z"])
    assert elsewhere.get("/api/v1/workloads/team-a/w/").status_code == 404


def test_a_token_for_some_clusters(cluster: Cluster) -> None:
    Cluster.objects.create(name="west")
    client = tool(make_user("alice"), clusters=["west"])
    assert client.get("/api/v1/workloads/?cluster=west").status_code == 200
    assert client.get("/api/v1/workloads/").status_code == 403
    assert [row["name"] for row in client.get("/api/v1/clusters/?cluster=west").json()["results"]] == ["west"]


def test_a_login_makes_a_limited_token_and_it_is_listed(alice: SchemaClient) -> None:
    made = alice.post("/api/v1/auth/tokens/", {"name": "ci", "scope": "submit", "namespaces": ["team-a"], "days": 3})
    assert made.status_code == 201, made.json()
    (row,) = alice.get("/api/v1/auth/tokens/").json()["results"]
    assert (row["name"], row["scope"], row["namespaces"]) == ("ci", "submit", ["team-a"])
    assert row["expires_at"] == made.json()["expires_at"]
    assert alice.post("/api/v1/auth/tokens/", {"scope": "everything"}).status_code == 400


def test_a_machine_has_tokens_and_roles_and_no_password(alice: SchemaClient, bob: SchemaClient) -> None:
    assert bob.post("/api/v1/service-accounts/", {"name": "robot"}).status_code == 403
    assert alice.post("/api/v1/service-accounts/", {"name": "robot"}).status_code == 201
    assert alice.post("/api/v1/service-accounts/", {"name": "bob"}).status_code == 409  # a person has the name
    assert not User.objects.get(username="robot").has_usable_password()
    made = alice.post("/api/v1/service-accounts/robot/tokens/", {"name": "prometheus", "scope": "metrics"}).json()
    robot = SchemaClient()
    robot.credentials(HTTP_AUTHORIZATION=f"Bearer {made['token']}")
    assert robot.get("/metrics").status_code == 403
    RoleBinding.objects.create(username="robot", role=Role.VIEWER)
    assert robot.get("/metrics").status_code == 200
    assert alice.delete(f"/api/v1/service-accounts/robot/tokens/{made['id']}/").status_code == 204
    assert robot.get("/metrics").status_code == 401
    assert alice.delete("/api/v1/service-accounts/robot/").status_code == 204
    assert not RoleBinding.objects.filter(username="robot").exists()
    assert alice.delete("/api/v1/service-accounts/bob/").status_code == 404  # a person is none


def test_tokens_die_with_the_password_and_the_account(cluster: Cluster) -> None:
    bob = make_user("bob")
    first = tool(bob)
    assert first.get("/api/v1/workloads/").status_code == 200
    bob.set_password("another-long-secret")
    bob.save()
    assert first.get("/api/v1/workloads/").status_code == 401
    second = tool(bob)
    bob.is_active = False
    bob.save()
    assert second.get("/api/v1/workloads/").status_code == 401


def ask(command: SchemaClient, code: str) -> Any:
    return command.post("/api/v1/auth/device/token/", {"device_code": code})


def test_a_command_line_logs_in_through_a_page(bob: SchemaClient) -> None:
    command = SchemaClient()
    asked = command.post("/api/v1/auth/device/", {"name": "laptop"}).json()
    pending = ask(command, asked["device_code"])
    assert (pending.status_code, pending.json()["reason"]) == (400, "AuthorizationPending")
    assert pending.json()["error"] == "authorization_pending"
    assert asked["verification_uri_complete"].endswith(f"/device?code={asked['user_code']}")
    typed = asked["user_code"].lower().replace("-", "")
    assert bob.get(f"/api/v1/auth/device/{typed}/").json()["name"] == "laptop"
    assert bob.post(f"/api/v1/auth/device/{typed}/", {"allow": True}).status_code == 204
    assert bob.post(f"/api/v1/auth/device/{typed}/", {"allow": True}).status_code == 404  # once
    made = ask(command, asked["device_code"])
    assert made.status_code == 201, made.json()
    assert ask(command, asked["device_code"]).json()["reason"] == "ExpiredToken"  # once
    command.credentials(HTTP_AUTHORIZATION=f"Bearer {made.json()['token']}")
    assert command.get("/api/v1/workloads/").status_code == 200
    row = AuditRecord.objects.filter(kind="Token", verb="create").first()
    assert row is not None
    assert (row.username, row.credential, row.name) == ("bob", f"device code {asked['user_code']}", "bob/laptop")


def test_a_command_that_polls_too_often_gets_an_error(live_services: None, cluster: Cluster) -> None:
    command = SchemaClient()
    asked = command.post("/api/v1/auth/device/", {}).json()
    reasons = {ask(command, asked["device_code"]).json()["reason"] for _ in range(5)}
    assert reasons == {"AuthorizationPending", "SlowDown"}
    slower = ask(command, asked["device_code"]).json()
    assert (slower["error"], slower["message"]) == ("slow_down", "Ask every 28 seconds.")  # 3, and five times 5 more


def test_a_denied_login_gives_no_token(bob: SchemaClient) -> None:
    command = SchemaClient()
    asked = command.post("/api/v1/auth/device/", {}).json()
    assert bob.post(f"/api/v1/auth/device/{asked['user_code']}/", {"allow": False}).status_code == 204
    refused = ask(command, asked["device_code"])
    assert (refused.status_code, refused.json()["error"]) == (400, "access_denied")
    row = AuditRecord.objects.filter(kind="DeviceLogin").get()
    assert (row.verb, row.name) == ("refused", "bob")
    assert "kueueweb at 127.0.0.1 asked for a token of scope administer" in row.message


def test_a_command_line_gets_the_token_that_the_page_showed(bob: SchemaClient, settings: Any) -> None:
    settings.PUBLIC_URL = "https://kueueweb.example.org"
    command = SchemaClient()
    wish = {"name": "ci", "scope": "read", "namespaces": ["team-a"], "days": 7}
    asked = command.post("/api/v1/auth/device/", wish).json()
    assert asked["verification_uri"] == "https://kueueweb.example.org/device"
    shown = bob.get(f"/api/v1/auth/device/{asked['user_code']}/").json()
    assert shown == wish | {"clusters": [], "user_code": asked["user_code"], "address": "127.0.0.1"}
    bob.post(f"/api/v1/auth/device/{asked['user_code']}/", {"allow": True})
    made = ask(command, asked["device_code"]).json()
    assert (made["scope"], made["namespaces"]) == ("read", ["team-a"])
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6) < left < timedelta(days=8)
    command.credentials(HTTP_AUTHORIZATION=f"Bearer {made['token']}")
    assert command.post("/api/v1/workloads/", WORKLOAD).status_code == 403
    assert AuditRecord.objects.filter(kind="DeviceLogin", verb="login", username="bob").exists()


def test_a_token_of_an_unknown_scope_is_not_asked_for(live_services: None, cluster: Cluster) -> None:
    assert SchemaClient().post("/api/v1/auth/device/", {"scope": "everything"}).status_code == 400


def test_an_unknown_code_is_not_found(bob: SchemaClient) -> None:
    assert bob.get("/api/v1/auth/device/BCDF-GHJK/").status_code == 404
    assert ask(SchemaClient(), "made-up").json()["reason"] == "ExpiredToken"
    assert SchemaClient().get("/api/v1/auth/device/BCDF-GHJK/").status_code == 401


def test_a_limited_token_confirms_nothing(cluster: Cluster) -> None:
    asked = SchemaClient().post("/api/v1/auth/device/", {}).json()
    reader = tool(make_user("bob"), scope="read")
    assert reader.post(f"/api/v1/auth/device/{asked['user_code']}/", {"allow": True}).status_code == 403
