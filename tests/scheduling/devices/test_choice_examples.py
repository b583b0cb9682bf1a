"""HAMi's rules in worked examples, X1 to X13 and X28 to X33: which node and which devices. The numbers are those of the
published behaviour."""

from __future__ import annotations

import pytest

from scheduling.model.placement import Placement, ScoringWeights
from tests.scheduling.fleet_helpers import ask, device, devices_of, fleet, node, pod, reason_of, try_place, two_devices


class TestNodePolicy:
    @pytest.mark.parametrize(("policy", "chosen"), [("binpack", "n1: g0"), ("spread", "n2: h0")])
    def test_x1_fuller_or_emptier_node(self, policy: str, chosen: str) -> None:
        nodes = fleet(node("n1", [device("g0")], {"g0": (1, 5000, 50)}), node("n2", [device("h0")]), node_policy=policy)
        assert nodes.table.base_scores.tolist() == [11.0, 0.0]
        assert devices_of(try_place(nodes, pod(ask(1, 2000, 20)))) == chosen

    @pytest.mark.parametrize(
        ("policy", "with_request", "chosen"),
        [
            ("binpack", False, "a: g0"),
            ("spread", False, "b: h0"),
            ("binpack", True, "b: h0"),
            ("spread", True, "a: g0"),
        ],
    )
    def test_x2_the_request_is_not_part_of_the_score_unless_asked_for(
        self, policy: str, with_request: bool, chosen: str
    ) -> None:
        nodes = fleet(
            node("a", [device("g0", memory_mib=80_000)], {"g0": (1, 20_000, 20)}),
            node("b", [device("h0", memory_mib=16_000)], {"h0": (1, 3000, 20)}),
            node_policy=policy,
            score_includes_request=with_request,
        )
        assert devices_of(try_place(nodes, pod(ask(1, 12_000, 20)))) == chosen

    @pytest.mark.parametrize("policy", ["binpack", "spread"])
    def test_x3_a_better_score_does_not_help_a_node_that_does_not_fit(self, policy: str) -> None:
        nodes = fleet(
            node("a", [device("g0"), device("g1")], {"g0": (2, 8000, 80)}),
            node("b", [device("h0"), device("h1")], {"h0": (1, 5000, 50), "h1": (1, 5000, 50)}),
            node_policy=policy,
        )
        assert nodes.table.base_scores.tolist() == pytest.approx([9.0, 11.0])
        assert devices_of(try_place(nodes, pod(ask(1, 6000, 60)))) == "a: g1"

    @pytest.mark.parametrize(
        ("node_policy", "device_policy", "chosen"),
        [
            ("binpack", "binpack", ["n1: a1", "n1: a1", "n1: a0", "n1: a0"]),
            ("binpack", "spread", ["n1: a1", "n1: a0", "n1: a1", "n1: a0"]),
            ("spread", "binpack", ["n1: a1", "n2: b1", "n1: a1", "n2: b1"]),
            ("spread", "spread", ["n1: a1", "n2: b1", "n1: a0", "n2: b0"]),
        ],
    )
    def test_x4_four_pods_in_a_row(self, node_policy: str, device_policy: str, chosen: list[str]) -> None:
        nodes = fleet(
            node("n1", [device("a0"), device("a1")]),
            node("n2", [device("b0"), device("b1")]),
            node_policy=node_policy,
            device_policy=device_policy,
        )
        assert [devices_of(try_place(nodes, pod(ask(1, 4000, 30)), key=f"pod{n}")) for n in range(4)] == chosen

    @pytest.mark.parametrize("policy", ["binpack", "spread"])
    def test_x5_ties_go_to_the_smaller_name(self, policy: str) -> None:
        nodes = fleet(*(node(name, [device(f"{name}0")]) for name in ("n2", "n3", "n1")), node_policy=policy)
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: n10"

    def test_x6_a_node_without_registered_devices_is_refused(self) -> None:
        nodes = fleet(node("n1", []), node("n2", [device("g0")]))
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n2: g0"
        assert reason_of(try_place(nodes, pod(ask(1, 20_000)))) == "node unregistered"


class TestDevicePolicy:
    @pytest.mark.parametrize(("policy", "chosen"), [("binpack", "g0"), ("spread", "g1"), ("pack", "g1")])
    def test_x7_an_unknown_word_means_spread(self, policy: str, chosen: str) -> None:
        nodes = two_devices(g0=(1, 3000, 30))
        assert devices_of(try_place(nodes, pod(ask(1, 2000, 20), device_policy=policy))) == f"n1: {chosen}"

    @pytest.mark.parametrize(
        ("policy", "with_request", "chosen"),
        [("spread", False, "g1"), ("binpack", False, "g0"), ("spread", True, "g0"), ("binpack", True, "g1")],
    )
    def test_x8_devices_of_mixed_size(self, policy: str, with_request: bool, chosen: str) -> None:
        devices = [device("g0", memory_mib=80_000), device("g1", memory_mib=40_000)]
        nodes = fleet(
            node("n1", devices, {"g0": (1, 16_000, 0), "g1": (1, 6000, 0)}), score_includes_request=with_request
        )
        assert devices_of(try_place(nodes, pod(ask(1, 20_000), device_policy=policy))) == f"n1: {chosen}"

    @pytest.mark.parametrize("numa", [(0, 0, 0, 0), (0, 0, 1, 1)])
    @pytest.mark.parametrize("policy", ["binpack", "spread", "numa", "binpack,numa"])
    def test_x9_equal_devices(self, policy: str, numa: tuple[int, ...]) -> None:
        nodes = fleet(node("n1", [device(f"g{n}", numa=numa[n]) for n in range(4)]))
        assert devices_of(try_place(nodes, pod(ask(1, 1000), device_policy=policy))) == "n1: g3"

    @pytest.mark.parametrize(
        ("policy", "order"),
        [
            ("binpack", "g1,g0,g3,g2"),
            ("binpack,numa", "g1,g0,g3,g2"),
            ("numa,binpack", "g1,g3,g0,g2"),
            ("numa,spread", "g3,g1,g2,g0"),
            ("spread,numa", "g3,g2,g1,g0"),
        ],
    )
    def test_x10_order_of_trying(self, policy: str, order: str) -> None:
        nodes = fleet(
            node("n1", [device(f"g{n}", numa=n % 2) for n in range(4)], {"g0": (1, 3000, 0), "g1": (1, 3000, 0)})
        )
        assert devices_of(try_place(nodes, pod(ask(4, 1000), device_policy=policy))) == f"n1: {order}"
        assert devices_of(try_place(nodes, pod(ask(1, 1000), device_policy=policy))) == f"n1: {order[:2]}"

    def test_x10_mutex_takes_only_unused_devices(self) -> None:
        nodes = fleet(
            node("n1", [device(f"g{n}", numa=n % 2) for n in range(4)], {"g0": (1, 3000, 0), "g1": (1, 3000, 0)})
        )
        assert devices_of(try_place(nodes, pod(ask(2, 1000), device_policy="mutex"))) == "n1: g3,g2"
        assert "2/4 ExclusiveDeviceAllocateConflict" in reason_of(
            try_place(nodes, pod(ask(3, 1000), device_policy="mutex"))
        )

    @pytest.mark.parametrize(("weights", "chosen"), [((1, 1, 1), "g1"), ((0, 0, 1), "g0"), ((1, 1, 3), "g0")])
    def test_x11_scoring_weights(self, weights: tuple[int, int, int], chosen: str) -> None:
        nodes = two_devices(g0=(1, 2000, 60), g1=(1, 5000, 10))
        asked = pod(ask(1, 1000, 10), device_policy="spread", weights=ScoringWeights(*weights))
        assert devices_of(try_place(nodes, asked)) == f"n1: {chosen}"

    @pytest.mark.parametrize(("policy", "chosen"), [("binpack", "g0,g1"), ("spread", "g2,g1")])
    def test_x12_two_of_three(self, policy: str, chosen: str) -> None:
        devices = [device("g0"), device("g1"), device("g2")]
        nodes = fleet(node("n1", devices, {"g0": (2, 6000, 40), "g1": (1, 1000, 10)}))
        assert devices_of(try_place(nodes, pod(ask(2, 2000, 10), device_policy=policy))) == f"n1: {chosen}"

    def test_x13_mutex_with_all_devices_in_use(self) -> None:
        nodes = two_devices(g0=(1, 100, 0), g1=(1, 100, 0))
        refused = try_place(nodes, pod(ask(1, 1000), device_policy="mutex"))
        assert reason_of(refused) == "2/2 ExclusiveDeviceAllocateConflict"


PAIRED = [
    device(
        f"g{n}",
        numa=n // 2,
        pair_scores={f"g{other}": 200 if other // 2 == n // 2 else 20 for other in range(4) if other != n},
    )
    for n in range(4)
]


class TestNumaAndTopology:
    @pytest.mark.parametrize(
        ("bind", "policy", "chosen"),
        [(False, "spread", "g3,g1"), (True, "spread", "g1,g0"), (True, "binpack", "g1,g0")],
    )
    def test_x28_numa_bind_keeps_the_devices_together(self, bind: bool, policy: str, chosen: str) -> None:
        nodes = fleet(node("n1", [device(f"g{n}", numa=n // 2) for n in range(4)], {"g2": (1, 9500, 10)}))
        asked = pod(ask(2, 2000), device_policy=policy, numa_bind=bind)
        assert devices_of(try_place(nodes, asked)) == f"n1: {chosen}"

    def test_x29_without_binding_the_devices_are_found(self) -> None:
        devices = [device(f"g{n}", numa=n // 2) for n in range(4)]
        nodes = fleet(node("n1", devices, {"g1": (1, 9500, 0), "g2": (1, 9500, 0)}))
        assert devices_of(try_place(nodes, pod(ask(2, 2000)))) == "n1: g3,g0"

    @pytest.mark.parametrize(("policy", "chosen"), [("spread", "g3,g2"), ("binpack", "g1,g0")])
    def test_x30_directions_of_numa_binding(self, policy: str, chosen: str) -> None:
        nodes = fleet(node("n1", [device(f"g{n}", numa=n // 2) for n in range(4)]))
        asked = pod(ask(2, 2000), device_policy=policy, numa_bind=True)
        assert devices_of(try_place(nodes, asked)) == f"n1: {chosen}"

    def test_x31_linked_devices(self) -> None:
        nodes = fleet(node("n1", PAIRED), device_policy="topology-aware")
        assert devices_of(try_place(nodes, pod(ask(2, 1000)))) == "n1: g3,g2"
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: g3"

    def test_x32_a_single_device_leaves_good_pairs_whole(self) -> None:
        nodes = fleet(node("n1", PAIRED, {"g3": (10, 10_000, 0)}), device_policy="topology-aware")
        assert devices_of(try_place(nodes, pod(ask(2, 1000)))) == "n1: g1,g0"
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: g2"

    def test_x33_without_scores_the_first_tried_win(self) -> None:
        nodes = fleet(node("n1", [device(f"g{n}") for n in range(4)]), device_policy="topology-aware")
        assert devices_of(try_place(nodes, pod(ask(2, 1000)))) == "n1: g3,g2"

    def test_many_devices_are_grown_into_a_group(self) -> None:
        devices = [
            device(
                f"g{n}",
                pair_scores={f"g{other}": 100 if {n, other} <= {3, 9, 14, 20, 25, 28} else 1 for other in range(32)},
            )
            for n in range(32)
        ]
        outcome = try_place(fleet(node("n1", devices), device_policy="topology-aware"), pod(ask(6, 1000)))
        assert isinstance(outcome, Placement)
        assert {part.index for part in outcome.pods[0].slices} == {3, 9, 14, 20, 25, 28}
