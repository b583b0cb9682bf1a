"""`manage.py demo_seed`: what it makes, that it makes it once, and where it keeps its hands off."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.models import Cluster
from accounts.services.access import access_of
from notifications.models import NotificationRule
from queues.models import ClusterQueue, LocalQueue, MultiKueueCluster

pytestmark = pytest.mark.django_db

ACCOUNTS = [{"username": name, "password": name} for name in ("admin", "researcher", "operator", "student")]


@pytest.fixture(autouse=True)
def demo(settings: Settings) -> None:
    settings.DEMO = True
    settings.DEMO_ACCOUNTS = ACCOUNTS
    settings.KUBERNETES_API_URL = "http://127.0.0.1:8001"


def test_it_makes_queues_and_accounts_once() -> None:
    call_command("demo_seed")
    call_command("demo_seed")
    assert Cluster.objects.get().simulated
    assert set(ClusterQueue.objects.values_list("name", flat=True)) == {"research", "production"}
    assert set(LocalQueue.objects.values_list("namespace", "name")) == {
        ("ai-research", "research-queue"),
        ("ai-production", "production-queue"),
    }
    assert User.objects.count() == 4


def test_it_names_the_simulated_monitors_wherever_they_are(settings: Settings) -> None:
    call_command("demo_seed")
    assert Cluster.objects.get().telemetry_urls == ["http://127.0.0.1:8001/metrics"]
    settings.KUBERNETES_API_URL = "http://simulated-cluster:8001/"
    call_command("demo_seed")
    assert Cluster.objects.get().telemetry_urls == ["http://simulated-cluster:8001/metrics"]


def test_tenants_may_submit_in_their_own_namespace_only() -> None:
    call_command("demo_seed")
    researcher = access_of(User.objects.get(username="researcher"))
    assert researcher.may("submit", "Job", "ai-research")
    assert not researcher.may("view", "Job", "ai-production")
    assert not researcher.is_cluster_admin


def test_a_password_that_was_changed_stays_so() -> None:
    call_command("demo_seed")
    admin = User.objects.get(username="admin")
    admin.set_password("another one")
    admin.save()
    call_command("demo_seed")
    admin.refresh_from_db()
    assert admin.check_password("another one")


def test_a_database_of_a_real_cluster_is_left_alone() -> None:
    Cluster.objects.create(name="default")
    with pytest.raises(CommandError, match="does not belong to a demo"):
        call_command("demo_seed")
    assert not User.objects.exists()


def test_it_wants_to_be_told_that_this_is_a_demo(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="DEMO=true"):
        call_command("demo_seed")


def test_a_second_cluster_runs_the_jobs_of_a_queue_of_the_first() -> None:
    for port in (8002, 8003):
        call_command("demo_seed", fleet="several", west_url=f"http://127.0.0.1:{port}")
    west = Cluster.objects.get(name="west")
    assert (west.server_url, west.telemetry_urls) == ("http://127.0.0.1:8003", ["http://127.0.0.1:8003/metrics"])
    assert (west.accepts_workloads_from, west.serves_kueue_objects) == (["default"], True)
    assert ClusterQueue.objects.filter(cluster=west).get().name == "overflow"
    assert MultiKueueCluster.objects.get().cluster_profile == "west"
    (check,) = ClusterQueue.objects.get(cluster__name="default", name="overflow").admission_checks
    assert check["name"] == "other-clusters"


def test_each_account_has_its_rules_once() -> None:
    for _ in range(2):
        call_command("demo_seed", fleet="several")
    rules = NotificationRule.objects.values_list("user__username", "event")
    assert set(rules.filter(user__username="admin")) == {("admin", "DeviceFailed"), ("admin", "DevicesIdle")}
    assert rules.count() == 8
