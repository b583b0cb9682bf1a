"""The specification's traps of flavor choice, T13 to T24."""

from __future__ import annotations

import pytest

from scheduling.model.configuration import Configuration
from scheduling.model.selectors import Taint, TaintEffect, Toleration
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import QuotaCheckStrategy
from tests.scheduling.topology_helpers import HOST, node
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    flavors,
    fungibility,
    messages,
    outcomes,
    pod_set,
    preemption,
    preemptions,
    settled,
)

TRY_BOTH = {"borrow": "TryNextFlavor", "preempt": "TryNextFlavor"}


def test_t13_by_default_a_flavor_that_needs_preemption_loses_to_one_that_fits_by_borrowing() -> None:
    builder = Builder().cohort("all", quotas={"two": 5})
    builder.queue("a", {"one": 5, "two": 0}, "all", preemption=preemption(within="LowerPriority"))
    builder.running("low", "a", 5, "one").pending("w", "a", 3, priority=1)
    assert flavors(cycle(builder.world), "w") == {"cpu": "two"}


def test_t13_by_default_a_flavor_that_fits_by_borrowing_ends_the_search() -> None:
    builder = Builder().cohort("all", quotas={"one": 5}).queue("a", {"one": 0, "two": 5}, "all")
    builder.pending("w", "a", 3)
    assert flavors(cycle(builder.world), "w") == {"cpu": "one"}


@pytest.mark.parametrize(
    ("preference", "victims", "flavor"),
    [
        ("PreemptionOverBorrowing", {"low": "InClusterQueue"}, None),
        ("BorrowingOverPreemption", {}, "two"),
        ("", {}, "two"),
    ],
)
def test_t14_the_preference_ranks_borrowing_against_preemption(
    preference: str, victims: dict[str, str], flavor: str | None
) -> None:
    builder = Builder().cohort("all", quotas={"two": 5})
    builder.queue(
        "a",
        {"one": 5, "two": 0},
        "all",
        preemption=preemption(within="LowerPriority"),
        flavor_fungibility=fungibility(**TRY_BOTH, prefer=preference),
    )
    builder.running("low", "a", 5, "one").pending("w", "a", 3, priority=1)
    result = cycle(builder.world)
    assert preemptions(result) == victims
    if flavor:
        assert flavors(result, "w") == {"cpu": flavor}


def test_t15_a_flavor_without_candidates_loses_to_everything_viable() -> None:
    builder = Builder().cohort("root", quotas={"two": 5}).cohort("child", "root", {"one": 5})
    builder.queue(
        "a",
        {"one": 0, "two": 0},
        "child",
        preemption=preemption(within="LowerPriority", reclaim="Any", borrow="LowerPriority"),
        flavor_fungibility=fungibility(**TRY_BOTH, prefer="PreemptionOverBorrowing"),
    )
    builder.running("same", "a", 5, "one", priority=1).pending("w", "a", 3, priority=1)
    assert flavors(cycle(builder.world), "w") == {"cpu": "two"}


def test_t16_on_ties_the_earlier_flavor_stays() -> None:
    builder = Builder().queue("a", {"one": 5, "two": 5}, preemption=preemption(within="LowerPriority"))
    builder.running("first", "a", 5, "one").running("second", "a", 5, "two").pending("w", "a", 3, priority=1)
    assert preemptions(cycle(builder.world)) == {"first": "InClusterQueue"}


def test_t16_reclaim_with_a_victim_of_the_own_queue_counts_as_preemption() -> None:
    builder = Builder()
    builder.queue("a", {"one": 5, "two": 5}, "all", preemption=preemption(within="LowerPriority", reclaim="Any"))
    builder.queue("b", {"one": 0, "two": 0}, "all")
    builder.running("own-one", "a", 5, "one").running("own-two", "a", 3, "two").running("theirs", "b", 2, "two")
    builder.pending("w", "a", 5, priority=1)
    assert preemptions(cycle(builder.world)) == {"own-one": "InClusterQueue"}


def test_t17_pure_reclaim_beats_preempting_the_own_queue() -> None:
    builder = Builder()
    builder.queue("a", {"od": 5, "spot": 5}, "all", preemption=preemption(within="LowerPriority", reclaim="Any"))
    builder.queue("b", {"od": 0, "spot": 0}, "all")
    builder.running("own", "a", 5, "od").running("theirs", "b", 5, "spot").pending("w", "a", 3, priority=1)
    assert preemptions(cycle(builder.world)) == {"theirs": "InCohortReclamation"}


def test_t18_earlier_pod_sets_of_the_workload_count() -> None:
    builder = Builder().queue("a", {"default": 10})
    builder.pending("w", "a", [pod_set(6, name="one"), pod_set(6, name="two")])
    result = cycle(builder.world)
    assert outcomes(result) == {"w": "ExceedsMaxQuota"}
    assert "12 cores requested, at most 10 cores" in messages(result)["w"]


@pytest.mark.parametrize(("grouped", "admitted"), [(True, []), (False, ["w"])])
def test_t19_pod_sets_of_one_group_share_their_flavor_and_are_summed(grouped: bool, admitted: list[str]) -> None:
    topology = {"podSetGroupName": "together"} if grouped else None
    builder = Builder().queue("a", {"one": {"cpu": 4, "gpu": 4}, "two": {"cpu": 5, "gpu": 0}})
    workers = pod_set({"cpu": 1, "gpu": 1}, count=4, name="workers", topology=topology)
    leader = pod_set(1, name="leader", topology=topology)
    builder.pending("w", "a", [workers, leader])
    assert admissions(cycle(builder.world)) == admitted


def affinity(key: str, value: str) -> dict[str, object]:
    """A required node affinity of one expression."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


@pytest.mark.parametrize(
    ("spec", "matches"),
    [
        ({"nodeSelector": {"zone": "z1"}}, True),
        ({"nodeSelector": {"type": "b"}}, False),
        (affinity("zone", "z1"), True),
        (affinity("type", "b"), False),
    ],
)
def test_t20_affinity_sees_only_the_keys_of_the_flavor(spec: dict[str, object], matches: bool) -> None:
    builder = Builder().flavor("x", node_labels={"type": "a"}).queue("q", {"x": 5}).pending("w", "q", 1, spec=spec)
    result = cycle(builder.world)
    assert admissions(result) == (["w"] if matches else [])
    assert outcomes(result) == ({} if matches else {"w": "NoMatchingFlavor"})


def test_t21_tolerations_of_the_flavor_help() -> None:
    taint = Taint("spot", "true", TaintEffect.NO_SCHEDULE)
    builder = Builder().flavor("tainted", node_taints=(taint,))
    builder.flavor("tolerated", node_taints=(taint,), tolerations=(Toleration("spot", value="true"),))
    builder.queue("q", {"tainted": 5, "tolerated": 5}).pending("w", "q", 1)
    assert flavors(cycle(builder.world), "w") == {"cpu": "tolerated"}


def test_t21_a_taint_that_only_prefers_repels_nobody() -> None:
    builder = Builder().flavor("x", node_taints=(Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE),))
    assert admissions(cycle(builder.queue("q", {"x": 5}).pending("w", "q", 1).world)) == ["w"]


def test_t22_undeclared_resources_are_refused_unless_zero_or_ignored() -> None:
    builder = Builder().queue("q", {"default": 5})
    builder.pending("zero", "q", {"cpu": 1, "gpu": 0}, priority=1).pending("one", "q", {"cpu": 1, "gpu": 1})
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == ["zero"]
    assert outcomes(results[-1]) == {"one": "NoMatchingFlavor"}
    builder.world.set_configuration(Configuration(quota_check_strategy=QuotaCheckStrategy.IGNORE_UNDECLARED))
    result = cycle(builder.world)
    assert admissions(result) == ["one"]
    assert dict(result.admissions[0].pod_sets[0].resource_usage) == {"cpu": 1000}


def test_t23_the_search_goes_on_after_the_flavor_where_it_stopped() -> None:
    stop_at_preemption = fungibility(preempt="MayStopSearch")
    policy = preemption(within="LowerPriority")
    builder = Builder()
    builder.queue(
        "a", {"one": 2, "two": 2, "three": 2}, "all", preemption=policy, flavor_fungibility=stop_at_preemption
    )
    builder.queue("b", {"one": 0, "two": 0, "three": 0}, "all")
    builder.running("x", "a", 2, "one", priority=5).running("low", "a", 2, "two").pending("w", "a", 2, priority=1)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}, "it stops at the second flavor"
    result = cycle(builder.world)
    assert not result.decided, "the preemptor starts over and finds the same, already stopping, workload"


def test_t23_a_skipped_head_tries_the_next_flavor_in_the_next_cycle() -> None:
    # Both heads nominate the borrowed first flavor; only the one with the higher priority gets it.
    builder = Builder().cohort("all", quotas={"one": 2})
    for name in ("a", "b"):
        builder.queue(name, {"one": 0, "two": 2}, "all")
    builder.pending("high", "a", 2, priority=1).pending("low", "b", 2)
    first = cycle(builder.world)
    assert flavors(first, "high") == {"cpu": "one"}
    assert outcomes(first) == {"low": "WaitingForQuota"}
    assert flavors(cycle(builder.world), "low") == {"cpu": "two"}


def test_t24_a_queue_whose_flavors_all_have_a_topology_implies_it() -> None:
    builder = Builder()
    builder.world.set_topology(Topology("hosts", (HOST,)))
    builder.world.set_node(node("n1", 4))
    builder.flavor("tas", node_labels={"pool": "tas"}, topology_name="hosts")
    builder.queue("only", {"tas": 4}).queue("mixed", {"tas": 4, "plain": 4})
    builder.pending("implied", "only", 1).pending("plain", "mixed", 1)
    result = cycle(builder.world)
    placed = {a.workload: a.pod_sets[0].topology_assignment for a in result.admissions}
    assert placed["team/implied"] is not None
    assert placed["team/plain"] is None
    assert flavors(result, "plain") == {"cpu": "plain"}
