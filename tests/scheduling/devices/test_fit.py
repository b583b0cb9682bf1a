"""Rules of the fit beyond the worked examples: order between containers, MIG instances, modes, scores."""

from __future__ import annotations

import pytest

from scheduling.devices.requests.requests import pod_device_request
from scheduling.model.device import MIG_MODE, Device, DeviceRequest, DeviceSlice, MigInstance, MigPlacement, MigProfile
from scheduling.model.node import Node
from scheduling.model.vendor import NVIDIA
from tests.scheduling.fleet_helpers import ask, device, devices_of, fleet, node, pod, reason_of, try_place

SMALL = MigProfile("1g.5gb", 4864, 15, 1, tuple(MigPlacement(start, 1) for start in range(7)))


def mig_device(uuid: str = "g0", memory_mib: int = 40_960, slots: int = 7) -> Device:
    return device(uuid, mode=MIG_MODE, memory_mib=memory_mib, slots=slots, mig_profiles=(SMALL,))


class TestOrderBetweenContainers:
    """HAMi sorts a node's devices in place, once per container, and its sort is stable."""

    def test_full_ties_keep_the_order_that_the_container_before_left(self) -> None:
        nodes = fleet(node("n1", [device("g0"), device("g1"), device("g2")]), device_policy="spread")
        asked = pod(ask(1, 1000), ask(1, 1000), ask(2, 1000))
        assert devices_of(try_place(nodes, asked)) == "n1: g2;g1;g0,g1"

    def test_a_pod_starts_from_the_order_of_the_inventory(self) -> None:
        nodes = fleet(node("n1", [device("g0"), device("g1"), device("g2")]), device_policy="spread")
        for key in ("one", "two"):
            try_place(nodes, pod(ask(1, 1000)), key=key)
        assert devices_of(try_place(nodes, pod(ask(2, 1000)))) == "n1: g0,g2"

    def test_init_containers_leave_no_order_behind(self) -> None:
        nodes = fleet(node("n1", [device("g0"), device("g1"), device("g2")]), device_policy="spread")
        asked = pod(ask(2, 1000), init=[ask(1, 1000), ask(1, 1000)])
        assert devices_of(try_place(nodes, asked)) == "n1: g2;g2;g2,g1"


class TestScore:
    """The request counts on devices whose type is the vendor's word; of both amounts the percentage counts."""

    @pytest.mark.parametrize(
        ("of_type", "asked", "chosen"),
        [
            ("NVIDIA A100", ask(1, 2000), "g1"),  # usage alone: 1/10 + 0.2 is less than 1/10 + 0.25
            ("NVIDIA", ask(1, 2000), "g0"),  # with the request: g0 2/10 + 0.45, g1 2/10 + 0.6
            ("NVIDIA", ask(1, 2000, percentage=10), "g1"),  # g0 2/10 + 0.35, g1 2/10 + 0.3
        ],
    )
    def test_what_is_compared(self, of_type: str, asked: DeviceRequest, chosen: str) -> None:
        devices = [device("g0", type=of_type), device("g1", type=of_type, memory_mib=5000)]
        nodes = fleet(node("n1", devices, {"g0": (1, 2500, 0), "g1": (1, 1000, 0)}), device_policy="spread")
        assert devices_of(try_place(nodes, pod(asked))) == f"n1: {chosen}"


class TestMode:
    def test_an_empty_mode_annotation_contains_no_mode(self) -> None:
        containers = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
        metadata = {"annotations": {"nvidia.com/vgpu-mode": ""}}
        asked = pod_device_request({"metadata": metadata, "spec": {"containers": containers}}, [NVIDIA])
        nodes = fleet(node("n1", [device("g0")]), node("n2", [device("h0", mode="")]))
        assert devices_of(try_place(nodes, asked)) == "n2: h0"
        assert reason_of(try_place(fleet(node("n1", [device("g0")])), asked)) == "1/1 CardTypeMismatch"

    def test_a_mig_device_serves_several_times_only_those_who_accept_mig(self) -> None:
        nodes = fleet(node("n1", [mig_device()]))
        assert devices_of(try_place(nodes, pod(ask(2, 1000), mode="mig,hami-core"))) == "n1: g0,g0"
        assert reason_of(try_place(nodes, pod(ask(2, 1000), mode="hami-core"))) == "NodeInsufficientDevice"


class TestInstancesOfOneContainer:
    """Between a container's own instances of a MIG device only the places are compared, not slots, memory or cores."""

    @pytest.mark.parametrize("asked", [ask(3, 4000, 80), ask(3, 20_000), ask(3, 1000, 100)])
    def test_amounts_are_compared_with_what_was_there_before(self, asked: DeviceRequest) -> None:
        profile = MigProfile("1g.20gb", 20_000, 40, 1, tuple(MigPlacement(start, 1) for start in range(4)))
        nodes = fleet(node("n1", [device("g0", mode=MIG_MODE, memory_mib=40_960, slots=2, mig_profiles=(profile,))]))
        assert devices_of(try_place(nodes, pod(asked))) == "n1: g0,g0,g0"

    def test_mutex_looks_at_earlier_tenants_only(self) -> None:
        nodes = fleet(node("n1", [mig_device()]), device_policy="mutex")
        assert devices_of(try_place(nodes, pod(ask(2, 1000)), key="first")) == "n1: g0,g0"
        assert reason_of(try_place(nodes, pod(ask(1, 1000)))) == "1/1 ExclusiveDeviceAllocateConflict"


def test_numa_groups_are_not_counted_while_links_decide() -> None:
    nodes = fleet(node("n1", [device(f"g{n}", numa=n // 2) for n in range(4)]))
    asked = pod(ask(3, 1000), device_policy="topology-aware", numa_bind=True)
    assert reason_of(try_place(nodes, asked)) == "2/4 AllocatedCardsInsufficientRequest"
    asked = pod(ask(3, 1000), device_policy="spread", numa_bind=True)
    assert reason_of(try_place(nodes, asked)) == "2/4 AllocatedCardsInsufficientRequest, 2/4 NumaNotFit"


class TestInstancesOfAPod:
    """All MIG instances of a pod stay taken until it is gone, those of its init containers too."""

    def test_every_place_is_taken_and_given_back(self) -> None:
        nodes = fleet(node("n1", [mig_device()]))
        try_place(nodes, pod(ask(2, 1000), ask(2, 1000), init=[ask(1, 1000)]), key="first")
        assert sorted(instance.placement.start for instance in nodes.table.mig["g0"]) == [3, 4, 5, 6, 6]
        assert devices_of(try_place(nodes, pod(ask(3, 1000)))) == "n1: g0,g0,g0"
        refused = reason_of(try_place(nodes, pod(ask(4, 1000))))
        assert refused == "1/1 CardMigTopologyInfeasible, 3/1 AllocatedCardsInsufficientRequest"
        nodes.release("first")
        assert nodes.table.mig["g0"] == []


class TestSlicesOfAnotherMode:
    """HAMi takes a device for unhealthy while a pod on it has no MIG instance of a MIG device, or one of any other
    device."""

    @pytest.mark.parametrize("mig", [False, True])
    def test_the_device_is_unhealthy_until_the_pod_is_gone(self, mig: bool) -> None:
        instance = MigInstance("1g.5gb", MigPlacement(6, 1))
        slices = [DeviceSlice("g0", "n1", 1000, 0), DeviceSlice("g0", "n1", 4864, 15, mig=instance)]
        fits, does_not_fit = slices[::-1] if mig else slices
        of_mode = mig_device() if mig else device("g0")
        nodes = fleet(Node("n1", devices=(of_mode,), found=(fits,)))
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: g0"
        nodes.set_node(Node("n1", devices=(of_mode,), found=(fits, does_not_fit)))
        assert reason_of(try_place(nodes, pod(ask(1, 1000)))) == "1/1 CardNotHealth"
        nodes.set_node(Node("n1", devices=(of_mode,), found=(fits,)))
        assert devices_of(try_place(nodes, pod(ask(1, 1000)))) == "n1: g0"
