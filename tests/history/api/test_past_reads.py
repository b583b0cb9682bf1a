"""`?at=`: the views of the present show the rows of a checkpoint, to readers by their rights of now."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Cluster, RoleBinding
from gpus.models import Device, DeviceAllocation, Node
from history.models import Checkpoint
from history.services.checkpoints import past_rows
from history.services.checkpoints.checkpoint_tables import TABLES
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from queues.models import ClusterQueue, Cohort, LocalQueue, StartEstimate, Workload
from scheduler.leader.engine import Engine
from scheduler.store.world_reading import read_whole_world
from studio.api import explanation_views
from studio.models import Question
from tests.api_client import SchemaClient
from tests.engines import NOW
from tests.factories import make_cluster, make_cluster_queue, make_cohort, make_node, make_workload
from tests.studio_answers import answer_questions, let_a_studio_live

pytestmark = pytest.mark.django_db(transaction=True)

API = "/api/v1/"
GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}
QUOTA = {"default-flavor": {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 20_000}}
ADDRESSES = (
    "cohorts/tree/",
    "cohorts/",
    "cluster-queues/",
    "cluster-queues/research/",
    "local-queues/",
    "local-queues/team-a/a/",
    "workloads/",
    "workloads/?ordering=position&cluster_queue=research",
    "workloads/counts/?by=status",
    "workloads/team-a/one/",
    "nodes/",
    "nodes/n1/",
    "devices/",
    "devices/n1-0/",
    "device-allocations/",
)


@pytest.fixture
def then(cluster: Cluster) -> Cluster:
    """research (team-a) and production (team-b) in science, below company; each has a workload with a device and one
    that waits."""
    make_cohort(cluster, "company")
    make_cohort(cluster, "science", parent_name="company")
    make_node(cluster, "n1", [{}, {}])
    for name, namespace, queue in (("research", "team-a", "a"), ("production", "team-b", "b")):
        make_cluster_queue(cluster, name, QUOTA, local_queue="", cohort_name="science")
        LocalQueue.objects.create(
            cluster=cluster, namespace=namespace, name=queue, cluster_queue_name=name, created_at=timezone.now()
        )
        make_workload(cluster, "one", GPU, namespace=namespace, queue_name=queue)
        make_workload(cluster, "large", GPU, count=9, namespace=namespace, queue_name=queue)
    Engine(cluster, "test", clock=lambda: NOW).run()
    assert set(Workload.objects.filter(name="one").values_list("status", flat=True)) == {"Admitted"}
    return cluster


def later(cluster: Cluster) -> None:
    """Everything changes."""
    DeviceAllocation.objects.all().delete()
    Workload.objects.all().delete()
    ClusterQueue.objects.filter(name="production").delete()
    ClusterQueue.objects.update(stop_policy="Hold")
    Device.objects.update(healthy=False)
    Node.objects.update(ready=False)
    Cohort.objects.update(fair_sharing_weight="3")
    make_workload(cluster, "newer", namespace="team-a", queue_name="a")
    Engine(cluster, "next", clock=lambda: NOW).run()


def address(path: str, at: datetime | str) -> str:
    moment = quote(at if isinstance(at, str) else at.isoformat())
    return f"{API}{path}{'&' if '?' in path else '?'}at={moment}"


def body(client: SchemaClient, url: str) -> Any:
    answer = client.get(url)
    assert answer.status_code == 200, answer.content
    return answer.json()


def without_times(found: Any) -> Any:
    """Without the figures that follow from the moment of reading or from PostgreSQL's versions."""
    if isinstance(found, dict):
        return {
            key: without_times(value)
            for key, value in found.items()
            if key not in ("time", "resource_version", "made_at")
        }
    return [without_times(value) for value in found] if isinstance(found, list) else found


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize("reader", ["alice", "bob"])
def test_each_address_answers_as_it_did_then(
    path: str, reader: str, then: Cluster, alice: SchemaClient, bob: SchemaClient
) -> None:
    client = {"alice": alice, "bob": bob}[reader]
    before = without_times(body(client, f"{API}{path}"))
    found = take_checkpoint(then)
    # What bob's LocalQueue leads to stays: his rights are the same.
    later(then)
    assert without_times(body(client, address(path, found.taken_at))) == before
    now = client.get(f"{API}{path}")
    assert now.status_code == 404 or without_times(now.json()) != before or path.startswith(("local", "cohorts/?"))


PRESENT_TABLES = {
    "accounts_cluster", "accounts_group", "accounts_namespace", "accounts_rolebinding", "auth_group", "auth_user",
    "django_session", "history_checkpoint", "scheduler_lease",
}  # fmt: skip
"""Tables of users, rights and checkpoints, of which the rows of now are read."""
_TABLE = re.compile(r'(?:FROM|JOIN) "?([a-z]+_[a-z]+)"?(?![\w(.])')


def tables_of(captured: CaptureQueriesContext) -> set[str]:
    return {name for query in captured.captured_queries for name in _TABLE.findall(query["sql"])}


@pytest.mark.parametrize("reader", ["alice", "bob"])
def test_each_table_that_is_read_is_kept(reader: str, then: Cluster, alice: SchemaClient, bob: SchemaClient) -> None:
    """A kind that is added later is added to the checkpoints too."""
    client = {"alice": alice, "bob": bob}[reader]
    kept = {model._meta.db_table for model, _ in TABLES}
    with CaptureQueriesContext(connection) as captured:
        for path in ADDRESSES:
            body(client, f"{API}{path}")
        read_whole_world(then, 0.0)
    found = tables_of(captured)
    assert {"queues_workload", "gpus_device", "queues_flavorquota"} <= found
    assert found - kept - PRESENT_TABLES == set()


class TestTheAnswer:
    def test_names_its_checkpoint_and_says_whether_it_is_exact(self, then: Cluster, alice: SchemaClient) -> None:
        found = take_checkpoint(then)
        Checkpoint.objects.update(taken_at=found.taken_at - timedelta(minutes=10))
        for minutes, exact in ((10, "true"), (5, "false")):
            answer = alice.get(address("cohorts/tree/", found.taken_at - timedelta(minutes=minutes)))
            taken = (found.taken_at - timedelta(minutes=10)).isoformat()
            assert (answer["Kueueweb-Checkpoint"], answer["Kueueweb-Exact"]) == (taken, exact)
            assert answer.json()["time"] == found.figures["time"]

    def test_has_no_version_to_write(self, then: Cluster, alice: SchemaClient) -> None:
        assert "ETag" in alice.get(f"{API}workloads/team-a/one/")
        answer = alice.get(address("workloads/team-a/one/", take_checkpoint(then).taken_at))
        assert (answer.status_code, "ETag" in answer) == (200, False)

    def test_has_the_estimate_of_then(self, then: Cluster, alice: SchemaClient) -> None:
        """It was young then, and is old now."""
        at = timezone.now() - timedelta(hours=1)
        waiting = Workload.objects.get(namespace="team-a", name="large")
        StartEstimate.objects.create(workload=waiting, made_at=at, p10_at=at, p50_at=at, p90_at=at)
        take_checkpoint(then)
        Checkpoint.objects.update(taken_at=at)
        found = body(alice, address("workloads/team-a/large/", at))["expected_start"]
        assert (found["reason"], found["p50_at"] is None) == ("", False)
        assert body(alice, f"{API}workloads/team-a/large/")["expected_start"]["reason"] == "Outdated"


class TestRefusals:
    def refused(self, client: SchemaClient, url: str) -> tuple[int, str, str]:
        answer = client.get(url)
        found = answer.json()
        return answer.status_code, found["reason"], found["message"]

    def test_a_moment_without_a_checkpoint(self, then: Cluster, alice: SchemaClient) -> None:
        found = take_checkpoint(then)
        code, reason, message = self.refused(alice, address("devices/", found.taken_at - timedelta(hours=1)))
        assert (code, reason) == (404, "NoCheckpoint")
        assert f"The earliest is from {found.taken_at:%Y-%m-%dT%H:%M}" in message

    @pytest.mark.parametrize(
        ("at", "rule"),
        [
            ("2126-01-01T00:00:00Z", "must not be in the future"),
            ("2026-01-01T00:00:00", "with its zone"),
            ("2026-02-30T00:00:00Z", "must be an RFC 3339 time"),
            ("0001-01-01T00:00:00+14:00", "must be an RFC 3339 time"),
            ("9999-12-31T23:59:59-14:00", "must be an RFC 3339 time"),
            ("noon", "must be an RFC 3339 time"),
        ],
    )
    def test_a_moment_that_is_none(self, at: str, rule: str, then: Cluster, alice: SchemaClient) -> None:
        take_checkpoint(then)
        code, _, message = self.refused(alice, address("devices/", at))
        assert code == 400
        assert rule in message

    def test_a_damaged_checkpoint(self, then: Cluster, alice: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        Checkpoint.objects.update(content=b"")
        for path in ("devices/", "cohorts/tree/"):
            code, reason, message = self.refused(alice, address(path, at))
            assert (code, reason, "name a moment before it" in message) == (404, "NoCheckpoint", True)

    def test_one_without_figures(self, then: Cluster, alice: SchemaClient) -> None:
        Cluster.objects.update(configuration={"fairSharing": 7})
        at = take_checkpoint(then).taken_at
        Cluster.objects.update(configuration={})
        code, reason, message = self.refused(alice, address("checkpoints/figures/", at))
        assert (code, reason, "has no figures" in message) == (404, "NoCheckpoint", True)
        assert body(alice, address("cohorts/tree/", at))["source"] == "none"
        [condition] = body(alice, address("local-queues/team-a/a/", at))["conditions"]
        assert condition["reason"] == "Pending"
        for path in ADDRESSES:
            assert alice.get(address(path, at)).status_code == 200

    def test_too_many_at_once(self, then: Cluster, alice: SchemaClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(past_rows, "READERS", 0)
        answer = alice.get(address("devices/", take_checkpoint(then).taken_at))
        found = (answer.status_code, answer.json()["reason"], answer.headers["Retry-After"])
        assert found == (503, "TooManyPastReads", "2")

    def test_several_clusters(self, then: Cluster, alice: SchemaClient) -> None:
        make_cluster("west")
        at = take_checkpoint(then).taken_at
        code, _, message = self.refused(alice, address("devices/?cluster=default,west", at))
        assert (code, "name one cluster" in message) == (400, True)

    def test_addresses_that_show_the_present_only(self, then: Cluster, alice: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        wire = alice.get(f"/kubernetes/default/apis/kueue.x-k8s.io/v1beta2/clusterqueues?at={quote(at.isoformat())}")
        assert (wire.status_code, "shows the present" in wire.json()["message"]) == (400, True)
        for path in ("overview/", "decisions/", "prices/", "checkpoints/"):
            assert self.refused(alice, address(path, at))[0] == 400
        assert alice.post(address("workloads/", at), []).status_code == 400
        assert alice.put(address("cluster-queues/research/", at), {}).status_code == 400

    @pytest.mark.parametrize("wait", ["watch=true", "resource_version=1"])
    def test_a_wait_for_changes(self, wait: str, then: Cluster, alice: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        code, _, message = self.refused(alice, address(f"workloads/team-a/one/?{wait}", at))
        assert (code, "the past does not change" in message) == (400, True)

    def test_a_user_without_a_role(self, then: Cluster, nobody: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        for path in ADDRESSES:
            assert nobody.get(address(path, at)).status_code == 403


class TestRightsAreThoseOfNow:
    def test_of_a_namespace_that_the_reader_has_lost_nothing_is_shown(self, then: Cluster, bob: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        RoleBinding.objects.filter(username="bob").update(namespace="team-b")
        rows = body(bob, address("workloads/", at))["results"]
        assert {row["namespace"] for row in rows} == {"team-b"}
        assert bob.get(address("workloads/team-a/one/", at)).status_code == 404
        for path in ADDRESSES:
            assert "team-a" not in bob.get(address(path, at)).content.decode() or "team-a" in path

    def test_a_queue_to_which_no_local_queue_leads_now_is_hidden(self, then: Cluster, bob: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        assert [row["name"] for row in body(bob, address("cluster-queues/", at))["results"]] == ["research"]
        LocalQueue.objects.filter(namespace="team-a").update(cluster_queue_name="production")
        assert [row["name"] for row in body(bob, address("cluster-queues/", at))["results"]] == ["production"]
        assert bob.get(address("cluster-queues/research/", at)).status_code == 404
        assert "research" not in json.dumps(body(bob, address("cohorts/tree/", at)))

    def test_a_cohort_that_is_not_above_a_visible_queue_now_is_not_named(
        self, then: Cluster, alice: SchemaClient, bob: SchemaClient
    ) -> None:
        at = take_checkpoint(then).taken_at
        ClusterQueue.objects.filter(name="research").update(cohort_name="company")
        for path in ("cohorts/tree/", "cohorts/", "cluster-queues/", "cluster-queues/research/"):
            assert "science" in json.dumps(body(alice, address(path, at)))
            assert "science" not in json.dumps(body(bob, address(path, at)))
        tree = body(bob, address("cohorts/tree/", at))
        assert [row["name"] for row in tree["cluster_queues"]] == ["research"]

    def test_a_queue_admin_sees_the_queues_below_its_cohorts_of_now(self, then: Cluster, bob: SchemaClient) -> None:
        RoleBinding.objects.filter(username="bob").update(role="queue-admin", namespace="", cohort="science")
        at = take_checkpoint(then).taken_at
        paths = ("cluster-queues/", "local-queues/")
        seen = [[row["name"] for row in body(bob, address(path, at))["results"]] for path in paths]
        assert seen == [["production", "research"], ["a", "b"]]
        ClusterQueue.objects.filter(name="production").update(cohort_name="")
        seen = [[row["name"] for row in body(bob, address(path, at))["results"]] for path in paths]
        assert seen == [["research"], ["a"]]

    def test_a_local_queue_does_not_name_a_queue_that_is_hidden_now(
        self, then: Cluster, alice: SchemaClient, bob: SchemaClient
    ) -> None:
        ClusterQueue.objects.filter(name="research").update(stop_policy="Hold")
        at = take_checkpoint(then).taken_at
        paths = ("local-queues/", "local-queues/team-a/a/")
        for path in paths:
            assert "research" in json.dumps(body(bob, address(path, at)))
        LocalQueue.objects.filter(namespace="team-a").update(cluster_queue_name="production")
        for path in paths:
            found = json.dumps(body(bob, address(path, at)))
            assert ("research" in found, "its ClusterQueue is inactive" in found) == (False, True)
            assert "research" in json.dumps(body(alice, address(path, at)))

    def test_a_parent_that_is_not_above_a_visible_queue_now_is_not_named(
        self, then: Cluster, alice: SchemaClient, bob: SchemaClient
    ) -> None:
        at = take_checkpoint(then).taken_at
        assert "company" in json.dumps(body(bob, address("cohorts/", at)))
        Cohort.objects.filter(name="science").update(parent_name="")
        for path in ("cohorts/", "cohorts/tree/"):
            assert "company" not in json.dumps(body(bob, address(path, at)))
            assert "company" in json.dumps(body(alice, address(path, at)))

    def test_slices_of_other_tenants_have_no_names(self, then: Cluster, bob: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        for path in ("devices/", "device-allocations/", "nodes/n1/"):
            assert "team-b" not in json.dumps(body(bob, address(path, at)))


class TestExplanations:
    PATH = "workloads/team-a/large/explanation/"

    @pytest.fixture(autouse=True)
    def studio(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A studio that answers when the test says so."""
        monkeypatch.setattr(explanation_views, "_WAIT_SECONDS", 0.0)
        let_a_studio_live()

    def explained(self, client: SchemaClient, at: datetime, path: str = PATH) -> Any:
        first = client.get(address(path, at))
        assert (first.status_code, first.json()["reason"]) == (503, "StillExplaining")
        answer_questions()
        return client.get(address(path, at))

    @pytest.mark.parametrize("reader", ["alice", "bob"])
    def test_it_is_that_of_then(self, reader: str, then: Cluster, alice: SchemaClient, bob: SchemaClient) -> None:
        client = {"alice": alice, "bob": bob}[reader]
        before = without_times(body(client, f"{API}{self.PATH}"))
        found = take_checkpoint(then)
        later(then)
        answer = self.explained(client, found.taken_at)
        assert without_times(answer.json()) == before
        assert before["rule"] != ""
        assert answer["Kueueweb-Checkpoint"] == found.taken_at.isoformat()

    def test_readers_with_other_rights_read_other_names(
        self, then: Cluster, alice: SchemaClient, bob: SchemaClient
    ) -> None:
        at = take_checkpoint(then).taken_at
        assert "team-b" in json.dumps(self.explained(alice, at).json())
        assert "team-b" not in json.dumps(body(bob, address(self.PATH, at)))

    def test_an_answer_is_given_again_to_each_reader_at_any_age(
        self, then: Cluster, alice: SchemaClient, bob: SchemaClient
    ) -> None:
        at = take_checkpoint(then).taken_at
        first = self.explained(alice, at).json()
        Question.objects.update(ended_at=timezone.now() - timedelta(hours=1))
        Cluster.objects.update(configuration_generation=99)
        assert body(alice, address(self.PATH, at)) == first
        assert "team-b" not in json.dumps(body(bob, address(self.PATH, at)))
        assert Question.objects.count() == 1

    def test_its_queue_is_named_if_the_reader_may_see_it_now(
        self, then: Cluster, alice: SchemaClient, bob: SchemaClient
    ) -> None:
        at = take_checkpoint(then).taken_at
        assert self.explained(bob, at).json()["cluster_queue"] == "research"
        LocalQueue.objects.filter(namespace="team-a").delete()
        hidden = body(bob, address(self.PATH, at))
        assert (hidden["cluster_queue"], "research" in json.dumps(hidden)) == ("", False)
        assert body(alice, address(self.PATH, at))["cluster_queue"] == "research"

    def test_a_damaged_checkpoint(self, then: Cluster, alice: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        Checkpoint.objects.update(content=b"")
        assert alice.get(address(self.PATH, at)).json()["reason"] == "StillExplaining"
        Question.objects.update(state="Failed", reason="NoCheckpoint", message="It is damaged.")
        [question] = Question.objects.all()
        answer = explanation_views._without_answer(question)
        assert (answer.reason, answer.message) == ("NoCheckpoint", "It is damaged.")

    def test_one_that_did_not_exist(self, then: Cluster, alice: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        make_workload(then, "newer", namespace="team-a", queue_name="a")
        answer = self.explained(alice, at, "workloads/team-a/newer/explanation/")
        assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")

    def test_one_that_had_ended(self, then: Cluster, alice: SchemaClient) -> None:
        finished = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        Workload.objects.filter(name="one").update(
            status="Finished", finished_at=timezone.now(), conditions=[finished], quota_reserved_at=None
        )
        DeviceAllocation.objects.all().delete()
        answer = self.explained(alice, take_checkpoint(then).taken_at, "workloads/team-a/one/explanation/")
        assert answer.json()["reason"] == "Finished"

    def test_changes_that_would_start_it_are_those_of_now(self, then: Cluster, alice: SchemaClient) -> None:
        answer = alice.get(address(f"{self.PATH}?remedies=true", take_checkpoint(then).taken_at))
        assert (answer.status_code, "Forbidden with at" in answer.json()["message"]) == (400, True)

    def test_another_tenants_workload_is_not_found(self, then: Cluster, charlie: SchemaClient) -> None:
        assert charlie.get(address(self.PATH, take_checkpoint(then).taken_at)).status_code == 404

    def test_a_moment_without_a_checkpoint_asks_no_studio(self, then: Cluster, alice: SchemaClient) -> None:
        assert alice.get(address(self.PATH, timezone.now())).json()["reason"] == "NoCheckpoint"
        assert answer_questions() == []


def test_cohorts_are_those_of_then(then: Cluster, alice: SchemaClient) -> None:
    at = take_checkpoint(then).taken_at
    Cohort.objects.all().delete()
    assert [row["name"] for row in body(alice, address("cohorts/", at))["results"]] == ["company", "science"]


class TestCheckpoints:
    def test_their_moments_are_listed(self, then: Cluster, bob: SchemaClient) -> None:
        assert body(bob, f"{API}checkpoints/") == {"taken_at": []}
        taken = [take_checkpoint(then).taken_at for _ in range(2)]
        take_checkpoint(make_cluster("west"))
        found = body(bob, f"{API}checkpoints/")["taken_at"]
        assert [datetime.fromisoformat(at) for at in found] == taken

    def figures(self, client: SchemaClient, at: datetime) -> Any:
        return body(client, address("checkpoints/figures/", at))

    def test_figures_are_those_that_the_stream_had(self, then: Cluster, alice: SchemaClient) -> None:
        found = take_checkpoint(then)
        later(then)
        figures = self.figures(alice, found.taken_at)
        assert figures["cluster_queues"] == found.figures["cluster_queues"]
        assert figures["totals"]["nodes"] == 1
        holders = {held["workload"] for device in figures["devices"].values() for held in device["slices"]}
        assert holders == {"team-a/one", "team-b/one"}

    def test_figures_need_a_moment(self, then: Cluster, alice: SchemaClient) -> None:
        answer = alice.get(f"{API}checkpoints/figures/")
        assert (answer.status_code, "at: Required value" in answer.json()["message"]) == (400, True)

    def test_figures_have_no_names_of_others(self, then: Cluster, bob: SchemaClient) -> None:
        at = take_checkpoint(then).taken_at
        found = self.figures(bob, at)
        assert "team-b" not in json.dumps(found)
        assert set(found["cluster_queues"]) == {"research"}
        ClusterQueue.objects.filter(name="research").update(cohort_name="company")
        found = self.figures(bob, at)
        assert "science" not in json.dumps(found)
        assert (set(found["cohorts"]), found["cluster_queues"]["research"]["cohort"]) == ({"company"}, "")
        LocalQueue.objects.filter(namespace="team-a").delete()
        assert self.figures(bob, at)["cluster_queues"] == {}
