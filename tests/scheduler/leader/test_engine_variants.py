"""Workloads that pursue several flavors at once, in rows: made, admitted, migrated, finished and deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import Sum

from accounts.models import Cluster
from clusters.audit import admissions, books, decided, states
from queues.manifests.job import variant_name
from queues.manifests.kueue_keys import PARENT
from queues.models import FlavorQuota, Job, PodSet, Workload, WorkloadEvent
from queues.services.workloads import (
    cancel,
    change_priority,
    delete_workloads,
    hold,
    record_finished,
    record_stopped,
    release,
    requeue,
)
from scheduler.leader.engine import Engine
from scheduler.store.lease import LeaseLost
from tests.factories import START, make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = {"migration": {"mode": "TryPreferredFlavors"}}


class Installation:
    def __init__(self, policy: dict[str, object] | None = None, *, gate: bool = True, **cpu: int) -> None:
        self.seconds = START.timestamp()
        self.cluster: Cluster = make_cluster(configuration={"featureGates": {"ConcurrentAdmission": gate}})
        make_cluster_queue(
            self.cluster,
            quotas={name: {"cpu": amount} for name, amount in cpu.items()},
            concurrent_admission_policy=policy or POLICY,
        )
        self.engine = Engine(self.cluster, "test", clock=self.now, steady=self.now)

    def now(self) -> float:
        return self.seconds

    def submit(self, name: str = "train", **attributes: Any) -> None:
        job = Job.objects.create(
            cluster=self.cluster, namespace="team", name=name, kind="Job", manifest={}, created_at=START
        )
        make_workload(self.cluster, f"job-{name}-abcde", {"cpu": "1"}, job=job, **attributes)

    def set_gate(self, on: bool) -> None:
        Cluster.objects.filter(pk=self.cluster.pk).update(configuration={"featureGates": {"ConcurrentAdmission": on}})
        self.cluster.refresh_from_db()
        self.turn(3)

    @property
    def key(self) -> tuple[str, str]:
        return self.parent.namespace, self.parent.name

    def turn(self, turns: int = 2) -> None:
        for _ in range(turns):
            self.engine.run()
            self.seconds += 3

    @property
    def parent(self) -> Workload:
        return Workload.objects.get(parent_name="")

    def variants(self) -> dict[str, Workload]:
        key = "kueue.x-k8s.io/workload-allowed-resource-flavors"
        return {row.annotations[key]: row for row in Workload.objects.exclude(parent_name="").order_by("pk")}

    def faults(self) -> list[str]:
        """The faults that an audit of the rows finds."""
        now = datetime.fromtimestamp(self.seconds, UTC)
        rules = (*books.RULES, *states.RULES, *admissions.RULES, *decided.RULES)
        return [f"{found.subject}: {found.message}" for rule in rules for found in rule(self.cluster, now)]

    def stop(self) -> None:
        self.stop_of(self.parent)

    def stop_of(self, parent: Workload) -> None:
        record_stopped(self.cluster, [(parent.namespace, parent.name)])
        self.turn()


def charged() -> dict[str, int]:
    """Flavor -> what is charged in it."""
    found: dict[str, int] = {}
    for pod_set in PodSet.objects.exclude(flavors={}):
        for resource, amount in pod_set.resource_usage.items():
            flavor = pod_set.flavors[resource]
            found[flavor] = found.get(flavor, 0) + amount
    return found


def test_it_runs_where_there_is_room_and_migrates_when_a_preferred_flavor_has_some() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit()
    there.turn(3)
    parent, variants = there.parent, there.variants()
    assert parent.labels[PARENT] == "true"
    assert list(variants) == ["reservation", "spot"]
    assert (parent.status, variants["spot"].status, variants["reservation"].status) == (
        "Admitted", "Admitted", "Pending",
    )  # fmt: skip
    assert parent.pod_sets.get().flavors == {"cpu": "spot"}
    assert charged() == {"spot": 1000}, "once"
    assert parent.push_sequence > parent.pushed_sequence, "its job is started"
    FlavorQuota.objects.filter(flavor="reservation").update(nominal_quota=5000)
    there.turn()
    assert there.parent.evicted_at is not None
    assert charged() == {"spot": 1000}
    there.stop()
    assert there.parent.pod_sets.get().flavors == {"cpu": "reservation"}
    assert charged() == {"reservation": 1000}
    assert (there.parent.status, there.variants()["spot"].active) == ("Admitted", False)
    reasons = set(WorkloadEvent.objects.values_list("reason", flat=True))
    assert {"CreatedVariant", "DeactivatedVariant", "EvictedDueToFlavorMigration"} <= reasons


def test_a_parent_that_ends_ends_its_variants_and_one_that_is_gone_takes_them_along() -> None:
    there = Installation(reservation=1000, spot=1000)
    there.submit()
    there.turn(3)
    parent = there.parent
    hold(there.cluster, [(parent.namespace, parent.name)], actor="alice")
    there.turn()
    there.stop()
    assert (charged(), there.parent.status) == ({}, "Pending")
    release(there.cluster, [(parent.namespace, parent.name)], actor="alice")
    there.turn()
    assert there.parent.status == "Admitted"
    record_finished(there.cluster, [(parent.namespace, parent.name)])
    there.turn(3)
    assert {row.status for row in there.variants().values()} == {"Finished"}
    parent.refresh_from_db()
    Workload.objects.filter(pk=parent.pk).delete()
    there.turn(3)
    assert not Workload.objects.exists()


def test_flavors_that_come_and_go() -> None:
    there = Installation(reservation=1000, spot=1000)
    there.submit()
    there.turn(3)
    group = FlavorQuota.objects.filter(flavor="spot").get().resource_group
    FlavorQuota.objects.filter(flavor="reservation").delete()
    group.flavors = ["spot"]
    group.save()
    there.turn(3)
    assert there.parent.evicted_at is not None
    assert charged() == {"reservation": 1000, "spot": 1000}, "its pods run, and its next variant waits for them"
    there.stop()
    there.turn()
    assert list(there.variants()) == ["spot"]
    assert charged() == {"spot": 1000}
    assert there.parent.pod_sets.get().flavors == {"cpu": "spot"}
    assert FlavorQuota.objects.aggregate(Sum("nominal_quota"))["nominal_quota__sum"] == 1000


def test_a_workload_that_runs_runs_on_when_the_gate_is_switched_off_and_is_charged_once() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit()
    there.turn(3)
    assert there.parent.status == "Admitted"
    there.set_gate(False)
    parent = there.parent
    assert (parent.status, parent.evicted_at, parent.has_variants, PARENT in parent.labels) == (
        "Admitted", None, False, False,
    )  # fmt: skip
    assert (there.variants(), charged()) == ({}, {"spot": 1000})
    assert parent.pod_sets.get().resource_usage == {"cpu": 1000}


def test_a_workload_that_waits_waits_on_in_its_own_name_when_the_gate_is_switched_off() -> None:
    there = Installation(reservation=0, spot=0)
    there.submit()
    there.turn(3)
    assert len(there.variants()) == 2
    there.set_gate(False)
    assert there.variants() == {}
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=5000)
    there.turn()
    assert (there.parent.status, charged()) == ("Admitted", {"spot": 1000})


def test_a_workload_that_runs_when_the_gate_is_switched_on_has_variants_once_it_waits_again() -> None:
    there = Installation(gate=False, reservation=0, spot=5000)
    there.submit()
    there.turn()
    there.set_gate(True)
    assert (there.parent.status, there.variants(), charged()) == ("Admitted", {}, {"spot": 1000})
    requeue(there.cluster, [there.key], actor="alice")
    there.turn()
    there.stop()
    there.turn()
    assert list(there.variants()) == ["reservation", "spot"]
    assert (there.parent.status, charged()) == ("Admitted", {"spot": 1000})


def test_a_workload_that_waits_when_the_gate_is_switched_on_waits_as_its_variants() -> None:
    there = Installation(gate=False, reservation=0, spot=0)
    there.submit()
    there.turn()
    there.set_gate(True)
    assert list(there.variants()) == ["reservation", "spot"]
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=5000)
    there.turn()
    assert (there.parent.status, charged()) == ("Admitted", {"spot": 1000})


def test_no_variant_starts_after_its_parent_was_cancelled() -> None:
    there = Installation(reservation=0, spot=0)
    there.submit()
    there.turn(3)
    cancel(there.cluster, [there.key], actor="alice")
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=5000)
    there.engine.run()
    assert (there.parent.status, charged()) == ("Finished", {})
    there.turn()
    assert {row.status for row in there.variants().values()} == {"Finished"}
    there.parent.delete()
    there.turn()
    assert not Workload.objects.exists()


def test_what_a_variant_holds_is_free_when_its_parent_was_cancelled_and_has_stopped() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit()
    there.turn(3)
    delete_workloads(there.cluster, [there.key], actor="alice")
    there.turn()
    assert charged() == {"spot": 1000}, "its pods run"
    there.stop()
    assert (charged(), there.parent.status) == ({}, "Finished")


def test_variants_follow_the_priority_of_their_parent() -> None:
    there = Installation(reservation=0, spot=0)
    there.submit()
    there.turn(3)
    change_priority(there.cluster, [there.key], 7, actor="alice")
    there.turn(2)
    assert {row.priority for row in there.variants().values()} == {7}


def test_variants_count_in_the_limits_of_the_user_who_resubmits_their_parent() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit(submitted_by="alice")
    there.turn(3)
    Workload.objects.filter(parent_name="").update(submitted_by="bob")
    there.turn(2)
    assert [row.submitted_by for row in there.variants().values()] == ["bob", "bob"]
    assert there.engine.run().refused == 0
    assert not there.engine.run().more, "they are followed once"


def test_variants_have_the_pods_of_a_parent_that_is_applied_again() -> None:
    there = Installation(reservation=0, spot=1500)
    FlavorQuota.objects.update(nominal_quota=0)
    there.submit()
    there.turn(3)
    PodSet.objects.filter(workload=there.parent).update(count=3)
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=2000)
    there.turn(3)
    counts = set(PodSet.objects.values_list("workload__name", "count"))
    assert counts == {(name, 3) for name in Workload.objects.values_list("name", flat=True)}
    assert (there.parent.status, charged()) == ("Pending", {}), "three pods do not fit"
    assert not there.engine.run().more, "they are made again once"
    FlavorQuota.objects.filter(flavor="spot").update(nominal_quota=3000)
    there.turn(3)
    assert (there.parent.status, charged(), there.faults()) == ("Admitted", {"spot": 3000}, [])


def test_a_workload_that_moves_to_another_queue_takes_its_variants_along() -> None:
    there = Installation(reservation=0, spot=0)
    make_cluster_queue(there.cluster, "plain", quotas={"spot": {"cpu": 5000}}, local_queue="plain")
    there.submit()
    there.turn(3)
    Workload.objects.filter(parent_name="").update(queue_name="plain", cluster_queue_name="plain")
    there.turn(3)
    assert (there.parent.status, there.variants(), charged()) == ("Admitted", {}, {"spot": 1000})


def test_a_name_that_is_taken_keeps_no_other_workload_from_its_variants() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit()
    parent = there.parent
    make_workload(there.cluster, variant_name(parent.name, str(parent.uid), "spot"), {"cpu": "1"}, queue_name="nowhere")
    there.submit("other")
    there.turn(3)
    assert set(Workload.objects.exclude(parent_name="").values_list("parent_name", flat=True)) == {"job-other-abcde"}
    (told,) = WorkloadEvent.objects.filter(reason="VariantNotCreated")
    assert told.workload_name == parent.name
    Workload.objects.filter(queue_name="nowhere").delete()
    there.seconds += 60
    there.turn(3)
    assert Workload.objects.filter(parent_name=parent.name).count() == 2


def test_a_variant_that_is_deleted_is_made_again() -> None:
    there = Installation(reservation=0, spot=0)
    there.submit()
    there.turn(3)
    delete_workloads(there.cluster, [("team", there.variants()["spot"].name)], actor="alice")
    there.turn(3)
    assert {flavor: row.status for flavor, row in there.variants().items()} == {
        "reservation": "Pending", "spot": "Pending",
    }  # fmt: skip


def test_a_leader_that_was_replaced_makes_none() -> None:
    there = Installation(reservation=0, spot=0)
    there.submit()
    Engine(there.cluster, "other", clock=there.now, steady=there.now)
    with pytest.raises(LeaseLost):
        there.turn(3)
    assert there.variants() == {}


def test_the_books_are_right_at_each_step() -> None:
    there = Installation(reservation=0, spot=5000)
    there.submit()
    for quota in (None, 5000, None, None):
        if quota is not None:
            FlavorQuota.objects.filter(flavor="reservation").update(nominal_quota=quota)
        there.turn(3)
        assert there.faults() == []
    there.stop()
    assert charged() == {"reservation": 1000}
    assert there.faults() == []
