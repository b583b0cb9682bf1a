"""Workloads that pursue several flavors at once, over REST: their variants are shown with them, counted with them, and
changed by them alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Cluster
from accounts.services.access import access_of
from foundation.exceptions import LimitReached
from history.models import UsageRecord, WorkloadSample
from history.services.sampling.sample import sample
from notifications.models import Event, NotificationRule
from notifications.services.occurrences import HAPPENS, Look
from queues.models import FlavorQuota, LocalQueue, Workload
from queues.services.limits import check_unfinished
from queues.services.workloads import record_finished
from scheduler.api.queue_status import numbers_of
from scheduler.leader.engine import Engine
from scheduler.live.publisher import numbers
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/v1/workloads/"


class Place:
    """team-a has a queue with a flavor that is full and one with room for two."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.seconds = cluster, timezone.now().timestamp()
        Cluster.objects.filter(pk=cluster.pk).update(configuration={"featureGates": {"ConcurrentAdmission": True}})
        cluster.refresh_from_db()
        make_cluster_queue(
            cluster,
            quotas={"reservation": {"cpu": 0}, "spot": {"cpu": 2000}},
            local_queue="",
            concurrent_admission_policy={"migration": {"mode": "TryPreferredFlavors"}},
        )
        LocalQueue.objects.create(
            cluster=cluster, namespace="team-a", name="main", cluster_queue_name="main", created_at=START
        )
        for name in ("one", "two", "three"):
            make_workload(cluster, name, namespace="team-a", queue_name="main", submitted_by="bob")
        self.engine = Engine(cluster, "test", clock=lambda: self.seconds, steady=lambda: self.seconds)
        for _ in range(3):
            self.turn()

    def turn(self) -> None:
        self.engine.run()
        self.seconds += 3

    def variant(self, parent: str, flavor: str) -> Workload:
        key = "annotations__kueue.x-k8s.io/workload-allowed-resource-flavors"
        return Workload.objects.get(parent_name=parent, **{key: flavor})


@pytest.fixture
def place(cluster: Cluster) -> Place:
    return Place(cluster)


def names(answer: Any) -> list[str]:
    return sorted(row["name"] for row in answer.json()["results"])


def test_lists_and_counts_have_jobs_and_their_variants_only_on_demand(place: Place, bob: SchemaClient) -> None:
    assert Workload.objects.count() == 9
    assert names(bob.get(URL)) == ["one", "three", "two"]
    assert bob.get(f"{URL}counts/").json()["total"] == 3
    assert bob.get(f"{URL}counts/?by=status").json()["groups"] == [
        {"value": "Admitted", "count": 2}, {"value": "Pending", "count": 1},
    ]  # fmt: skip
    found = bob.get(f"{URL}?variants_of=team-a/one")
    assert names(found) == sorted(Workload.objects.filter(parent_name="one").values_list("name", flat=True))
    assert {row["variant_of"] for row in found.json()["results"]} == {"one"}
    assert bob.get(f"{URL}?variants_of=one").status_code == 400


def test_a_parent_shows_its_variants_with_what_each_waits_for(place: Place, bob: SchemaClient) -> None:
    body = bob.get(f"{URL}team-a/three/").json()
    assert [(each["flavor"], each["status"], each["active"]) for each in body["variants"]] == [
        ("reservation", "Pending", True), ("spot", "Pending", True),
    ]  # fmt: skip
    assert all(each["message"] for each in body["variants"])
    running = bob.get(f"{URL}team-a/one/").json()
    assert [(each["flavor"], each["status"]) for each in running["variants"]] == [
        ("reservation", "Pending"), ("spot", "Admitted"),
    ]  # fmt: skip
    variant = bob.get(f"{URL}team-a/{running['variants'][1]['name']}/").json()
    assert (variant["variant_of"], variant["variants"]) == ("one", [])


def test_the_explanation_of_a_parent_is_that_of_its_variants(place: Place, bob: SchemaClient) -> None:
    body = bob.get(f"{URL}team-a/three/explanation/").json()
    assert body["state"] == "Waits"
    assert [(each["flavor"], each["rule"]) for each in body["flavors"]] == [
        ("reservation", "MaximumQuota"), ("spot", "Quota"),
    ]  # fmt: skip
    assert body["message"].startswith("Its variants pursue one flavor each. reservation: ")
    assert bob.get(f"{URL}team-a/one/explanation/").json()["state"] == "HoldsQuota"


@pytest.mark.parametrize("verb", ["hold", "release", "cancel", "requeue", "priority"])
def test_a_variant_is_changed_by_its_parent_alone(
    place: Place, alice: SchemaClient, bob: SchemaClient, verb: str
) -> None:
    name = place.variant("one", "spot").name
    before = Workload.objects.filter(name=name).values().get()
    body = {"priority": 9} if verb == "priority" else {}
    many = {"workloads": [{"namespace": "team-a", "name": name}], **body}
    for client in (bob, alice):
        refused = client.post(f"{URL}team-a/{name}/{verb}/", body)
        assert refused.status_code == 403
        assert client.post(f"{URL}{verb}/", many).status_code == 403
    told = alice.post(f"{URL}{verb}/", many).json()
    assert (told["reason"], told["errors"][0]["rule"]) == (
        "NotPermitted", "is a variant of Workload team-a/one and follows it",
    )  # fmt: skip
    assert Workload.objects.filter(name=name).values().get() == before


def test_a_variant_is_neither_deleted_nor_replaced_nor_forged(place: Place, bob: SchemaClient) -> None:
    name = place.variant("one", "spot").name
    assert bob.delete(f"{URL}team-a/{name}/").status_code == 403
    text = """apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: NAME
  namespace: team-a
  annotations: {kueue.x-k8s.io/workload-allowed-resource-flavors: spot}
  ownerReferences: [{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, name: one, uid: u, controller: true}]
spec:
  queueName: main
  active: false
  preemptionGates: [{name: kueue.x-k8s.io/concurrent-admission}]
  podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, image: i}]}}}]
"""
    manifests = "/api/v1/manifests/"
    replaced = bob.post(manifests, text.replace("NAME", name).encode(), content_type="application/yaml")
    assert replaced.status_code == 403
    made = bob.post(manifests, text.replace("NAME", "forged").encode(), content_type="application/yaml")
    assert made.status_code == 200
    place.turn()
    forged = Workload.objects.get(name="forged")
    assert (forged.parent_name, forged.has_variants) == ("", True), "a job of its own, with variants of its own"
    wire = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads/{name}"
    assert bob.delete(wire).status_code == 403


def test_limits_count_jobs(place: Place, cluster: Cluster, settings: Any) -> None:
    settings.MAX_UNFINISHED_PER_NAMESPACE = settings.MAX_UNFINISHED_PER_LOCAL_QUEUE = 4
    settings.MAX_UNFINISHED_PER_USER = 4
    check_unfinished(cluster, Counter({("team-a", "main"): 1}), "bob")
    with pytest.raises(LimitReached, match="has 3 unfinished workloads"):
        check_unfinished(cluster, Counter({("team-a", "main"): 2}), "bob")


def test_queues_samples_and_metrics_count_jobs(place: Place, cluster: Cluster, vera: SchemaClient) -> None:
    live = numbers(place.engine.world, place.engine.rows)["cluster_queues"]["main"]
    stored = numbers_of([cluster])[cluster.pk].cluster_queues["main"]
    for found in (live, stored):
        assert found["pending"] + found["inadmissible"] == 1
        assert (found["reserving"], found["admitted"]) == (2, 2)
    assert sum(place.engine.world.pending_counts("main").local_queues["team-a/main"]) == 1
    sample(cluster, timezone.now())
    row = WorkloadSample.objects.get(subject__scope="cluster_queue", subject__name="main")
    assert (row.pending, row.reserving, row.admitted) == (1, 2, 2)
    text = vera.get("/metrics").content.decode()
    assert (
        'kueue_admitted_active_workloads{cluster="default",cluster_queue="main",replica_role="standalone"} 2.0' in text
    )
    assert (
        'kueue_reserving_active_workloads{cluster="default",cluster_queue="main",replica_role="standalone"} 2.0' in text
    )


def test_use_is_recorded_once(place: Place, cluster: Cluster) -> None:
    record_finished(cluster, [("team-a", "one")])
    place.turn()
    place.turn()
    held = [record.held for record in UsageRecord.objects.all()]
    assert [amounts for amounts in held if amounts] == [{"spot": {"cpu": 1000}}]
    assert len(held) == 1


def test_its_user_is_told_of_a_job_once(place: Place, cluster: Cluster, bob: SchemaClient) -> None:
    answer = bob.post("/api/v1/notification-rules/", {"event": Event.WORKLOAD_STARTED.value})
    assert answer.status_code == 201
    rule = NotificationRule.objects.get()
    look = Look(cluster, rule, access_of(rule.user, cluster), START, timezone.now())
    started = [each.title for each in HAPPENS[Event.WORKLOAD_STARTED](look)]
    assert sorted(started) == [
        "team-a/one has started",
        "team-a/two has started",
    ]


def test_a_job_that_runs_moves_when_its_preferred_flavor_has_room(place: Place, bob: SchemaClient) -> None:
    FlavorQuota.objects.filter(flavor="reservation").update(nominal_quota=1000)
    place.turn()
    place.turn()
    rows = [bob.get(f"{URL}team-a/{name}/").json() for name in ("one", "two", "three")]
    assert [row["status"] for row in rows] == ["Admitted"] * 3, "the third has the quota that one of them left"
    assert sorted(row["pod_sets"][0]["flavors"]["cpu"] for row in rows) == ["reservation", "spot", "spot"]
