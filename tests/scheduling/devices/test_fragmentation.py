"""Fragmentation: the published definition on small cases, its update by the row, FGD's choices, and the reports."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.policies.fragmentation import FragmentationModel, fgd_scores
from scheduling.devices.policies.typical_pods import PodShape, TypicalPod
from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.fragmentation_report import cluster_report, flavor_report, node_reports
from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.placement import DeviceConstraints, Placement
from tests.scheduling.fleet_helpers import ask, device, devices_of, node, pod, pod_set, try_place

SHARE = PodShape(1000, ask(1, 3000))
WHOLE = PodShape(2000, ask(1, 10_000))
PAIR = PodShape(0, ask(2, 10_000))
NO_DEVICE = PodShape(1000)
A100_ONLY = PodShape(0, ask(1, 1000), DeviceConstraints(use_types=("A100",)))


def fgd(*nodes: Node, tasks: tuple[tuple[PodShape, float], ...]) -> Fleet:
    fleet = Fleet(node_policy="fgd", device_policy="fgd")
    fleet.mix.pods = tuple(TypicalPod(shape, share) for shape, share in tasks)
    for each in nodes:
        fleet.set_node(each)
    return fleet


def fragmentation(fleet: Fleet) -> list[float]:
    found: list[float] = fleet.fragmentation.model(fleet.table).fragmentation.tolist()
    return found


class TestDefinition:
    @pytest.mark.parametrize(
        ("shape", "free_cpu", "expected"),
        [
            (SHARE, 1000, 200.0),  # 200 of the 800 idle milli are on a device with less than 300
            (SHARE, 999, 800.0),  # no cpu: all that is idle
            (WHOLE, 9000, 800.0),  # no device that serves it
            (PAIR, 9000, 800.0),
            (NO_DEVICE, 9000, 800.0),  # a task without a device can't use any
            (A100_ONLY, 9000, 0.0),
        ],
    )
    def test_one_node_one_task(self, shape: PodShape, free_cpu: int, expected: float) -> None:
        used = {"g0": (1, 8000, 0), "g1": (1, 4000, 0)}
        nodes = fgd(
            node("n1", [device("g0"), device("g1")], used, allocatable={"cpu": free_cpu}), tasks=((shape, 1.0),)
        )
        assert fragmentation(nodes) == [expected]

    def test_a_task_that_asks_for_more_cpu_than_an_array_holds(self) -> None:
        small = node("n1", [device("g0")], allocatable={"cpu": 4000})
        assert fragmentation(fgd(small, tasks=((PodShape(10**22, ask(1, 1000)), 1.0),))) == [1000.0]

    def test_tasks_are_weighted(self) -> None:
        used = {"g0": (1, 8000, 0), "g1": (1, 4000, 0)}
        one = node("n1", [device("g0"), device("g1")], used)
        assert fragmentation(fgd(one, tasks=((SHARE, 0.75), (WHOLE, 0.25)))) == [0.75 * 200 + 0.25 * 800]

    def test_devices_that_are_out_of_use_are_not_idle(self) -> None:
        devices = [device("g0", health=False), device("g1", cordoned=True), device("g2")]
        assert fragmentation(fgd(node("n1", devices), tasks=((WHOLE, 1.0),))) == [0.0]
        assert fragmentation(fgd(node("n1", devices), tasks=((PAIR, 1.0),))) == [1000.0]

    def test_a_type_that_the_node_has_not(self) -> None:
        t4 = node("n1", [device("g0", type="T4")])
        assert fragmentation(fgd(t4, tasks=((A100_ONLY, 1.0),))) == [1000.0]

    def test_a_full_device_s_memory_is_idle_and_of_no_use(self) -> None:
        used = {"g0": (10, 1000, 0)}
        assert fragmentation(fgd(node("n1", [device("g0")], used), tasks=((SHARE, 1.0),))) == [900.0]

    def test_the_score_is_cut_to_an_integer(self) -> None:
        before, after = np.array([1000.0, 0.0, 0.0]), np.array([0.0, 1000.0, 10.0])
        assert fgd_scores(before, after).tolist() == [73, 26, 49]
        assert 100 / (1 + math.exp(-1)) == pytest.approx(73.1, abs=0.1)


STEPS = st.lists(
    st.tuples(st.integers(0, 15), st.sampled_from([(1, 3000), (1, 8100), (2, 10_000), (1, 10_000)]), st.booleans()),
    max_size=25,
)
TASKS = ((SHARE, 0.5), (WHOLE, 0.2), (PAIR, 0.2), (NO_DEVICE, 0.1))


@given(STEPS)
def test_rows_are_brought_up_to_date(steps: list[tuple[int, tuple[int, int], bool]]) -> None:
    made = [node(f"n{n}", [device(f"n{n}-g{i}") for i in range(n + 1)], allocatable={"cpu": 6000}) for n in range(3)]
    nodes = fgd(*made, tasks=TASKS)
    fragmentation(nodes)
    for number, (count, memory), cpu in steps:
        key = str(number)
        if key in nodes.reservations:
            nodes.release(key)
            continue
        outcome = nodes.place([pod_set(pod(ask(count, memory)), requests={"cpu": 1000 * cpu})])
        if isinstance(outcome, Placement):
            chosen = nodes.fragmentation.node_scores(
                nodes.table, pod_set(pod(ask(count, memory)), requests={"cpu": 1000 * cpu}), np.ones(3, dtype=np.bool_)
            )
            nodes.reserve(key, outcome)
            assert chosen[nodes.table.rows[outcome.pods[0].node]] == chosen.max()
        fresh = FragmentationModel(nodes.table, nodes.mix.pods, nodes.settings.vendors)
        assert fragmentation(nodes) == pytest.approx(fresh.fragmentation.tolist())


@given(STEPS)
def test_what_is_foreseen_is_what_comes(steps: list[tuple[int, tuple[int, int], bool]]) -> None:
    nodes = fgd(node("n1", [device(f"g{i}") for i in range(4)], allocatable={"cpu": 6000}), tasks=TASKS)
    for number, (count, memory), cpu in steps:
        outcome = nodes.place([pod_set(pod(ask(count, memory)), requests={"cpu": 1000 * cpu})])
        if not isinstance(outcome, Placement) or str(number) in nodes.reservations:
            continue
        columns = np.array([[part.index for part in outcome.pods[0].slices]])
        model = nodes.fragmentation.model(nodes.table)
        foreseen = model.after(np.array([0]), columns, 1000 * cpu, ask(count, memory))
        nodes.reserve(str(number), outcome)
        assert fragmentation(nodes) == pytest.approx(foreseen.tolist())


class TestChoice:
    def test_a_share_goes_where_the_rest_stays_useful(self) -> None:
        half_used = node("n2", [device("h0")], {"h0": (1, 7000, 0)})
        nodes = fgd(node("n1", [device("g0")]), half_used, tasks=((SHARE, 0.5), (WHOLE, 0.5)))
        assert devices_of(try_place(nodes, pod(ask(1, 3000)))) == "n2: h0"

    def test_the_best_device_of_the_node(self) -> None:
        devices, used = [device("g0"), device("g1"), device("g2")], {"g1": (1, 7000, 0), "g2": (1, 5000, 0)}
        nodes = fgd(node("n1", devices, used), tasks=((SHARE, 0.5), (WHOLE, 0.5)))
        assert devices_of(try_place(nodes, pod(ask(1, 3000)))) == "n1: g1"

    def test_other_tasks_other_fragments(self) -> None:
        half_used = node("n2", [device("h0")], {"h0": (1, 7000, 0)})
        nodes = fgd(node("n1", [device("g0")]), half_used, tasks=((SHARE, 0.5), (WHOLE, 0.5)))
        assert devices_of(try_place(nodes, pod(ask(1, 3000)))) == "n2: h0"
        nodes.mix.pods = (TypicalPod(SHARE, 1.0),)
        assert devices_of(try_place(nodes, pod(ask(1, 3000)))) == "n1: g0"

    def test_without_tasks_the_smaller_name_wins(self) -> None:
        nodes = fgd(node("n2", [device("g0")]), node("n1", [device("h0")]), tasks=())
        assert devices_of(try_place(nodes, pod(ask(1, 3000)))) == "n1: h0"

    def test_pods_of_several_containers_are_placed_too(self) -> None:
        nodes = fgd(node("n1", [device("g0")]), node("n2", [device("h0")], {"h0": (1, 4000, 0)}), tasks=TASKS)
        assert isinstance(try_place(nodes, pod(ask(1, 3000), ask(1, 3000))), Placement)


class TestReports:
    def fleet(self) -> Fleet:
        return fgd(
            node("n1", [device("g0"), device("g1")], {"g0": (1, 8000, 30)}, labels={"gpu": "a"}),
            node(
                "n2",
                [device("h0"), device("h1"), device("h2", health=False)],
                {"h0": (1, 6000, 0)},
                labels={"gpu": "b"},
            ),
            Node("n3"),
            tasks=((WHOLE, 1.0),),
        )

    def test_the_cluster(self) -> None:
        found = cluster_report(self.fleet())
        assert (found.devices, found.idle_milli, found.fragmented_milli) == (5, 2600.0, 600.0)
        assert found.unused_devices == 2
        fits = {each.count: (each.memory_mib, each.cores_percent, each.node) for each in found.largest if each.fits}
        assert fits == {1: (10_000, 100, "n1"), 2: (4000, 100, "n2")}

    def test_a_flavor_and_a_node(self) -> None:
        nodes = self.fleet()
        of_flavor = flavor_report(nodes, {"gpu": "a"})
        assert of_flavor == node_reports(nodes)["n1"]
        assert {each.count: (each.memory_mib, each.cores_percent) for each in of_flavor.largest} == {
            1: (10_000, 100),
            2: (2000, 70),
        }
        assert list(node_reports(nodes)) == ["n1", "n2"]

    def test_without_typical_pods_fragments_are_unknown(self) -> None:
        nodes = fgd(node("n1", [device("g0")]), tasks=())
        assert cluster_report(nodes).fragmented_milli is None

    def test_an_empty_set_of_nodes(self) -> None:
        found = flavor_report(self.fleet(), {"gpu": "none"})
        assert (found.devices, found.idle_milli, found.largest) == (0, 0.0, ())

    def test_models_are_reported_separately(self) -> None:
        mixed = Device("t", 2, "NVIDIA", "T4", 10, 5000, 100)
        found = cluster_report(fgd(node("n1", [device("g0"), mixed]), tasks=()))
        assert [(each.type, each.count, each.memory_mib) for each in found.largest] == [
            ("NVIDIA A100", 1, 10_000),
            ("T4", 1, 5000),
        ]
