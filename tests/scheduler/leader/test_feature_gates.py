"""Kueue's feature gates, switched in the Configuration of a cluster: each decides as Kueue does with it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests.engines import reasons, start, statuses
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


def cluster_with(**configuration: Any) -> Cluster:
    return make_cluster(configuration=configuration)


def switch(engine: Engine, **gates: bool) -> None:
    """Change the gates under a scheduler that runs."""
    Cluster.objects.update(configuration={"featureGates": gates})
    engine.run()


def two_borrowers(cluster: Cluster) -> None:
    """Two queues that borrow the same: the older one's workload has the lower priority."""
    make_cluster_queue(cluster, "lender", {"default-flavor": {"cpu": 2000}}, cohort_name="all", local_queue="")
    for queue, name, priority in (("a", "old", 0), ("b", "urgent", 10)):
        make_cluster_queue(cluster, queue, {"default-flavor": {"cpu": 0}}, cohort_name="all", local_queue=queue)
        make_workload(cluster, name, {"cpu": "2"}, queue_name=queue, priority=priority)


@pytest.mark.parametrize(("on", "first"), [(True, "urgent"), (False, "old")])
@pytest.mark.parametrize("fair", [False, True])
def test_without_priority_sorting_the_oldest_of_a_cohort_comes_first(on: bool, first: str, fair: bool) -> None:
    sharing: dict[str, Any] = {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]}} if fair else {}
    cluster = cluster_with(featureGates={"PrioritySortingWithinCohort": on}, **sharing)
    two_borrowers(cluster)
    start(cluster).run()
    assert [name for name, status in statuses().items() if status == "Admitted"] == [first]


@pytest.mark.parametrize(("on", "flavor"), [(True, "second"), (False, "first")])
def test_without_flavor_fungibility_the_first_flavor_that_fits_is_taken(on: bool, flavor: str) -> None:
    """The queue would rather take a flavor of its own than borrow; without the gate nobody asks."""
    cluster = cluster_with(featureGates={"FlavorFungibility": on, "FlavorFungibilityPreserveScanProgress": on})
    make_cluster_queue(cluster, "lender", {"first": {"cpu": 4000}}, cohort_name="all", local_queue="")
    own = {"first": {"cpu": 0}, "second": {"cpu": 4000}}
    make_cluster_queue(cluster, "main", own, cohort_name="all", when_can_borrow="TryNextFlavor")
    make_workload(cluster, "w", {"cpu": "2"})
    start(cluster).run()
    pod_set = Workload.objects.get().pod_sets.get()
    assert pod_set.flavors == {"cpu": flavor}


def test_without_partial_admission_a_minimum_counts_for_nothing() -> None:
    cluster = cluster_with(featureGates={"PartialAdmission": False})
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 2000}})
    make_workload(cluster, "w", {"cpu": "1"}, count=4, pod_set={"min_count": 1})
    engine = start(cluster)
    engine.run()
    assert statuses() == {"w": "Pending"}
    switch(engine, PartialAdmission=True)
    assert Workload.objects.get().pod_sets.get().admitted_count == 2


def test_without_its_gate_an_annotation_gates_no_admission() -> None:
    cluster = cluster_with()
    make_cluster_queue(cluster)
    make_workload(cluster, "w", {"cpu": "1"}, annotations={"kueue.x-k8s.io/admission-gated-by": "example.com/audit"})
    engine = start(cluster)
    engine.run()
    assert reasons() == {"w": "AdmissionGated"}
    switch(engine, AdmissionGatedBy=False)
    assert statuses() == {"w": "Admitted"}


@pytest.mark.parametrize(("on", "first"), [(False, "plain"), (True, "boosted")])
def test_a_boost_counts_where_its_gate_is_on(on: bool, first: str) -> None:
    cluster = cluster_with(featureGates={"PriorityBoost": on})
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
    make_workload(cluster, "plain", {"cpu": "1"}, priority=5)
    make_workload(cluster, "boosted", {"cpu": "1"}, annotations={"kueue.x-k8s.io/priority-boost": "10"})
    start(cluster).run()
    assert [name for name, status in statuses().items() if status == "Admitted"] == [first]


def test_without_reclaimable_pods_all_of_a_workload_are_charged() -> None:
    cluster = cluster_with()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 4000}})
    make_workload(cluster, "w", {"cpu": "1"}, count=3)
    engine = start(cluster)
    engine.run()
    row = Workload.objects.get(name="w")
    row.pod_sets.update(reclaimable_count=2)
    Workload.objects.filter(pk=row.pk).update(generation=row.generation + 1)
    make_workload(cluster, "next", {"cpu": "3"})
    switch(engine, ReclaimablePods=False)
    assert statuses() == {"w": "Admitted", "next": "Pending"}
    switch(engine)
    assert statuses() == {"w": "Admitted", "next": "Admitted"}


def test_without_its_gate_past_usage_and_the_check_strategy_count_for_nothing() -> None:
    cluster = cluster_with(
        resources={"quotaCheckStrategy": "IgnoreUndeclared"}, featureGates={"QuotaCheckStrategy": False}
    )
    make_cluster_queue(cluster)
    make_workload(cluster, "w", {"cpu": "1", "example.com/undeclared": "1"})
    engine = start(cluster)
    engine.run()
    assert statuses() == {"w": "Pending"}
    Cluster.objects.update(configuration={"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}})
    engine.run()
    assert statuses() == {"w": "Admitted"}


def test_a_timer_that_is_almost_due_is_waited_for() -> None:
    """Pods that are late by milliseconds may be ready before the next tick."""
    cluster = cluster_with(waitForPodsReady={"timeout": "40ms"})
    make_cluster_queue(cluster)
    make_workload(cluster, "w", {"cpu": "1"})
    Engine(cluster, "test", clock=time.time).run()
    evicted = {each["type"]: each["reason"] for each in Workload.objects.get().conditions}["Evicted"]
    assert evicted == "PodsReadyTimeout"
