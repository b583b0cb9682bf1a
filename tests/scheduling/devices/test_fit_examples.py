"""HAMi's rules in worked examples, X14 to X27 and X34 to X39: what fits on a device, and what says no."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.devices.search.pod_usage import peak_usage
from scheduling.model.device import MIG_MODE, Device, MigPlacement, MigProfile
from scheduling.model.placement import Placement, PlacementRefusal, PodDeviceRequest
from tests.scheduling.fleet_helpers import (
    ask,
    device,
    devices_of,
    fleet,
    node,
    pod,
    pod_set,
    reason_of,
    try_place,
    two_devices,
)

REFUSALS: list[tuple[str, list[Device], dict[str, tuple[int, int, int]], PodDeviceRequest, str]] = [
    ("x14", [device("g0")], {"g0": (1, 1000, 0)}, pod(ask(1, 1000, 100)), "1/1 ExclusiveDeviceAllocateConflict"),
    ("x15 no cores", [device("g0")], {"g0": (1, 1000, 100)}, pod(ask(1, 1000)), "1/1 CardComputeUnitsExhausted"),
    ("x15 some cores", [device("g0")], {"g0": (1, 1000, 100)}, pod(ask(1, 1000, 10)), "1/1 CardInsufficientCore"),
    ("x16", [device("g0")], {"g0": (10, 1000, 10)}, pod(ask(1, 100, 1)), "1/1 CardTimeSlicingExhausted"),
    (
        "x17",
        [device("g0"), device("g1")],
        {"g0": (1, 5000, 0), "g1": (1, 7000, 0)},
        pod(ask(2, 4000)),
        "1/2 AllocatedCardsInsufficientRequest, 1/2 CardInsufficientMemory",
    ),
    ("x18", [device("g0"), device("g1")], {}, pod(ask(3, 100)), "NodeInsufficientDevice"),
    (
        "x22",
        [device("g0", health=False), device("g1"), device("g2"), device("g3")],
        {"g1": (10, 100, 0), "g2": (1, 9500, 10), "g3": (1, 100, 95)},
        pod(ask(1, 1000, 10)),
        "1/4 CardInsufficientCore, 1/4 CardInsufficientMemory, 1/4 CardNotHealth, 1/4 CardTimeSlicingExhausted",
    ),
    (
        "x23",
        [device("g0"), device("g1", cordoned=True)],
        {},
        pod(ask(2, 1000)),
        "1/2 AllocatedCardsInsufficientRequest, 1/2 CardCordoned",
    ),
    (
        "x25",
        [device("g0"), device("g1")],
        {},
        pod(ask(2, 1000), use_uuids=("g0",)),
        "1/2 AllocatedCardsInsufficientRequest, 1/2 CardUuidMismatch",
    ),
    (
        "x29",
        [device(f"g{n}", numa=n // 2) for n in range(4)],
        {"g1": (1, 9500, 0), "g2": (1, 9500, 0)},
        pod(ask(2, 2000), numa_bind=True),
        "1/4 AllocatedCardsInsufficientRequest, 1/4 NumaNotFit, 2/4 CardInsufficientMemory",
    ),
]


@pytest.mark.parametrize(("name", "devices", "used", "asked", "reason"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_refusals(name: str, devices: list[Device], used: Any, asked: PodDeviceRequest, reason: str) -> None:
    assert reason_of(try_place(fleet(node("n1", devices, used)), asked)) == reason


class TestFit:
    @pytest.mark.parametrize(
        ("total", "percentage", "memory", "granted"),
        [(24_576, 33, 0, 8110), (40_960, 25, 0, 10_240), (81_559, 10, 0, 8155), (24_576, 50, 3000, 3000)],
    )
    def test_x19_percentages_round_down_and_memory_wins(
        self, total: int, percentage: int, memory: int, granted: int
    ) -> None:
        nodes = fleet(node("n1", [device("g0", memory_mib=total)]))
        outcome = try_place(nodes, pod(ask(1, memory, 0, percentage)))
        assert isinstance(outcome, Placement)
        assert outcome.pods[0].slices[0].memory_mib == granted

    def test_x20_memory_scaling_counts_in_percentages(self) -> None:
        nodes = fleet(node("n1", [device("g0", memory_mib=44_236)]))
        outcome = try_place(nodes, pod(ask(1, 0, 0, 50)))
        assert isinstance(outcome, Placement)
        assert outcome.pods[0].slices[0].memory_mib == 22_118

    def test_x21_exclusivity_only_on_devices_of_exactly_100_cores(self) -> None:
        nodes = fleet(node("n1", [device("g0", cores_percent=150)], {"g0": (1, 100, 20)}))
        assert devices_of(try_place(nodes, pod(ask(1, 1000, 100)))) == "n1: g0"

    def test_x23_a_cordoned_device_is_passed_over(self) -> None:
        nodes = fleet(node("n1", [device("g0"), device("g1", cordoned=True)]))
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: g0"

    def test_x24_types_are_substrings(self) -> None:
        models = ["NVIDIA A100-SXM4-40GB", "NVIDIA A10", "NVIDIA T4"]
        nodes = fleet(node("n1", [device(f"g{n}", type=model) for n, model in enumerate(models)]))
        assert devices_of(try_place(nodes, pod(ask(2, 1000), use_types=("A10",)))) == "n1: g1,g0"
        assert devices_of(try_place(nodes, pod(ask(1, 1000), use_types=("A10",)))) == "n1: g1"
        only_a10 = pod(ask(2, 1000), use_types=("A10",), nouse_types=("a100",))
        assert reason_of(try_place(nodes, only_a10)) == "1/3 AllocatedCardsInsufficientRequest, 2/3 CardTypeMismatch"

    def test_x26_an_exclusive_device(self) -> None:
        nodes = fleet(node("n1", [device("g0"), device("g1")]), device_policy="binpack")
        assert devices_of(try_place(nodes, pod(ask(1, 3000, 100)), key="exclusive")) == "n1: g1"
        short = "1/2 AllocatedCardsInsufficientRequest, 1/2 "
        assert reason_of(try_place(nodes, pod(ask(2, 1000)))) == short + "CardComputeUnitsExhausted"
        assert reason_of(try_place(nodes, pod(ask(2, 1000, 10)))) == short + "CardInsufficientCore"
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: g0"

    def test_x27_fragmentation(self) -> None:
        packed = fleet(node("n1", [device("g0"), device("g1")]), device_policy="binpack")
        sizes = (3000, 5000, 8000)
        chosen = [devices_of(try_place(packed, pod(ask(1, size)), key=str(size))) for size in sizes]
        assert chosen == ["n1: g1", "n1: g1", "n1: g0"]
        spread = two_devices()
        assert [devices_of(try_place(spread, pod(ask(1, size)), key=str(size))) for size in sizes[:2]] == [
            "n1: g1",
            "n1: g0",
        ]
        assert reason_of(try_place(spread, pod(ask(1, 8000)))) == "2/2 CardInsufficientMemory"


class TestContainers:
    @pytest.mark.parametrize(
        ("policy", "sizes", "chosen"),
        [
            ("binpack", (6000, 6000), "g1;g0"),
            ("spread", (6000, 6000), "g1;g0"),
            ("binpack", (3000, 3000), "g1;g1"),
            ("spread", (3000, 3000), "g1;g0"),
        ],
    )
    def test_x34_two_containers(self, policy: str, sizes: tuple[int, int], chosen: str) -> None:
        asked = pod(*(ask(1, size) for size in sizes), device_policy=policy)
        assert devices_of(try_place(two_devices(), asked)) == f"n1: {chosen}"

    def test_x35_a_container_without_devices_keeps_its_place(self) -> None:
        asked = pod(ask(1, 3000), None, ask(1, 3000), device_policy="binpack")
        assert devices_of(try_place(two_devices(), asked)) == "n1: g1;;g1"

    def test_x36_an_init_container_counts_with_its_peak(self) -> None:
        nodes = fleet(node("n1", [device("g0")]))
        outcome = try_place(nodes, pod(ask(1, 3000), init=[ask(1, 8000)]), key="first")
        assert devices_of(outcome) == "n1: g0;g0"
        assert nodes.decided_usage("n1", "g0") == (1, 8000, 0)
        assert reason_of(try_place(nodes, pod(ask(1, 3000)))) == "1/1 CardInsufficientMemory"
        assert isinstance(outcome, Placement)
        after_init = peak_usage(outcome.pods[0].containers[1:], 0)
        assert (after_init["g0"].slots, after_init["g0"].memory_mib) == (1, 3000)

    def test_x37_init_containers_run_one_after_another(self) -> None:
        nodes = fleet(node("n1", [device("g0")]))
        asked = pod(ask(1, 3000), ask(1, 4000), init=[ask(1, 8000), ask(1, 9000)])
        try_place(nodes, asked, key="pod")
        assert nodes.decided_usage("n1", "g0") == (2, 9000, 0)


def profile(name: str, memory: int, cores: int, starts: list[int], size: int) -> MigProfile:
    return MigProfile(name, memory, cores, size, tuple(MigPlacement(start, size) for start in starts))


A100_40 = (
    profile("1g.5gb", 4864, 15, list(range(7)), 1),
    profile("2g.10gb", 9856, 29, [0, 2, 4], 2),
    profile("3g.20gb", 19_968, 43, [0, 4], 4),
    profile("7g.40gb", 40_192, 100, [0], 8),
)


class TestMig:
    def a_device(self) -> Fleet:
        return fleet(node("n1", [device("g0", mode=MIG_MODE, memory_mib=40_960, slots=7, mig_profiles=A100_40)]))

    def test_x38_profiles_and_places(self) -> None:
        nodes = self.a_device()
        expected = [(3000, "1g.5gb", 6), (12_000, "3g.20gb", 0), (8000, "2g.10gb", 4)]
        for memory, name, start in expected:
            outcome = try_place(nodes, pod(ask(1, memory)), key=name)
            assert isinstance(outcome, Placement)
            (part,) = outcome.pods[0].slices
            assert part.mig is not None
            assert (part.mig.profile, part.mig.placement.start) == (name, start)
        assert reason_of(try_place(nodes, pod(ask(1, 8000)))) == "1/1 CardInsufficientMemory"
        assert reason_of(try_place(nodes, pod(ask(1, 4000)))) == "1/1 CardMigTopologyInfeasible"

    def test_x38_one_device_gives_several_instances(self) -> None:
        outcome = try_place(self.a_device(), pod(ask(2, 9000)))
        assert isinstance(outcome, Placement)
        parts = outcome.pods[0].slices
        assert [part.mig and part.mig.placement.start for part in parts] == [0, 2]
        assert {(part.uuid, part.memory_mib, part.cores_percent) for part in parts} == {("g0", 9856, 29)}

    @pytest.mark.parametrize(
        ("profiles", "asked", "held", "said"),
        [
            (A100_40[:3], 30_000, [], "no MIG profile has 30000 MiB, the largest is 3g.20gb with 19968 MiB"),
            (A100_40, 0, [], "no MIG profile has 40960 MiB, the largest is 7g.40gb with 40192 MiB"),
            (A100_40, 11_000, [3000, 3000, 15_000], "there is no place left for an instance of 3g.20gb or 7g.40gb"),
            ((), 3000, [], "the plugin registered no MIG profile"),
        ],
    )
    def test_j2_an_instance_that_no_geometry_gives(
        self, profiles: tuple[MigProfile, ...], asked: int, held: list[int], said: str
    ) -> None:
        mig = device("g0", mode=MIG_MODE, memory_mib=40_960, slots=7, mig_profiles=profiles)
        nodes = fleet(node("n1", [mig]))
        for number, memory in enumerate(held):
            assert isinstance(try_place(nodes, pod(ask(1, memory)), key=str(number)), Placement)
        request = ask(1, asked) if asked else ask(1, percentage=100)
        refused = try_place(nodes, pod(request))
        assert isinstance(refused, PlacementRefusal)
        assert refused.nearest_reason == "1/1 CardMigTopologyInfeasible"
        assert refused.message.endswith(
            f"of 1 device 1 is without the requested MIG instance ({said}) (1/1 CardMigTopologyInfeasible)."
        )

    def test_a_released_instance_frees_its_place(self) -> None:
        nodes = self.a_device()
        try_place(nodes, pod(ask(1, 40_000)), key="whole")
        assert nodes.table.mig["g0"]
        nodes.release("whole")
        assert not nodes.table.mig["g0"]


class TestResourceQuota:
    def limited(self, *devices: Device) -> Fleet:
        nodes = fleet(node("n1", devices))
        nodes.quotas.set_quota(NamespaceQuota("team", "gpus", {"limits.nvidia.com/gpumem": 10_000, "limits.cpu": 4}))
        return nodes

    def place(self, nodes: Fleet, asked: PodDeviceRequest, key: str | None = None) -> Any:
        outcome = nodes.place([pod_set(asked, namespace="team")])
        if key and isinstance(outcome, Placement):
            nodes.reserve(key, outcome)
        return outcome

    def test_x39_the_namespace_s_quota(self) -> None:
        nodes = self.limited(device("g0"), device("g1"))
        self.place(nodes, pod(ask(1, 6000), use_uuids=("g0",)), key="held")
        only_g1 = ("g1",)
        refused = self.place(nodes, pod(ask(1, 5000), use_uuids=only_g1))
        assert reason_of(refused) == "1/2 CardUuidMismatch, 1/2 ResourceQuotaNotFit"
        assert devices_of(self.place(nodes, pod(ask(1, 4000), use_uuids=only_g1))) == "n1: g1"
        assert "ResourceQuotaNotFit" in reason_of(self.place(nodes, pod(ask(1, 0, 0, 50), use_uuids=only_g1)))

    def test_x39_two_devices_count_together(self) -> None:
        nodes = self.limited(device("g0"), device("g1"))
        nodes.quotas.set_quota(NamespaceQuota("team", "gpus", {"limits.nvidia.com/gpumem": 4000}))
        refused = self.place(nodes, pod(ask(2, 3000)))
        assert reason_of(refused) == "1/2 AllocatedCardsInsufficientRequest, 1/2 ResourceQuotaNotFit"

    def test_a_release_gives_the_quota_back(self) -> None:
        nodes = self.limited(device("g0"), device("g1"))
        self.place(nodes, pod(ask(1, 9000)), key="held")
        nodes.release("held")
        assert isinstance(self.place(nodes, pod(ask(1, 9000))), Placement)
