"""The bound on pods per node: exact for one slice of one device, never too low."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpus.vendors import AWS_NEURON
from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.upper_bound import MOST
from scheduling.model.device import Device, DeviceRequest, DeviceSlice, MigPlacement, MigProfile
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PodDeviceRequest
from tests.scheduling.fleet_helpers import ask, device, fleet, node, pod, pod_set

TWO_DEVICES = node("n1", [device("g0"), device("g1")], {"g0": (1, 4_000, 30)})


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (pod(ask(1, 3_000)), 2 + 3),
        (pod(ask(1, 0, cores=40)), 1 + 2),
        (pod(ask(1)), 9 + 10),
        (pod(ask(1, percentage=50)), 1 + 2),
        (pod(ask(1, 1_000, cores=100)), 0 + 1),
        (pod(ask(2, 3_000)), 2),
        (pod(ask(1, 3_000), ask(1, 3_000)), 2),
        (pod(ask(1, 1_000), ask(1, 0, cores=50)), 3),
        (pod(ask(1, 1_000), init=[ask(1, 9_000)]), 1),
        (pod(ask(1, 1_000), nouse_uuids=("g1",)), 6),
        (pod(ask(1, 11_000)), 0),
    ],
)
def test_room_beside_what_is_held(devices: PodDeviceRequest, expected: int) -> None:
    assert fleet(TWO_DEVICES).most_pods(devices) == {"n1": expected}


def test_devices_out_of_service_have_no_room() -> None:
    out = node("n1", [device("g0", health=False), device("g1", cordoned=True)])
    assert fleet(out, node("n2", [])).most_pods(pod(ask(1))) == {"n1": 0, "n2": 0}


def test_mutex_gives_one_slice_per_device() -> None:
    assert fleet(TWO_DEVICES).most_pods(pod(ask(1, 1_000), device_policy="mutex")) == {"n1": 1}


def test_mig_devices_set_no_bound() -> None:
    profile = MigProfile("1g", 5_000, 14, 1, (MigPlacement(0, 1),))
    mig = node("n1", [device("g0", mode="mig", mig_profiles=(profile,))])
    assert fleet(mig).most_pods(pod(ask(1, 4_000))) == {"n1": MOST}


def test_pods_without_devices_are_not_bound() -> None:
    assert fleet(TWO_DEVICES).most_pods(pod(None)) == {"n1": MOST}


def test_reservations_count_unless_they_are_thought_away() -> None:
    where = fleet(node("n1", [device("g0")]))
    placed = where.place([pod_set(pod(ask(1, 6_000)))])
    assert isinstance(placed, Placement)
    where.reserve("a", placed)
    assert where.most_pods(pod(ask(1, 3_000))) == {"n1": 1}
    assert where.most_pods(pod(ask(1, 3_000)), without=["a"]) == {"n1": 3}
    assert where.most_pods(pod(ask(1, 3_000))) == {"n1": 1}


def test_thinking_reservations_away_right_after_a_device_came() -> None:
    where = fleet(node("n1", [device("g0")]))
    placed = where.place([pod_set(pod(ask(1, 6_000)))])
    assert isinstance(placed, Placement)
    where.reserve("a", placed)
    where.set_node(node("n1", [device("g0"), device("g1", health=False)]))
    assert isinstance(where.place([pod_set(pod(ask(1, 6_000)))], without=["a"]), Placement)
    assert not isinstance(where.place([pod_set(pod(ask(1, 6_000)))]), Placement)


def filled(where: Fleet, devices: PodDeviceRequest) -> int:
    """How many pods the search places on the only node."""
    count = 0
    while isinstance(where.place([pod_set(devices, count + 1)]), Placement):
        count += 1
    return count


asks = st.builds(
    ask,
    st.integers(1, 2),
    st.sampled_from([0, 1_500, 4_000]),
    st.sampled_from([0, 30, 100]),
)
used = st.tuples(st.integers(0, 3), st.sampled_from([0, 2_500]), st.sampled_from([0, 35]))


@given(st.lists(asks, min_size=1, max_size=2), st.lists(used, min_size=1, max_size=3), st.booleans())
@settings(deadline=None)
def test_the_bound_is_never_too_low(
    containers: list[DeviceRequest], usages: list[tuple[int, int, int]], one: bool
) -> None:
    held = {f"g{number}": usage for number, usage in enumerate(usages)}
    made = fleet(node("n1", [device(name, slots=4) for name in held], held))
    devices = pod(*(containers[:1] if one else containers))
    most = made.most_pods(devices)["n1"]
    assert filled(made, devices) <= most
    if one and containers[0].count == 1 and containers[0].cores_percent:
        assert filled(made, devices) == most


@pytest.mark.parametrize(("cores", "pods"), [(1, 3), (2, 1)])
def test_cores_that_are_bits(cores: int, pods: int) -> None:
    devices = tuple(Device(f"w{n}", n, "AWSNeuron", "AWSNeuron", 2, 100, 0b11, mode="") for n in range(2))
    held = (DeviceSlice("w0", "n1", 50, 0b10, vendor="AWSNeuron"),)
    where = Fleet([AWS_NEURON])
    where.set_node(Node("n1", devices=devices, found=held))
    asked = DeviceRequest("AWSNeuron", 1, 0, 50 * cores, 50 * cores, cores)
    assert where.most_pods(PodDeviceRequest(containers=((asked,),))) == {"n1": pods}
