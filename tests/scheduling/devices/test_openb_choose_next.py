"""Who wastes least goes first: wastes worked out by hand, with the demand of `test_bid_price_ranking`."""

from __future__ import annotations

import pytest

from scheduling.devices.policies.typical_pods import PodShape, TypicalPod
from scheduling.devices.search.fleet import Fleet
from scheduling.model.placement import PodSetToPlace
from tests.benchmarks.openb.choose_next import waste
from tests.scheduling.devices.test_bid_price import DEMAND, HALF, THIRD, fleet
from tests.scheduling.fleet_helpers import ask, device, node, pod, pod_set


def one(memory_mib: int, cpu: int = 0) -> list[PodSetToPlace]:
    return [pod_set(pod(ask(1, memory_mib)), requests={"cpu": cpu})]


class TestWaste:
    @pytest.mark.parametrize(
        ("memory_mib", "expected"),
        [
            (10_000, 0.0),
            (3200, (0.33 - 0.32) / 0.32),  # a third of a device for 320
            (4700, (0.5 - 0.47) / 0.47),
            (8100, (1 - 0.81) / 0.81),  # the rest of 190 is worth nothing
            (6800, (0.67 - 0.68) / 0.68),  # leaves 320, which is worth a third
        ],
    )
    def test_on_an_empty_device(self, memory_mib: int, expected: float) -> None:
        assert waste(fleet(node("n1", [device("g0")])), one(memory_mib)) == pytest.approx(expected)

    def test_at_the_cheapest_place(self) -> None:
        made = fleet(node("n1", [device("g0")], {"g0": (1, 1900, 0)}), node("n2", [device("h0")]))
        # 810 is left of g0, worth 5/6; of h0, all of which is worth 1, only the rest of 190 is lost for nothing.
        assert waste(made, one(8100)) == pytest.approx((0.83 - 0.81) / 0.81)

    def test_of_pods_without_a_device_what_they_take_from_devices(self) -> None:
        tasks = ((PodShape(10_000, ask(1, 10_000)), 1.0),)
        made = fleet(node("n1", [device("g0")], allocatable={"cpu": 12_000}), tasks=tasks)
        assert waste(made, [pod_set(pod(None), requests={"cpu": 2000})]) == 0
        assert waste(made, [pod_set(pod(None), requests={"cpu": 7000})]) == pytest.approx(0.5)

    def test_of_several_pod_sets_together(self) -> None:
        made = fleet(node("n1", [device("g0"), device("g1"), device("g2"), device("g3")]))
        found = waste(made, [pod_set(pod(THIRD), count=3), pod_set(pod(ask(1, 8100)))])
        assert found == pytest.approx((3 * 0.33 + 1 - 3 * 0.32 - 0.81) / (3 * 0.32 + 0.81))

    def test_without_a_place(self) -> None:
        assert waste(fleet(node("n1", [device("g0")])), one(10_001)) is None

    def test_it_follows_what_is_free(self) -> None:
        made = fleet(node("n1", [device("g0")], {"g0": (1, 4700, 0)}))
        assert waste(made, one(4700)) == pytest.approx((0.5 - 0.47) / 0.47)
        assert waste(made, one(3200)) == pytest.approx((0.5 - 0.32) / 0.32)

    def test_the_fleet_s_own_policy_does_not_matter(self) -> None:
        made = Fleet()
        made.mix.pods = tuple(TypicalPod(shape, share) for shape, share in DEMAND)
        made.set_node(node("n1", [device("g0")], {"g0": (1, 4700, 0)}))
        assert waste(made, [pod_set(pod(HALF))]) == pytest.approx((0.5 - 0.47) / 0.47)
