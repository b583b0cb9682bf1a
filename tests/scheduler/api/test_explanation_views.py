"""`workloads/{namespace}/{name}/explanation/` and `manage.py explain`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import StringIO
from typing import Any, Final

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Cluster
from queues.models import ClusterQueue, Cohort, LocalQueue, StartEstimate, Workload, WorkloadPriorityClass
from scheduler.leader.engine import Engine
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_cohort, make_namespace, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def contended(cluster: Cluster) -> Cluster:
    """team-a and team-b have a queue with 4 cpu each in one cohort; team-b runs 7, and team-a waits for 3."""
    make_cohort(cluster, "all")
    for namespace in ("team-a", "team-b"):
        quotas = {"default-flavor": {"cpu": 4000}}
        queue = make_cluster_queue(cluster, f"queue-{namespace}", quotas, local_queue="", cohort_name="all")
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name="main", cluster_queue_name=queue.name, created_at=START
        )
    make_workload(cluster, "big", {"cpu": "7"}, namespace="team-b", queue_name="main")
    Engine(cluster, "test", clock=lambda: START.timestamp() + 1000).run()
    make_workload(cluster, "first", {"cpu": "3"}, namespace="team-a", queue_name="main", priority=1)
    make_workload(cluster, "second", {"cpu": "3"}, namespace="team-a", queue_name="main")
    make_workload(cluster, "rival", {"cpu": "3"}, namespace="team-b", queue_name="main", priority=9)
    return cluster


ADDRESS = "/api/v1/workloads/team-a/second/explanation/"


def test_an_admin_reads_who_holds_it_and_who_is_ahead(contended: Cluster, alice: SchemaClient) -> None:
    body = alice.get(ADDRESS).json()
    assert (body["state"], body["rule"], body["reason"]) == ("Waits", "Quota", "WaitingForQuota")
    (flavor,) = body["flavors"]
    assert flavor["resources"] == [
        {
            "resource": "cpu",
            "asked": 3000,
            "nominal": 4000,
            "used": 0,
            "borrowable": 0,
            "free": 1000,
            "lacking": 2000,
            "maximum": 8000,
            "deserved": None,
        }
    ]
    assert (body["position"], body["waiting"], body["strict"]) == (2, 2, False)
    assert [other["workload"] for other in body["ahead"]] == ["team-a/first"]
    assert [other["workload"] for other in body["contenders"]] == []  # it borrows: the other goes first
    assert [(row["cluster_queue"], row["used"], row["borrowed"]) for row in body["queue_holders"]] == [
        ("queue-team-b", 7000, 3000)
    ]
    assert [(row["workload"], row["amount"]) for row in body["workload_holders"]] == [("team-b/big", 7000)]


def test_a_tenant_reads_the_numbers_of_others_without_their_names(contended: Cluster, bob: SchemaClient) -> None:
    body = bob.get(ADDRESS).json()
    assert [other["workload"] for other in body["ahead"]] == ["team-a/first"]
    assert [(row["cluster_queue"], row["used"]) for row in body["queue_holders"]] == [("", 7000)]
    assert [(row["workload"], row["cluster_queue"], row["amount"]) for row in body["workload_holders"]] == [
        ("", "", 7000)
    ]
    assert "team-b" not in json.dumps(body)


def test_users_who_may_not_see_it_get_not_found(contended: Cluster, charlie: SchemaClient, alice: SchemaClient) -> None:
    assert charlie.get(ADDRESS).status_code == 404
    assert alice.get("/api/v1/workloads/team-a/none/explanation/").status_code == 404


def test_devices(cluster: Cluster, alice: SchemaClient) -> None:
    gpu, memory = "nvidia.com/gpu", "nvidia.com/gpumem"
    make_cluster_queue(cluster, quotas={"default-flavor": {gpu: 10, memory: 1_000_000}})
    make_namespace(cluster, "team")
    make_node(cluster, "n1", [{}, {}])
    make_node(cluster, "n2", [{"memory_mib": 40_000}], ready=False)
    make_workload(cluster, "w", {gpu: "1", memory: "20000"})
    body = alice.get("/api/v1/workloads/team/w/explanation/").json()
    assert (body["state"], body["rule"]) == ("Waits", "Devices")
    nodes = body["flavors"][0]["nodes"]
    assert (nodes["nodes"], nodes["nearest_node"]) == (2, "n1")
    assert {(row["reason"], row["nodes"], row["devices"]) for row in nodes["refused"]} == {
        ("CardInsufficientMemory", 1, 2),
        ("NodeNotReady", 1, 0),
    }


def test_one_that_runs_or_has_ended_waits_for_nothing(contended: Cluster, alice: SchemaClient) -> None:
    assert alice.get("/api/v1/workloads/team-b/big/explanation/").json()["state"] == "HoldsQuota"
    finished = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    Workload.objects.filter(name="big").update(status="Finished", finished_at=START, conditions=[finished])
    assert alice.get("/api/v1/workloads/team-b/big/explanation/").json()["reason"] == "Finished"


def test_the_command(contended: Cluster) -> None:
    out = StringIO()
    call_command("explain", "team-a/second", stdout=out)
    text = out.getvalue()
    assert "Waits, decided by Quota" in text
    assert "cpu: 3 requested, 1 free, 2 lacking (0 of 4 used)" in text
    assert "team-b/big (queue-team-b) holds 7 of cpu in default-flavor" in text
    out = StringIO()
    call_command("explain", "team-a/second", "--json", stdout=out)
    assert json.loads(out.getvalue())["position"] == 2
    with pytest.raises(CommandError, match="No unfinished workload team-a/none"):
        call_command("explain", "team-a/none")


def test_the_command_tries_what_would_start_it(contended: Cluster) -> None:
    before = list(Workload.objects.order_by("pk").values("name", "status", "generation"))
    WorkloadPriorityClass.objects.create(cluster=contended, name="high", value=100, created_at=START)
    nominal = {"first": 6000, "second": 12_000}  # two others go before the second one
    for name, cpu in nominal.items():
        out = StringIO()
        call_command("explain", f"team-a/{name}", "--remedies", "--json", stdout=out)
        answer = json.loads(out.getvalue())
        assert (answer["starts_now"], answer["complete"]) == (False, True)
        found = {(remedy["kind"], remedy["field"], remedy["subject"]): remedy for remedy in answer["remedies"]}
        assert found["Quota", "nominalQuota", "ClusterQueue queue-team-a: default-flavor"]["after"] == {"cpu": cpu}
    out = StringIO()
    call_command("explain", "team-a/first", "--remedies", stdout=out)
    assert "The workload would start at once: if these workloads end: team-b/big" in out.getvalue()
    assert list(Workload.objects.order_by("pk").values("name", "status", "generation")) == before


def test_the_factors_of_a_multifactor_priority(contended: Cluster, alice: SchemaClient) -> None:
    weights = {"class": 1000, "resources": {"cpu": 800}}
    ClusterQueue.objects.filter(name="queue-team-a").update(priority_weights=weights)
    Workload.objects.filter(name="second").update(annotations={"kueueweb.io/nice": "50"})
    body = alice.get("/api/v1/workloads/team-a/first/explanation/").json()["factors"]
    assert (body["priority"], round(body["qos"]), body["resources"]) == (411, 111, {"cpu": pytest.approx(300)})
    body = alice.get(ADDRESS).json()["factors"]
    assert (body["priority"], body["qos"], body["nice"]) == (250, 0, 50)
    out = StringIO()
    call_command("explain", "team-a/second", stdout=out)
    assert "Priority 250: age 0, fair share 0, job size 0, queue 0, class 0, cpu 300, nice -50\n" in out.getvalue()


LONG: Final = timedelta(days=20_000)
"""A time limit that is not over at any time of a test run."""


@pytest.fixture
def planned(contended: Cluster) -> Cluster:
    """A queue with backfill: `big` declares when it ends, `huge` of team-b is planned then, and `late` of
    team-a would delay it."""
    ClusterQueue.objects.update(backfill="easy")
    Workload.objects.filter(name="big").update(maximum_execution_seconds=LONG.total_seconds())
    Workload.objects.exclude(name="big").delete()
    LocalQueue.objects.create(
        cluster=contended, namespace="team-a", name="shared", cluster_queue_name="queue-team-b", created_at=START
    )
    make_workload(contended, "huge", {"cpu": "8"}, namespace="team-b", queue_name="main", priority=9)
    make_workload(contended, "late", {"cpu": "1"}, namespace="team-a", queue_name="shared")
    Engine(contended, "test", clock=lambda: START.timestamp() + 1060).run()
    return contended


def test_a_planned_start_and_the_one_that_would_delay_it(planned: Cluster, alice: SchemaClient) -> None:
    at = Workload.objects.get(name="big").admitted_at
    assert at is not None
    plan = {
        "workload": "team-b/huge",
        "cluster_queue": "queue-team-b",
        "starts_at": f"{at + LONG:%Y-%m-%dT%H:%M:%SZ}",
        "quota": [{"flavor": "default-flavor", "resource": "cpu", "amount": 8000}],
    }
    body = alice.get("/api/v1/workloads/team-b/huge/explanation/").json()
    assert (body["planned_start"], body["would_delay"]) == (plan, None)
    body = alice.get("/api/v1/workloads/team-a/late/explanation/").json()
    assert (body["rule"], body["reason"]) == ("PlannedStart", "WaitingForPlannedStart")
    assert (body["planned_start"], body["would_delay"]) == (None, plan)
    for name, start in (
        ("team-b/huge", "Planned start: "),
        ("team-a/late", "Would delay the planned start of team-b/huge: "),
    ):
        out = StringIO()
        call_command("explain", name, stdout=out)
        assert f"{start}{plan['starts_at']}, with 8 of cpu in default-flavor\n" in out.getvalue()


def test_a_tenant_reads_the_time_that_it_would_delay_without_the_name(planned: Cluster, bob: SchemaClient) -> None:
    body = bob.get("/api/v1/workloads/team-a/late/explanation/").json()
    assert (body["would_delay"]["workload"], len(body["would_delay"]["quota"])) == ("", 1)
    assert "huge" not in json.dumps(body)
    told = bob.get("/api/v1/workloads/team-a/late/").json()
    assert told["reason"] == "WaitingForPlannedStart"
    assert "would delay the planned start of a workload" in told["message"]
    assert "huge" not in json.dumps(told)


def test_the_quota_that_a_queue_deserves_by_a_sharing_policy(contended: Cluster, alice: SchemaClient) -> None:
    Cohort.objects.update(sharing_policy="proportion")
    (flavor,) = alice.get(ADDRESS).json()["flavors"]
    (need,) = flavor["resources"]
    assert (need["nominal"], need["deserved"], need["used"]) == (4000, 4000, 0)
    ClusterQueue.objects.filter(name="queue-team-b").update(fair_sharing_weight="3")
    (need,) = alice.get(ADDRESS).json()["flavors"][0]["resources"]
    assert (need["nominal"], need["deserved"], need["lacking"]) == (2000, 2000, 2000)
    out = StringIO()
    call_command("explain", "team-a/second", stdout=out)
    assert "2 lacking (0 used, 2 deserved by the cohort's sharing policy)" in out.getvalue()


def estimate(name: str, *, age_seconds: float = 20, **fields: Any) -> StartEstimate:
    """A studio's estimate: from 5 to 20 minutes, probably 8."""
    made_at = timezone.now() - timedelta(seconds=age_seconds)
    at = {f"p{part}_at": made_at + timedelta(minutes=minutes) for part, minutes in ((10, 5), (50, 8), (90, 20))}
    workload = Workload.objects.get(name=name)
    return StartEstimate.objects.create(workload=workload, made_at=made_at, compared=40, **at | fields)


def expected_of(client: SchemaClient, name: str = "second") -> Any:
    """The estimate of a workload: the same in its explanation, its row of the list and its page."""
    explained = client.get(ADDRESS.replace("second", name)).json()["expected_start"]
    [row] = client.get(f"/api/v1/workloads/?namespace=team-a&search={name}").json()["results"]
    assert row["expected_start"] == explained
    assert client.get(f"/api/v1/workloads/team-a/{name}/").json()["expected_start"] == explained
    return explained


def test_a_start_is_expected_between_two_times(contended: Cluster, alice: SchemaClient) -> None:
    made = estimate("second")
    expected = expected_of(alice)
    times = [datetime.fromisoformat(expected[name]) for name in ("p10_at", "p50_at", "p90_at", "made_at")]
    assert times == [made.p10_at, made.p50_at, made.p90_at, made.made_at]
    assert (expected["reason"], expected["message"], expected["compared"]) == ("", "", 40)


def test_without_an_estimate_the_reason_is_said(contended: Cluster, alice: SchemaClient) -> None:
    assert expected_of(alice)["reason"] == "NotEstimated"
    row = estimate("second", unknown="NoRunEnded", p10_at=None, p50_at=None, p90_at=None)
    expected = expected_of(alice)
    assert (expected["p50_at"], expected["reason"]) == (None, "NoRunEnded")
    assert expected["message"] == "Too few workloads have ended to estimate run times."
    Workload.objects.filter(name="second").update(active=False)
    assert expected_of(alice)["reason"] == "NotQueued"
    Cluster.objects.update(mode="observe")
    assert expected_of(alice)["reason"] == "DecidedElsewhere"
    row.delete()


def test_an_estimate_is_shown_for_ten_minutes_after_the_studio_died(contended: Cluster, alice: SchemaClient) -> None:
    row = estimate("second", age_seconds=590)
    assert expected_of(alice)["p50_at"] is not None
    StartEstimate.objects.filter(pk=row.pk).update(made_at=timezone.now() - timedelta(seconds=601))
    expected = expected_of(alice)
    assert (expected["p50_at"], expected["reason"]) == (None, "Outdated")
    assert expected["made_at"] is not None


def test_a_workload_that_holds_quota_expects_no_start(contended: Cluster, alice: SchemaClient) -> None:
    estimate("big")
    assert alice.get("/api/v1/workloads/team-b/big/explanation/").json()["expected_start"] is None
    assert alice.get("/api/v1/workloads/team-b/big/").json()["expected_start"] is None


def test_another_tenant_reads_no_estimate(contended: Cluster, charlie: SchemaClient) -> None:
    estimate("second")
    assert charlie.get(ADDRESS).status_code == 404
    assert 'p50_at":"' not in charlie.get("/api/v1/workloads/").content.decode().replace(" ", "")
