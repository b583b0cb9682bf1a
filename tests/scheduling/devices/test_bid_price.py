"""The policy `bid-price`: what nodes are worth, and which node and device it takes, on numbers worked out by hand.

Where nothing else is said the demand is two requests of 3,200 MiB for each three of 4,700, on devices of 10,000: their
prices are 1/3 and 1/2 of a device.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.policies.node_worth import NodeWorth
from scheduling.devices.policies.typical_pods import PodShape, TypicalPod
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import DeviceRequest
from scheduling.model.node import Node
from scheduling.model.placement import DeviceConstraints, Placement, PodSetToPlace
from tests.scheduling.fleet_helpers import ask, device, devices_of, node, pod, pod_set, try_place

THIRD, HALF = ask(1, 3200), ask(1, 4700)
DEMAND = ((PodShape(0, THIRD), 0.4), (PodShape(0, HALF), 0.6))


def fleet(*nodes: Node, tasks: tuple[tuple[PodShape, float], ...] = DEMAND) -> Fleet:
    made = Fleet(node_policy="bid-price", device_policy="bid-price")
    made.mix.pods = tuple(TypicalPod(shape, share) for shape, share in tasks)
    for each in nodes:
        made.set_node(each)
    return made


def node_of(made: Fleet, asked: PodSetToPlace) -> str:
    found = made.place([asked])
    assert isinstance(found, Placement)
    return found.pods[0].node


def worth(made: Fleet) -> NodeWorth:
    return NodeWorth(made.table, made.mix.now(), made.settings.vendors)


class TestWorth:
    def test_of_a_node_is_that_of_its_devices(self) -> None:
        found = worth(
            fleet(node("n1", [device("g0"), device("g1"), device("g2")], {"g1": (1, 4700, 0), "g2": (1, 6800, 0)}))
        )
        assert found.rests.tolist() == [[1000, 530, 320]]
        assert found.devices[0] == pytest.approx([1, 1 / 2, 1 / 3])
        assert found.nodes == pytest.approx([11 / 6])

    def test_devices_that_fit_no_pod_are_worth_nothing(self) -> None:
        devices = [device("g0", health=False), device("g1", cordoned=True), device("g2")]
        assert worth(fleet(node("n1", devices, {"g2": (10, 1000, 0)}))).nodes.tolist() == [0.0]

    def test_cpu_bounds_it(self) -> None:
        # 2,000 milli for each 3,200 MiB and 3,000 for each 4,700: 2,600 milli for 0.41 devices, 6,341 for a device.
        tasks = ((PodShape(2000, THIRD), 0.4), (PodShape(3000, HALF), 0.6))
        nodes = [node(f"n{cpu}", [device(f"g{cpu}")], allocatable={"cpu": cpu}) for cpu in (3000, 9000)]
        assert worth(fleet(*nodes, tasks=tasks)).nodes == pytest.approx([3000 / (2600 / 0.41), 1])

    def test_cores_count_where_they_are_reserved(self) -> None:
        used = {"g0": (1, 1000, 70)}
        half = ask(1, 2000, cores=50)
        assert worth(fleet(node("n1", [device("g0")], used), tasks=((PodShape(0, half), 1.0),))).nodes.tolist() == [0.0]
        assert worth(fleet(node("n1", [device("g0")], used))).nodes == pytest.approx([5 / 6])

    def test_each_kind_of_device_has_its_own_demand(self) -> None:
        on_t4 = PodShape(0, ask(1, 5000), DeviceConstraints(use_types=("T4",)))
        made = fleet(
            node("a", [device("a0")], {"a0": (1, 4000, 0)}),
            node("t", [device("t0", type="T4")], {"t0": (1, 4000, 0)}),
            tasks=((PodShape(0, ask(1, 10_000)), 0.5), (on_t4, 0.5)),
        )
        assert worth(made).nodes == pytest.approx([0, 1 / 2])

    @given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1000, 3200, 4700, 10_000]), st.booleans())))
    def test_rows_are_brought_up_to_date(self, steps: list[tuple[int, int, bool]]) -> None:
        tasks = (*DEMAND, (PodShape(3000, ask(1, 10_000)), 0.5))
        nodes = [
            node(f"n{n}", [device(f"n{n}-g{i}") for i in range(n + 1)], allocatable={"cpu": 6000}) for n in range(3)
        ]
        made = fleet(*nodes, tasks=tasks)
        for number, memory, cpu in steps:
            if str(number) in made.reservations:
                made.release(str(number))
                continue
            asked = pod_set(pod(ask(1, memory)), requests={"cpu": 1000 * cpu})
            found, fresh = made.place([asked]), fleet(*nodes, tasks=tasks)
            for key, held in made.reservations.items():
                fresh.reserve(key, held)
            assert found == fresh.place([asked])
            if isinstance(found, Placement):
                made.reserve(str(number), found)


class TestChoice:
    def test_a_third_does_not_go_beside_a_half(self) -> None:
        """530 left is worth 1/2 and 210 nothing; a whole device is worth 1 and 680 still 2/3."""
        made = fleet(node("n1", [device("g0")], {"g0": (1, 4700, 0)}), node("n2", [device("h0")]))
        assert devices_of(try_place(made, pod(THIRD))) == "n2: h0"
        assert devices_of(try_place(made, pod(HALF))) == "n1: g0"

    def test_of_places_that_cost_its_price_the_rest_that_it_completes(self) -> None:
        made = fleet(node("n1", [device("g0"), device("g1"), device("g2")], {"g1": (1, 6400, 0), "g2": (1, 4700, 0)}))
        assert devices_of(try_place(made, pod(THIRD))) == "n1: g1"

    def test_the_fullest_of_devices_that_lose_the_same(self) -> None:
        made = fleet(node("n1", [device("g0"), device("g1")], {"g1": (1, 300, 0)}))
        assert devices_of(try_place(made, pod(HALF))) == "n1: g1"

    def test_little_cpu_goes_where_devices_are_short_of_it(self) -> None:
        """A fifth of n1's device is all that its cpu could feed, and all that it loses; n0 would lose a whole
        device."""
        tasks = ((PodShape(10_000, ask(1, 10_000)), 1.0),)
        sizes = {"n0": 10_000, "n1": 2000}
        nodes = [node(name, [device(f"{name}-g")], allocatable={"cpu": cpu}) for name, cpu in sizes.items()]
        asked = pod_set(pod(ask(1, 8100)), requests={"cpu": 1000})
        assert node_of(fleet(*nodes, tasks=tasks), asked) == "n1"

    def test_pods_without_devices_go_where_cpu_is_left_over(self) -> None:
        tasks = ((PodShape(10_000, ask(1, 10_000)), 1.0),)
        nodes = [
            node(name, [device(f"{name}-g")], allocatable={"cpu": cpu})
            for name, cpu in (("n1", 10_000), ("n2", 16_000))
        ]
        found = fleet(*nodes, tasks=tasks).place([pod_set(pod(None), requests={"cpu": 5000})])
        assert isinstance(found, Placement)
        assert found.pods[0].node == "n2"

    def test_without_tasks_every_place_costs_the_same_and_the_smaller_name_wins(self) -> None:
        made = fleet(node("n2", [device("h0")], {"h0": (1, 5000, 0)}), node("n1", [device("g0")]), tasks=())
        assert devices_of(try_place(made, pod(THIRD))) == "n1: g0"

    def test_slots_that_are_used_up_cost_the_rest_of_the_device(self) -> None:
        """All ten slots of a device take its rest of 680 along; on g1 nothing is lost that the memory does not cost."""
        made = fleet(node("n1", [device("g0"), device("g1", slots=20)]))
        wide = DeviceRequest("NVIDIA", 1, 3200, slots=10)
        assert devices_of(try_place(made, pod(wide))) == "n1: g1"

    def test_several_devices(self) -> None:
        made = fleet(
            node("n1", [device("g0"), device("g1"), device("g2")], {"g0": (1, 4700, 0), "g1": (1, 4700, 0)}),
        )
        assert devices_of(try_place(made, pod(ask(2, 4700)))) == "n1: g0,g1"

    def test_a_pod_chooses_it_by_its_annotations(self) -> None:
        made = Fleet()
        made.mix.pods = tuple(TypicalPod(shape, share) for shape, share in DEMAND)
        made.set_node(node("n1", [device("g0")], {"g0": (1, 4700, 0)}))
        made.set_node(node("n2", [device("h0")]))
        assert devices_of(try_place(made, pod(THIRD))) == "n1: g0"
        asked = pod(THIRD, node_policy="bid-price", device_policy="bid-price")
        assert devices_of(try_place(made, asked)) == "n2: h0"

    def test_other_tasks_have_other_prices(self) -> None:
        made = fleet(node("n1", [device("g0")], {"g0": (1, 4700, 0)}), node("n2", [device("h0")]))
        assert devices_of(try_place(made, pod(THIRD))) == "n2: h0"
        made.mix.pods = (TypicalPod(PodShape(0, ask(1, 10_000)), 1.0),)
        assert devices_of(try_place(made, pod(THIRD))) == "n1: g0"

    def test_losses_differ_by_at_least_a_hundredth(self) -> None:
        made = fleet(node("n1", [device("g0")]), node("n2", [device("h0")], {"h0": (1, 3200, 0)}))
        scores = made.settings.rankings["bid-price"].node_scores(made.table, pod_set(pod(HALF)), np.ones(2, np.bool_))
        assert scores.tolist() == [-50, -67]  # 1 less 1/2 for the rest of 530; 2/3 for 680 less nothing for 210
