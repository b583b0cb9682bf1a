"""What is remembered of earlier searches changes no answer: neither the place nor a word of a refusal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.policies.typical_pods import PodShape, TypicalPod
from scheduling.devices.search.answers import KeptAnswers, Unplaced
from scheduling.devices.search.cache import SearchCaches
from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.device import MIG_MODE, MigPlacement, MigProfile
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PlacementRefusal, PodSetToPlace
from tests.scheduling.fleet_helpers import ask, device, node, pod, pod_set

PROFILES = (
    MigProfile("1g", 2500, 25, 4, tuple(MigPlacement(start, 1) for start in range(4))),
    MigProfile("2g", 5000, 50, 2, (MigPlacement(0, 2), MigPlacement(2, 2))),
)
NODES = (
    node("n1", [device("a0", numa=0), device("a1", numa=0), device("a2", numa=1)], allocatable={"cpu": 4000}),
    node("n2", [device("b0", numa=0), device("b1", numa=1)], allocatable={"cpu": 9000}),
    node(
        "n3", [device("c0", mode=MIG_MODE, mig_profiles=PROFILES), device("c1", mode=MIG_MODE, mig_profiles=PROFILES)]
    ),
    Node("n4"),
)
KINDS = {
    "share": pod_set(pod(ask(1, 4000))),
    "cores": pod_set(pod(ask(1, 1000, cores=60))),
    "exclusive": pod_set(pod(ask(1, 10_000, cores=100))),
    "cpu": pod_set(pod(ask(1, 100)), requests={"cpu": 3000}),
    "numa": pod_set(pod(ask(2, 6000), numa_bind=True)),
    "containers": pod_set(pod(ask(1, 6000), ask(1, 6000), ask(1, 6000))),
    "gang": pod_set(pod(ask(1, 7000)), count=3),
    "mig": pod_set(pod(ask(2, 4000))),
    "fgd": pod_set(pod(ask(1, 6000), ask(1, 3000), node_policy="fgd", device_policy="fgd")),
    "both": pod_set(pod(ask(1, 3000), ask(2, 3500), ask(1, 5000), node_policy="fgd", device_policy="bid-price")),
    "bid-price": pod_set(pod(ask(1, 3000), node_policy="bid-price", device_policy="bid-price")),
    "selected": pod_set(pod(ask(1, 4000)), allowed_nodes=frozenset({"n2", "n4"})),
    "limited": pod_set(pod(ask(1, 4000)), namespace="team"),
    "limited containers": pod_set(pod(ask(1, 4000), ask(1, 4000)), namespace="team"),
    "filler": pod_set(pod(ask(1, 3500)), namespace="team"),
    "no device": pod_set(pod(None), requests={"cpu": 2000}),
}
TASKS = (
    tuple(TypicalPod(PodShape(0, ask(1, memory)), 0.5) for memory in (3000, 6000)),
    (TypicalPod(PodShape(2000, ask(2, 5000)), 1.0),),
)


def fleet(nodes: dict[str, Node], held: dict[str, Placement], tasks: tuple[TypicalPod, ...] = TASKS[0]) -> Fleet:
    made = Fleet()
    made.mix.pods = tasks
    made.quotas.set_quota(NamespaceQuota("team", "devices", {"limits.nvidia.com/gpumem": 12_000}))
    for each in nodes.values():
        made.set_node(each)
    for key, placement in held.items():
        made.reserve(key, placement)
    return made


def steps(kinds: list[str]) -> st.SearchStrategy[list[tuple[str, str | int]]]:
    """Few kinds of pods that come again and again, so that what is remembered of one is used."""
    one = st.one_of(
        st.tuples(st.just("place"), st.sampled_from([*kinds, "filler"])),
        st.tuples(st.just("ask"), st.sampled_from(kinds)),
        st.tuples(st.just("release"), st.integers(0, 8)),
        st.tuples(st.just("sick"), st.sampled_from(["n1", "n2", "n3"])),
        st.tuples(st.just("tasks"), st.integers(0, 1)),
        st.tuples(st.just("cordon"), st.sampled_from(["n1", "n2", "n3", "n4"])),
    )
    return st.lists(one, min_size=8, max_size=40)


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2).flatmap(steps))
def test_a_result_depends_on_the_present_state_alone(steps: list[tuple[str, str | int]]) -> None:
    nodes, held = {each.name: each for each in NODES}, dict[str, Placement]()
    asked = fleet(nodes, held)
    for number, (what, which) in enumerate(steps):
        if what == "release":
            if held:
                key = sorted(held)[int(which) % len(held)]
                asked.release(key)
                del held[key]
        elif what == "tasks":
            asked.mix.pods = TASKS[int(which)]
        elif what in ("sick", "cordon"):
            before = nodes[str(which)]
            sick = frozenset() if before.unhealthy_vendors else frozenset({"NVIDIA"})
            changed = {"unhealthy_vendors": sick} if what == "sick" else {"unschedulable": not before.unschedulable}
            nodes[before.name] = replace(before, **changed)
            asked.set_node(nodes[before.name])
        else:
            wanted: list[PodSetToPlace] = [KINDS[str(which)]]
            gone = sorted(held)[:1] if number % 3 == 0 else []
            first = asked.find(wanted, without=gone)
            found = asked.place(wanted, without=gone)
            assert found == fleet(nodes, held, asked.mix.pods).place(wanted, without=gone)
            assert asked.place(wanted, without=gone) == found
            assert first == asked.find(wanted, without=gone)
            assert first == (found if isinstance(found, Placement) else Unplaced(found.pod_set, found.replica))
            if isinstance(found, PlacementRefusal):
                assert list(found.reasons) == [name for name in nodes if name in found.reasons]
            elif what == "place" and not gone:
                asked.reserve(str(number), found)
                held[str(number)] = found


def test_a_refusal_is_the_caller_s_own() -> None:
    made = fleet({each.name: each for each in NODES}, {})
    huge = [pod_set(pod(ask(1, 20_000)))]
    first = made.place(huge)
    assert isinstance(first, PlacementRefusal)
    assert isinstance(first.reasons, dict)
    first.reasons.clear()
    second = made.place(huge)
    assert isinstance(second, PlacementRefusal)
    assert sorted(second.reasons) == ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(("nodes", "kept"), [(1_000_000, 64), (10_000, 400)])
def test_memories_are_bounded_and_the_oldest_goes_first(nodes: int, kept: int) -> None:
    memories = SearchCaches(nodes)
    made = fleet({}, {})
    made.place([KINDS["share"]])
    memory = next(iter(made._caches._kinds.values()))
    for number in range(kept):
        memories.keep(number, memory)
    assert memories.of(0) is memory
    memories.keep("new", memory)
    assert memories.of(1) is None
    assert memories.of(0) is memory


class TestKeptAnswers:
    def test_an_answer_holds_until_a_node_changes_that_its_pods_select(self) -> None:
        answers, refused = KeptAnswers(), Unplaced("main", 0)
        answers.keep("pods", refused, [np.array([True, False, False]), np.array([False, True, False])])
        answers.note(2)
        assert answers.of("pods") is refused
        answers.note(1)
        assert answers.of("pods") is None

    def test_the_least_recently_used_answer_is_dropped_first(self) -> None:
        answers, refused = KeptAnswers(), Unplaced("main", 0)
        for number in range(512):
            answers.keep(number, refused, [])
        assert answers.of(0) is refused
        answers.keep("new", refused, [])
        assert answers.of(1) is None
        assert answers.of(0) is refused

    def test_a_deleted_node_is_no_longer_a_place(self) -> None:
        made = fleet({each.name: each for each in NODES[:2]}, {})
        wanted = [pod_set(pod(ask(3, 1000)))]
        assert isinstance(made.find(wanted), Placement)
        made.delete_node("n1")
        assert made.find(wanted) == Unplaced("main", 0)


class TestQuotas:
    """A namespace's quota is spent on other nodes than the one that is asked about."""

    def fleet(self, limit_mib: int, *nodes: Node) -> Fleet:
        made = Fleet()
        made.quotas.set_quota(NamespaceQuota("team", "devices", {"limits.nvidia.com/gpumem": limit_mib}))
        for each in nodes:
            made.set_node(each)
        return made

    def test_it_is_what_lacks_only_while_others_hold_it(self) -> None:
        made = self.fleet(9000, node("n1", [device("g0")]), node("n2", [device("h0")], {"h0": (1, 4000, 0)}))
        other = made.place([pod_set(pod(ask(1, 6000)), namespace="team", allowed_nodes=frozenset({"n1"}))])
        assert isinstance(other, Placement)
        made.reserve("other", other)
        wanted = pod_set(pod(ask(1, 4500), ask(1, 4500)), namespace="team", allowed_nodes=frozenset({"n2"}))
        refused = made.place([wanted])
        assert isinstance(refused, PlacementRefusal)
        assert refused.reasons == {"n2": "1/1 ResourceQuotaNotFit"}
        made.release("other")
        refused = made.place([wanted])
        assert isinstance(refused, PlacementRefusal)
        assert refused.reasons == {"n2": "1/1 CardInsufficientMemory"}
        made.reserve("other", other)
        refused = made.place([wanted])
        assert isinstance(refused, PlacementRefusal)
        assert refused.reasons == {"n2": "1/1 ResourceQuotaNotFit"}

    def test_the_refusal_of_a_gang_is_that_of_its_last_pod(self) -> None:
        apart = node("n1", [device("g0", numa=0), device("g1", numa=1)], {"g0": (1, 5000, 0)})
        together = node("n2", [device("h0"), device("h1")])
        pair = pod_set(pod(ask(2, 2000), numa_bind=True), namespace="team")
        first = self.fleet(5000, apart, together)
        found = first.place([pair])
        assert isinstance(found, Placement)
        first.reserve("first", found)
        alone = first.place([pair])
        gang = self.fleet(5000, apart, together).place([replace(pair, count=2)])
        assert isinstance(alone, PlacementRefusal)
        assert isinstance(gang, PlacementRefusal)
        assert gang.reasons == alone.reasons


def test_typical_pods_decide_in_which_order_containers_find_devices() -> None:
    """4,000 and 6,000 fill the empty device, if they try it first; 6,000 more fit beside the 3,500 on the other."""
    whole, large, small = (PodShape(0, ask(1, memory)) for memory in (10_000, 6400, 3900))
    wanted = [pod_set(pod(ask(1, 4000), ask(1, 6000), ask(1, 6000), device_policy="bid-price"))]
    made = Fleet()
    made.set_node(node("n1", [device("g0"), device("g1")], {"g1": (1, 3500, 0)}))
    made.mix.pods = (TypicalPod(whole, 1.0),)
    assert isinstance(made.place(wanted), PlacementRefusal)
    made.mix.pods = (TypicalPod(large, 0.5), TypicalPod(small, 0.5))
    assert isinstance(made.place(wanted), Placement)
