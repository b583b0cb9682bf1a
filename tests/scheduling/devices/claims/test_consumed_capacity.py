"""Devices that are allocated to several claims: the part that a claim consumes is charged, counted and allocated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.claims.allocation import allocate, allocation_status
from scheduling.devices.claims.charges import ClaimRules
from scheduling.devices.claims.claim_reading import read_claim_spec, read_shares, read_taken
from scheduling.devices.claims.consumed_capacity import Dimension, read_amounts
from scheduling.devices.claims.evaluations import Evaluations
from scheduling.model.configuration import CapacitySource, Configuration, DeviceClassMapping
from scheduling.model.node import Node
from scheduling.model.quantity import NANOS, UNLIMITED
from tests.claim_objects import (
    DRIVER,
    Json,
    claim,
    claim_template,
    device,
    device_class,
    driver_class,
    pod_spec,
    request,
    resource_slice,
)
from tests.scheduling.devices.claims.test_charges import PATH, charge, objects, refusal

GI = 2**30
SOURCE = CapacitySource(DRIVER, "memory", f'device.driver == "{DRIVER}"')
BY_MEMORY = Configuration(device_class_mappings=(DeviceClassMapping("gpu.memory", (DRIVER,), capacities=(SOURCE,)),))
STEPS = {"default": "80Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "80Gi"}}
CLASS = f"devices of class {DRIVER}"


def shared(name: str = "gpu-0", memory: str = "80Gi", policy: Mapping[str, Any] | None = STEPS) -> Json:
    capacity: Json = {"value": memory} if policy is None else {"value": memory, "requestPolicy": policy}
    return device(name, capacity={"memory": capacity}, allowMultipleAllocations=True)


def of(memory: str, count: int = 1, *selectors: str) -> Json:
    return request(count, *selectors, capacity={"requests": {"memory": memory}})


def rules(*devices: Json, templates: tuple[Json, ...], claims: tuple[Json, ...] = ()) -> ClaimRules:
    slices = resource_slice("n1", devices or [shared("gpu-0"), shared("gpu-1")])
    return ClaimRules(objects(driver_class(), slices, *templates, *claims), BY_MEMORY)


class TestQuota:
    @pytest.mark.parametrize(
        ("wanted", "charged"),
        [
            (of("20Gi"), 20 * GI),
            (request(), 80 * GI),
            (of("15500Mi"), 16 * GI),
            (of("20Gi", 2), 40 * GI),
            (of("1Mi"), GI),
        ],
    )
    def test_the_part_that_a_claim_consumes_is_charged(self, wanted: Json, charged: int) -> None:
        found = rules(templates=(claim_template("gpu", wanted),))
        assert charge(found, pod_spec("gpu")).quota == {"gpu.memory": charged}

    def test_the_largest_part_among_the_matching_devices_is_charged(self) -> None:
        devices = [
            shared("gpu-0", policy={"default": "40Gi", "validValues": ["10Gi", "40Gi"]}),
            shared("gpu-1", policy={"default": "8Gi", "validValues": ["8Gi"]}),
            shared("gpu-2", policy=None),
        ]
        wanted = (claim_template("some", of("12Gi")), claim_template("all"))
        found = rules(*devices, templates=wanted)
        assert charge(found, pod_spec("some")).quota == {"gpu.memory": 40 * GI}
        assert charge(found, pod_spec("all")).quota == {"gpu.memory": 80 * GI}

    def test_every_way_in_which_kueue_refuses(self) -> None:
        at = f"{PATH}.devices.requests[0]"
        nowhere = rules(templates=(claim_template("gpu", of("1Gi", 3)),))
        assert refusal(nowhere, pod_spec("gpu")) == (
            f"{at}: Internal error: insufficient matching devices for capacity driver: 2 device(s) match but 3 "
            "requested"
        )
        without = rules(device("gpu-0", capacity={}), templates=(claim_template("gpu"),))
        assert refusal(without, pod_spec("gpu")) == (
            f'{at}: Internal error: matched devices have no capacity dimension "memory"'
        )
        large = rules(templates=(claim_template("gpu", of("81Gi")),))
        assert refusal(large, pod_spec("gpu")) == (
            f'{at}: Invalid value: "null": capacity request cannot be satisfied by any matched device\'s RequestPolicy '
            'for dimension "memory"'
        )

    @pytest.mark.parametrize("broken", ["deviceSelector", "DeviceClass selector"])
    def test_a_selector_that_cannot_be_evaluated_is_named(self, broken: str) -> None:
        missing = f'device.attributes["{DRIVER}"].missing == 1'
        source = CapacitySource(DRIVER, "memory", missing if broken == "deviceSelector" else "true")
        mapping = DeviceClassMapping("gpu.memory", (DRIVER,), capacities=(source,))
        classes = device_class(DRIVER, missing) if broken == "DeviceClass selector" else driver_class()
        found = ClaimRules(
            objects(classes, resource_slice("n1", [shared()]), claim_template("gpu")),
            Configuration(device_class_mappings=(mapping,)),
        )
        assert refusal(found, pod_spec("gpu")) == (
            f"{PATH}.devices.requests[0]: Internal error: CEL evaluation error in {broken} for device gpu-0: no such "
            "key: missing"
        )

    def test_an_extended_resource_cannot_be_counted_by_capacity(self) -> None:
        served = ClaimRules(
            objects(driver_class(extended="example.com/gpu"), resource_slice("n1", [shared()])), BY_MEMORY
        )
        assert refusal(served, pod_spec(extended={"example.com/gpu": "1"})) == (
            'spec.podSets[0].template.spec.containers[0]: Invalid value: "example.com/gpu": extended resource '
            f"example.com/gpu resolves to DeviceClass {DRIVER} with capacity sources configured; use "
            "ResourceClaimTemplates with capacity.requests for capacity-based quota"
        )


class TestNodes:
    def test_a_device_counts_as_often_as_the_requested_part_fits(self) -> None:
        found = rules(templates=(claim_template("small", of("20Gi")), claim_template("large", of("50Gi"))))
        small, large = f"20Gi of memory of {CLASS}", f"50Gi of memory of {CLASS}"
        for name in ("small", "large"):
            charge(found, pod_spec(name))
        assert found.places.on_node(Node("n1")).allocatable == {small: 8, large: 2}
        assert charge(found, pod_spec("large")).devices == {large: 1, small: 3}
        assert charge(found, pod_spec("small")).devices == {small: 1, large: 1}

    def test_kinds_that_differ_by_little_are_counted_apart(self) -> None:
        found = rules(templates=(claim_template("even", of("20Gi")), claim_template("more", of("20481Mi"))))
        for name in ("even", "more"):
            charge(found, pod_spec(name))
        steps = f"20Gi of memory of {CLASS}", f"20481Mi of memory of {CLASS}"
        assert [found.places.on_node(Node("n1")).allocatable[each] for each in steps] == [8, 6]

    def test_parts_that_claims_of_others_hold_are_taken(self) -> None:
        theirs = claim("theirs", [("n1", "gpu-0")])
        result = theirs["status"]["allocation"]["devices"]["results"][0]
        result |= {"shareID": "a671734a-e8e5-11e4-8fde-42010af09327", "consumedCapacity": {"memory": "30Gi"}}
        found = rules(templates=(claim_template("small", of("20Gi")),), claims=(theirs,))
        charge(found, pod_spec("small"))
        assert found.places.on_node(Node("n1")).foreign_usage == {f"20Gi of memory of {CLASS}": 2}

    def test_equal_devices_are_weighed_once_for_a_kind(self) -> None:
        """Tenants name kinds: a cluster with many devices must not weigh each of them again for each kind."""
        weighed: list[int | None] = []

        class Weighed(Dimension):
            def consumed(self, requested: int | None) -> int | None:
                weighed.append(requested)
                return requested

        templates = [claim_template(f"of-{size}", of(f"{size}Gi")) for size in (1, 2, 3)]
        slices = resource_slice("n1", [shared(f"gpu-{index}") for index in range(50)])
        known = objects(driver_class(), slices, *templates)
        (pool,) = known.pools
        devices = tuple(replace(each, dimensions={"memory": Weighed(80 * GI * NANOS)}) for each in pool.devices)
        by_device = Configuration(device_class_mappings=(DeviceClassMapping("gpus", (DRIVER,)),))
        found = ClaimRules(replace(known, pools=(replace(pool, devices=devices),)), by_device)
        for size in (1, 2, 3):
            charge(found, pod_spec(f"of-{size}"))
        assert weighed == [size * GI * NANOS for size in (1, 2, 3)]

    def test_a_new_kind_costs_its_namespace_a_look_at_each_device(self) -> None:
        evaluations = Evaluations()
        found = ClaimRules(
            objects(
                driver_class(),
                resource_slice("n1", [shared(f"gpu-{index}") for index in range(50)]),
                *(claim_template(f"of-{size}", of(f"{size}Gi")) for size in (1, 2)),
            ),
            BY_MEMORY,
            evaluations,
        )
        before = evaluations.snapshot()[1]
        for size in (1, 2):
            charge(found, pod_spec(f"of-{size}"))
        assert before - evaluations.snapshot()[1] >= 2 * 50

    def test_a_selector_sees_whether_a_device_is_shared(self) -> None:
        alone = request(1, "!device.allowMultipleAllocations")
        found = ClaimRules(
            objects(driver_class(), resource_slice("n1", [shared(), device("gpu-1")]), claim_template("gpu", alone)),
            Configuration(device_class_mappings=(DeviceClassMapping("gpus", (DRIVER,)),)),
        )
        charge(found, pod_spec("gpu"))
        assert found.places.on_node(Node("n1")).allocatable == {f"{CLASS} where !device.allowMultipleAllocations": 1}


class TestAllocation:
    def test_a_device_of_which_others_hold_a_part_is_given_to_no_claim_alone(self) -> None:
        """Its driver may stop sharing a device while parts of it are held."""
        known = ClaimRules(objects(driver_class(), resource_slice("n1", [device("gpu-0")])), BY_MEMORY).objects
        (held,) = (each for pool in known.pools for each in pool.devices)
        spec = read_claim_spec(claim_template("gpu", of("1Gi"))["spec"]["spec"])
        assert allocate([spec], "n1", known, frozenset(), {held.id: {"memory": GI * NANOS}}) is None

    def test_a_request_below_zero_frees_nothing(self) -> None:
        assert read_amounts({"memory": "-5Gi", "cores": "1e400"}) == {"memory": 0, "cores": UNLIMITED * NANOS}

    def test_claims_share_a_device_until_no_part_is_left(self) -> None:
        known = rules(shared(), templates=()).objects
        spec = read_claim_spec(claim_template("gpu", of("30Gi"))["spec"]["spec"])
        held: list[Json] = []
        for _ in range(2):
            chosen = allocate([spec], "n1", known, frozenset(), read_shares(held))
            assert chosen is not None
            status = allocation_status(chosen[0], spec, known, "n1")
            assert status["devices"]["results"][0]["consumedCapacity"] == {"memory": "30Gi"}
            held.append({"status": {"allocation": status}})
        shares = [each["status"]["allocation"]["devices"]["results"][0]["shareID"] for each in held]
        assert len(set(shares)) == 2
        assert not any(read_taken(each) for each in held)
        assert allocate([spec], "n1", known, frozenset(), read_shares(held)) is None

    def test_a_claim_may_get_several_parts_of_one_device(self) -> None:
        known = rules(shared(), templates=()).objects
        spec = read_claim_spec(claim_template("gpu", of("30Gi", 2))["spec"]["spec"])
        assert allocate([spec], "n1", known, frozenset(), {}) is not None
        alone = ClaimRules(objects(driver_class(), resource_slice("n1", [device("gpu-0")])), BY_MEMORY).objects
        assert (
            allocate([read_claim_spec(claim_template("gpu", request(2))["spec"]["spec"])], "n1", alone, (), {}) is None
        )

    @given(
        sizes=st.lists(st.integers(1, 24), min_size=1, max_size=3),
        kinds=st.lists(st.tuples(st.integers(1, 16), st.integers(1, 2)), min_size=1, max_size=3, unique=True),
        order=st.lists(st.integers(0, 2), max_size=20),
    )
    def test_as_many_claims_as_the_node_counts_can_be_allocated(
        self, sizes: list[int], kinds: list[tuple[int, int]], order: list[int]
    ) -> None:
        policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "3Gi"}}
        devices = [shared(f"gpu-{index}", f"{size}Gi", policy) for index, size in enumerate(sizes)]
        templates = tuple(claim_template(f"of-{size}-{count}", of(f"{size}Gi", count)) for size, count in kinds)
        found = ClaimRules(
            objects(driver_class(), resource_slice("n1", devices), *templates),
            Configuration(device_class_mappings=(DeviceClassMapping("gpus", (DRIVER,)),)),
        )
        for size, count in kinds:
            charge(found, pod_spec(f"of-{size}-{count}"))
        left = Counter(found.places.allocatable("n1"))
        held: list[Json] = []
        for size, count in (kinds[number % len(kinds)] for number in order):
            cost = charge(found, pod_spec(f"of-{size}-{count}")).devices
            if any(left[resource] < amount for resource, amount in cost.items()):
                continue
            left.subtract(cost)
            spec = found.objects.templates[f"team/of-{size}-{count}"]
            chosen = allocate([spec], "n1", found.objects, frozenset(), read_shares(held))
            assert chosen is not None
            held.append({"status": {"allocation": allocation_status(chosen[0], spec, found.objects, "n1")}})
        for device_id, consumed in read_shares(held).items():
            assert consumed["memory"] <= sizes[int(device_id.name.rpartition("-")[2])] * GI * NANOS
