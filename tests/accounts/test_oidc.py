"""Logging in by an OpenID Connect provider: the whole flow, against one that speaks real HTTP."""

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured

from accounts.models import AuditRecord, Cluster, ExternalIdentity, Role, RoleBinding
from accounts.services.group_roles import GroupRole, apply_group_roles, read_group_roles
from tests.api_client import SchemaClient
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider, new_key, oidc_provider
from tests.patience import PATIENCE_SECONDS
from tests.users import make_user

BEGIN = "/oidc/login/"
FINISH = "/oidc/callback/"
SESSION = "/api/v1/session/"


@pytest.fixture(autouse=True)
def throttles_start_anew(live_services: None) -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def provider(cluster: Cluster, settings: Any) -> Iterator[OidcProvider]:
    with oidc_provider() as found:
        settings.OIDC_ISSUER = found.issuer
        settings.OIDC_CLIENT_ID = CLIENT_ID
        settings.OIDC_CLIENT_SECRET = CLIENT_SECRET
        yield found


def away(browser: SchemaClient, address: str = BEGIN) -> str:
    """Go to the provider and let it log in; returns the address that it sends the browser back to."""
    there = browser.get(address)
    assert there.status_code == 302, there.content
    back = requests.get(there.headers["Location"], allow_redirects=False, timeout=PATIENCE_SECONDS)
    assert back.status_code == 302, back.content
    return str(back.headers["Location"])


def come_back(browser: SchemaClient, address: str) -> str:
    """Follow the provider's redirect; returns where ours leads to."""
    parts = urlsplit(address)
    answer = browser.get(f"{parts.path}?{parts.query}")
    assert answer.status_code == 302, answer.content
    return str(answer.headers["Location"])


def log_in(address: str = BEGIN) -> tuple[SchemaClient, str]:
    browser = SchemaClient()
    return browser, come_back(browser, away(browser, address))


def roles_of(browser: SchemaClient) -> list[tuple[str, str | None]]:
    return [(row["role"], row["namespace"]) for row in browser.get(SESSION).json()["roles"]]


def last_refusal() -> AuditRecord:
    found = AuditRecord.objects.filter(verb="failed-login").first()
    assert found is not None
    return found


def test_the_first_login_makes_the_user_and_opens_a_session(provider: OidcProvider) -> None:
    provider.person |= {"email": "paula@example.org", "given_name": "Paula", "family_name": "Meier"}
    browser, target = log_in(f"{BEGIN}?next=/queues")
    assert target == "/queues"
    session = browser.get(SESSION).json()
    assert (session["authenticated"], session["user"]["username"]) == (True, "paula")
    user = User.objects.get()
    assert (user.email, user.first_name, user.last_name) == ("paula@example.org", "Paula", "Meier")
    assert not user.has_usable_password()
    identity = ExternalIdentity.objects.get()
    assert (identity.issuer, identity.subject, identity.user) == (provider.issuer, "u-1", user)


def test_the_request_has_state_nonce_and_pkce(provider: OidcProvider) -> None:
    log_in()
    (asked,) = provider.asked
    assert len(asked["state"]) >= 20
    assert len(asked["nonce"]) >= 20
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == "http://testserver/oidc/callback/"
    assert set(asked["scope"].split()) == {"openid", "profile", "email"}


def test_a_login_is_in_the_audit_with_what_it_changed(provider: OidcProvider) -> None:
    provider.person["groups"] = ["research"]
    log_in()
    found = set(AuditRecord.objects.values_list("verb", "kind", "username", "credential"))
    assert found >= {
        ("login", "Session", "paula", "oidc"),
        ("create", "User", "paula", "oidc"),
        ("create", "ExternalIdentity", "paula", "oidc"),
        ("create", "GroupMember", "paula", "oidc"),
    }


def test_groups_give_roles_and_take_them_away(provider: OidcProvider) -> None:
    for group, role in (("research", Role.SUBMITTER), ("audit", Role.AUDITOR)):
        RoleBinding.objects.create(name=group, group=group, role=role, namespace="team-a")
    provider.person["groups"] = ["research", "audit"]
    browser, _ = log_in()
    assert roles_of(browser) == [("auditor", "team-a"), ("submitter", "team-a")]
    provider.person["groups"] = ["research"]
    browser, _ = log_in()
    assert roles_of(browser) == [("submitter", "team-a")]
    del provider.person["groups"]
    browser, _ = log_in()
    assert roles_of(browser) == []
    assert User.objects.count() == 1


def test_groups_of_a_nested_claim_and_of_the_user_info(provider: OidcProvider, settings: Any) -> None:
    settings.OIDC_GROUPS_CLAIM = "realm_access.roles"
    provider.person["realm_access"] = {"roles": ["gpu"]}
    provider.in_user_info = ("realm_access", "preferred_username")
    log_in()
    assert [group.name for group in User.objects.get(username="paula").groups.all()] == ["gpu"]


def test_the_environment_gives_groups_roles(provider: OidcProvider, settings: Any) -> None:
    settings.OIDC_GROUP_ROLES = ["operators=admin", "research=submitter:team-a"]
    provider.person["groups"] = ["research", "operators"]
    browser, _ = log_in()
    assert roles_of(browser) == [("admin", None), ("submitter", "team-a")]
    settings.OIDC_GROUP_ROLES = ["research=submitter:team-a"]
    browser, _ = log_in()
    assert roles_of(browser) == [("submitter", "team-a")]


def test_bindings_of_others_stay_when_rules_go(cluster: Cluster) -> None:
    RoleBinding.objects.create(name="by-hand", group="research", role=Role.VIEWER)
    apply_group_roles(read_group_roles(["research=queue-admin:root", "a=b=viewer"]))
    assert set(RoleBinding.objects.values_list("group", "role", "cohort")) == {
        ("research", "viewer", ""),
        ("research", "queue-admin", "root"),
        ("a=b", "viewer", ""),
    }
    apply_group_roles(frozenset())
    assert list(RoleBinding.objects.values_list("name", flat=True)) == ["by-hand"]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("research", "GROUP=ROLE"),
        ("=admin", "GROUP=ROLE"),
        ("research=boss", "one of viewer, submitter, admin, queue-admin, auditor"),
        ("research=queue-admin", "research=queue-admin:COHORT"),
    ],
)
def test_a_rule_that_cannot_be_read_says_what_is_wrong(word: str, says: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=says):
        read_group_roles([word])


def test_a_rule_reads_namespaces_and_cohorts() -> None:
    assert read_group_roles(["/gpu/ops=admin:team-a"]) == {GroupRole("/gpu/ops", Role.ADMIN, "team-a")}


def test_a_person_is_known_by_the_subject_alone(provider: OidcProvider) -> None:
    log_in()
    provider.person |= {"preferred_username": "paula.married", "email": "new@example.org"}
    browser, _ = log_in()
    assert browser.get(SESSION).json()["user"]["username"] == "paula"
    provider.person = {"sub": "u-2", "preferred_username": "other", "email": "new@example.org"}
    browser, _ = log_in()
    assert browser.get(SESSION).json()["user"]["username"] == "other"


@pytest.mark.parametrize("name", ["bob", "BOB"])
def test_a_local_account_is_never_taken_over(provider: OidcProvider, name: str) -> None:
    make_user("bob")
    provider.person["preferred_username"] = name
    browser, target = log_in()
    assert target == "/login?refused=NameTaken"
    assert not browser.get(SESSION).json()["authenticated"]
    assert "u-1" in last_refusal().message  # what an admin needs to join the two
    ExternalIdentity.objects.create(issuer=provider.issuer, subject="u-1", user=User.objects.get(username="bob"))
    browser, _ = log_in()
    assert browser.get(SESSION).json()["user"]["username"] == "bob"


@pytest.mark.parametrize("name", ["", "paula meier", "p" * 151, None])
def test_a_name_that_cannot_be_ours_is_refused(provider: OidcProvider, name: str | None) -> None:
    provider.person["preferred_username"] = name
    assert log_in()[1] == "/login?refused=InvalidName"
    assert not User.objects.exists()


def test_who_was_deactivated_here_stays_out(provider: OidcProvider) -> None:
    log_in()
    User.objects.update(is_active=False)
    provider.person["groups"] = ["research"]
    browser, target = log_in()
    assert target == "/login?refused=Deactivated"
    assert not browser.get(SESSION).json()["authenticated"]
    assert (last_refusal().name, last_refusal().message) == ("paula", "Deactivated: user paula is disabled")
    assert not Group.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "of-another-login"},
        {"nonce": None},
        {"exp": int(time.time()) - 3600},
        {"aud": "another-client"},
        {"iss": "http://127.0.0.1:1/other"},
        {"sub": None},
        {"sub": ""},
    ],
    ids=lambda wrong: "-".join(f"{name}={'none' if value is None else 'wrong'}" for name, value in wrong.items()),
)
def test_an_id_token_that_is_not_for_this_login_is_refused(provider: OidcProvider, wrong: dict[str, Any]) -> None:
    provider.wrong = wrong
    browser, target = log_in()
    assert target == "/login?refused=InvalidAnswer"
    assert not browser.get(SESSION).json()["authenticated"]
    assert not User.objects.exists()


def test_an_id_token_that_another_key_signed_is_refused(provider: OidcProvider) -> None:
    provider.signing_key = new_key()
    assert log_in()[1] == "/login?refused=InvalidAnswer"


def test_a_new_key_of_the_provider_counts_at_once(provider: OidcProvider) -> None:
    log_in()
    provider.key = new_key()
    assert log_in()[1] == "/"


def test_user_info_of_another_subject_is_refused(provider: OidcProvider) -> None:
    provider.in_user_info = ("preferred_username",)
    provider.user_info_subject = "u-2"
    assert log_in()[1] == "/login?refused=InvalidAnswer"


def test_an_answer_counts_only_in_the_browser_that_asked_and_once(provider: OidcProvider) -> None:
    browser = SchemaClient()
    address = away(browser)
    thief = SchemaClient()
    assert come_back(thief, address) == "/login?refused=InvalidAnswer"
    assert come_back(browser, address.replace("state=", "state=x")) == "/login?refused=InvalidAnswer"
    assert come_back(browser, address) == "/"
    assert come_back(browser, address) == "/login?refused=InvalidAnswer"


def test_a_code_without_its_verifier_gets_nothing(provider: OidcProvider) -> None:
    """PKCE: a code that was intercepted is of no use with the verifier of another login."""
    browser = SchemaClient()
    stolen = parse_qs(urlsplit(away(browser)).query)["code"][0]
    other = SchemaClient()
    state = parse_qs(urlsplit(away(other)).query)["state"][0]
    assert come_back(other, f"{FINISH}?code={stolen}&state={state}") == "/login?refused=InvalidAnswer"


def test_who_says_no_at_the_provider_is_told_so(provider: OidcProvider) -> None:
    provider.denies = True
    assert log_in()[1] == "/login?refused=Cancelled"


def test_a_provider_that_does_not_answer_is_no_fault_of_ours(cluster: Cluster, settings: Any) -> None:
    with oidc_provider() as found:
        settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID = found.issuer, CLIENT_ID
    answer = SchemaClient().get(BEGIN)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/login?refused=Unreachable")


def test_a_provider_that_calls_itself_something_else_is_refused(provider: OidcProvider) -> None:
    provider.issuer_says = "http://127.0.0.1:1"
    assert SchemaClient().get(BEGIN).headers["Location"] == "/login?refused=Unreachable"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "queues", ""])
def test_a_login_leads_to_our_pages_only(provider: OidcProvider, target: str) -> None:
    assert log_in(f"{BEGIN}?next={target}")[1] == "/"


def test_logins_by_the_provider_are_throttled(provider: OidcProvider) -> None:
    browser = SchemaClient()
    for _ in range(60):
        browser.get(FINISH)
    assert browser.get(BEGIN).headers["Location"] == "/login?refused=Throttled"


def test_without_a_provider_there_are_no_such_addresses(cluster: Cluster) -> None:
    assert [SchemaClient().get(address).status_code for address in (BEGIN, FINISH)] == [404, 404]
    assert SchemaClient().get(SESSION).json()["login_methods"] == {"password": True, "provider": None}


def test_pages_that_manage_accounts_are_not_served(provider: OidcProvider) -> None:
    for page in ("signup", "email", "password/reset", "logout", "provider"):
        assert SchemaClient().get(f"/oidc/{page}/").status_code == 404


def test_local_accounts_may_be_switched_off(provider: OidcProvider, settings: Any) -> None:
    settings.LOCAL_LOGIN = False
    make_user("bob")
    for address in ("/api/v1/auth/login/", "/api/v1/auth/token/"):
        answer = SchemaClient().post(address, {"username": "bob", "password": "bob-secret"})
        assert answer.status_code == 403
        assert "kueueweb login" in answer.json()["message"]
    methods = SchemaClient().get(SESSION).json()["login_methods"]
    assert methods == {"password": False, "provider": {"text": "Log in with single sign-on", "url": "/oidc/login/"}}
    assert log_in()[1] == "/"
