"""What claims are charged, and which claims keep a workload out, in Kueue's words; which nodes have the devices."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.devices.claims.charges import ClaimCharge, ClaimRefusal, ClaimRules
from scheduling.devices.claims.claim_reading import (
    as_v1,
    read_claim_spec,
    read_class,
    read_pools,
    read_shares,
    read_taken,
)
from scheduling.devices.claims.objects import DeviceObjects
from scheduling.model.configuration import Configuration, CounterSource, DeviceClassMapping
from scheduling.model.node import Node
from scheduling.model.pod import PodTemplate
from scheduling.model.workload import PodSet
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

MAPPED = Configuration(device_class_mappings=(DeviceClassMapping("example.com/gpus", (DRIVER, "other.example.com")),))
PATH = "spec.podSets[0].template.spec.resourceClaims[0]"
OWN = f'device.attributes["{DRIVER}"]'


def objects(*found: Json) -> DeviceObjects:
    by_kind: dict[str, list[Json]] = {}
    for each in found:
        by_kind.setdefault(each["kind"], []).append(each)
    return DeviceObjects(
        {each["metadata"]["name"]: read_class(each) for each in by_kind.get("DeviceClass", ())},
        read_pools(by_kind.get("ResourceSlice", ())),
        {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": read_claim_spec(each["spec"]["spec"])
            for each in by_kind.get("ResourceClaimTemplate", ())
        },
        frozenset(held for each in by_kind.get("ResourceClaim", ()) for held in read_taken(each)),
        read_shares(by_kind.get("ResourceClaim", ())),
    )


def rules(*found: Json, configuration: Configuration = MAPPED) -> ClaimRules:
    return ClaimRules(objects(driver_class(), resource_slice("n1"), *found), configuration)


def charge(rules: ClaimRules, spec: Json) -> ClaimCharge:
    template = PodTemplate.from_manifest({"spec": spec})
    return rules.charges("team", [PodSet("main", 1, template)])["main"]


def refusal(rules: ClaimRules, spec: Json) -> str:
    with pytest.raises(ClaimRefusal) as caught:
        charge(rules, spec)
    return str(caught.value)


class TestQuota:
    def test_devices_count_as_the_resource_of_their_class(self) -> None:
        found = rules(
            claim_template("two", request(2)), claim_template("one"), claim_template("admin", request(adminAccess=True))
        )
        assert charge(found, pod_spec("two", "one", "admin")).quota == {"example.com/gpus": 3}

    def test_every_way_in_which_kueue_refuses(self) -> None:
        whose = "ResourceClaimTemplate gpu: "
        first = {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": DRIVER}]}
        lacking = "Internal error: failed to get claim spec for ResourceClaimTemplate none in podset main: "
        cases: list[tuple[Json | None, Json, str]] = [
            (None, pod_spec(by_name="mine"), "KueueDRAIntegration feature does not support use of resource claims"),
            (None, pod_spec("none"), f'{PATH}: {lacking}ResourceClaimTemplate.resource.k8s.io "none" not found'),
            (
                claim_template("gpu", request(device_class="unmapped")), pod_spec("gpu"),
                (f'{PATH}.resourceClaimTemplateName: Not found: "DeviceClass unmapped is not mapped in DRA '
                'configuration for podset main"'),
            ),
            (
                claim_template("gpu", first), pod_spec("gpu"),
                (f'{PATH}.devices.requests[0]: Invalid value: "null": {whose}FirstAvailable device selection is not '
                "supported"),
            ),
            (
                claim_template("gpu", request(allocationMode="All")), pod_spec("gpu"),
                (f'{PATH}.devices.requests[0].exactly.allocationMode: Invalid value: "All": {whose}AllocationMode '
                "'All' is not supported"),
            ),
            (
                claim_template("gpu", request(3, f'{OWN}.model == "A100"')), pod_spec("gpu"),
                (f"{PATH}.devices.requests[0].exactly.selectors: Internal error: {whose}insufficient matching devices "
                f"for CEL selector in DeviceClass {DRIVER}: 2 device(s) match in the cluster but 3 requested"),
            ),
            (
                claim_template("gpu", request(1, f"{OWN}.missing == 1")), pod_spec("gpu"),
                (f'{PATH}.devices.requests[0].exactly.selectors: Invalid value: "null": {whose}CEL evaluation failed '
                f"for DeviceClass {DRIVER}: no such key: missing"),
            ),
            (
                claim_template("gpu", request(1, "true", device_class="other.example.com")), pod_spec("gpu"),
                (f"{PATH}.devices.requests[0]: Internal error: {whose}failed to get DeviceClass other.example.com: "
                'DeviceClass.resource.k8s.io "other.example.com" not found'),
            ),
        ]  # fmt: skip
        for template, spec, said in cases:
            assert refusal(rules(*([template] if template else [])), spec) == said
        broken = refusal(rules(claim_template("gpu", request(1, "1 +"))), pod_spec("gpu"))
        assert broken.startswith(f'{PATH}.devices.requests[0].exactly.selectors: Invalid value: "null": {whose}')
        assert "CEL compilation failed" in broken

    def test_two_requests_of_a_claim_need_different_devices(self) -> None:
        both = claim_template("gpu", request(1, "true", name="a"), request(2, "true", name="b"))
        assert "1 device(s) match in the cluster but 2 requested" in refusal(rules(both), pod_spec("gpu"))

    def test_without_the_integration_claims_are_refused_or_not_looked_at(self) -> None:
        template = claim_template("gpu")
        off = Configuration(integrates_claims=False)
        assert refusal(rules(template, configuration=off), pod_spec("gpu")) == (
            "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
        )
        neither = Configuration(integrates_claims=False, rejects_claims=False)
        template_of = PodTemplate.from_manifest({"spec": pod_spec("gpu")})
        assert rules(template, configuration=neither).charges("team", [PodSet("main", 1, template_of)]) == {}

    def test_counters_of_partitionable_devices(self) -> None:
        parts = [_partition(0, "half", "20Gi"), _partition(1, "half", "20Gi"), _partition(2, "whole", "40Gi")]
        sliced = resource_slice("n1", parts, sharedCounters=[_counters("gpu-0", "40Gi")])
        source = CounterSource(DRIVER, "memory", f'device.driver == "{DRIVER}"')
        mapped = Configuration(device_class_mappings=(DeviceClassMapping("gpu.memory", (DRIVER,), (source,)),))
        half = claim_template("gpu", request(2, f'{OWN}.model == "half"'))
        found = ClaimRules(objects(driver_class(), sliced, half), mapped)
        assert charge(found, pod_spec("gpu")).quota == {"gpu.memory": 2 * 20 * 2**30}
        other = Configuration(
            device_class_mappings=(DeviceClassMapping("gpu.x", (DRIVER,), (CounterSource(DRIVER, "x", "true"),)),)
        )
        assert refusal(ClaimRules(objects(driver_class(), sliced, half), other), pod_spec("gpu")) == (
            f"{PATH}.devices.requests[0]: Internal error: matched devices have no consumesCounters entry for counter "
            '"x"'
        )


def _partition(index: int, model: str, memory: str) -> Json:
    taken = [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]
    return device(f"part-{index}", model, memory, consumesCounters=taken)


def _counters(name: str, memory: str) -> Json:
    return {"name": name, "counters": {"memory": {"value": memory}}}


class TestExtendedResources:
    def test_they_count_as_the_class_that_serves_them(self) -> None:
        """A Job with an extended resource of a driver was admitted and never ran."""
        found = rules(driver_class("served", extended="example.com/gpu"))
        got = charge(found, pod_spec(extended={"example.com/gpu": "2"}))
        assert (got.quota, got.replaced) == ({"example.com/gpu": 2}, frozenset({"example.com/gpu"}))
        assert got.devices["devices of class served"] == 2

    def test_a_mapped_class_unites_them_with_claims(self) -> None:
        found = ClaimRules(
            objects(driver_class(extended="example.com/gpu"), resource_slice("n1"), claim_template("gpu")), MAPPED
        )
        assert charge(found, pod_spec("gpu", extended={"example.com/gpu": "1"})).quota == {"example.com/gpus": 2}

    def test_the_class_made_last_serves(self) -> None:
        classes = [
            device_class("old", extended="example.com/gpu", created_at="2026-01-01T00:00:00Z"),
            device_class("b-new", extended="example.com/gpu", created_at="2026-02-01T00:00:00Z"),
            device_class("a-new", extended="example.com/gpu", created_at="2026-02-01T00:00:00Z"),
        ]
        got = charge(rules(*classes), pod_spec(extended={"example.com/gpu": "1"}))
        assert "devices of class a-new" in got.devices

    def test_fractions_are_refused_per_container(self) -> None:
        found = rules(driver_class("served", extended="example.com/gpu"))
        assert refusal(found, pod_spec(extended={"example.com/gpu": "500m"})) == (
            'spec.podSets[0].template.spec.containers[0].resources.requests.example.com/gpu: Invalid value: "500m": '
            "extended resource quantity must be an integer"
        )

    def test_others_stay_as_they_are(self) -> None:
        template = PodTemplate.from_manifest({"spec": pod_spec(extended={"example.com/gpu": "500m"})})
        assert rules().charges("team", [PodSet("main", 1, template)]) == {}


class TestNodes:
    def on(self, rules: ClaimRules, name: str = "n1") -> tuple[dict[str, int], dict[str, int]]:
        """What a node has, and others hold of it, once there is a workload for each template."""
        for key in rules.objects.templates:
            charge(rules, pod_spec(key.partition("/")[2]))
        node = rules.places.on_node(Node(name))
        return dict(node.allocatable), dict(node.foreign_usage)

    def test_a_node_has_the_devices_that_its_slices_publish(self) -> None:
        found = rules(resource_slice("n2", 3), claim_template("gpu"))
        assert self.on(found) == ({"devices of class gpu.example.com": 2}, {})
        assert self.on(found, "n2")[0] == {"devices of class gpu.example.com": 3}
        assert self.on(found, "n3")[0] == {"devices of class gpu.example.com": 0}

    def test_devices_that_claims_of_others_hold_are_taken(self) -> None:
        found = rules(claim_template("gpu"), claim("theirs", [("n1", "gpu-0"), ("elsewhere", "gpu-1")]))
        assert self.on(found)[1] == {"devices of class gpu.example.com": 1}

    def test_a_selection_is_a_part_of_its_class(self) -> None:
        selector = f"{OWN}.index == 0"
        found = rules(claim_template("any"), claim_template("first", request(1, selector)))
        part = f"devices of class {DRIVER} where {selector}"
        assert self.on(found)[0] == {f"devices of class {DRIVER}": 2, part: 1}
        assert charge(found, pod_spec("first")).devices == {f"devices of class {DRIVER}": 1, part: 1}

    def test_old_generations_incomplete_pools_and_tainted_devices_are_not_used(self) -> None:
        tainted = device("gpu-9", taints=[{"key": "broken", "effect": "NoExecute"}])
        found = ClaimRules(
            objects(
                driver_class(),
                claim_template("gpu"),
                resource_slice("n1", 4, name="old"),
                resource_slice("n1", [device("gpu-0"), tainted], name="new", generation=2),
                resource_slice("n2", 2, slices=2),
            ),
            MAPPED,
        )
        assert self.on(found)[0] == {"devices of class gpu.example.com": 1}
        assert self.on(found, "n2")[0] == {"devices of class gpu.example.com": 0}

    def test_partitions_of_one_device_keep_each_other_out(self) -> None:
        parts = [_partition(0, "half", "20Gi"), _partition(1, "half", "20Gi"), _partition(2, "whole", "40Gi")]
        halves, whole = request(1, f'{OWN}.model == "half"'), request(1, f'{OWN}.model == "whole"')
        given: list[Json] = [
            driver_class(),
            resource_slice("n1", parts, sharedCounters=[_counters("gpu-0", "40Gi")]),
            claim_template("half", halves),
            claim_template("whole", whole),
        ]
        found = ClaimRules(objects(*given), MAPPED)
        half = f'devices of class {DRIVER} where {OWN}.model == "half"'
        one = f'devices of class {DRIVER} where {OWN}.model == "whole"'
        assert self.on(found)[0] == {half: 2, one: 1}
        assert charge(found, pod_spec("whole")).devices == {half: 2, one: 1}
        assert charge(found, pod_spec("half")).devices == {half: 1, one: 1}
        taken = ClaimRules(objects(*given, claim("theirs", [("n1", "part-0")])), MAPPED)
        assert self.on(taken)[1] == {half: 1, one: 1}

    def test_what_cannot_be_placed_says_why(self) -> None:
        constraint = [{"matchAttribute": f"{DRIVER}/model"}]
        both = rules(claim_template("pair", request(2), constraints=constraint))
        assert "constraints" in charge(both, pod_spec("pair")).not_placeable
        one = rules(claim_template("one", request(1), constraints=constraint))
        assert charge(one, pod_spec("one")).not_placeable == ""
        network = ClaimRules(objects(driver_class(), claim_template("gpu"), resource_slice("")), MAPPED)
        assert "not bound to a single node" in charge(network, pod_spec("gpu")).not_placeable


@pytest.mark.parametrize("kind", ["ResourceSlice", "ResourceClaimTemplate", "ResourceClaim"])
def test_objects_of_v1beta1_read_as_those_of_v1(kind: str) -> None:
    now: dict[str, Any] = {
        "ResourceSlice": resource_slice("n1"), "ResourceClaimTemplate": claim_template(), "ResourceClaim": claim("c"),
    }[kind]  # fmt: skip
    old = {**now, "apiVersion": "resource.k8s.io/v1beta1", "spec": _as_v1beta1(now["spec"])}
    assert as_v1(old) == now
    assert as_v1(now) == now


def _as_v1beta1(spec: Any) -> Any:
    if "spec" in spec:
        return {**spec, "spec": _as_v1beta1(spec["spec"])}
    if isinstance(spec["devices"], list):
        return {**spec, "devices": [{"name": each.pop("name"), "basic": each} for each in map(dict, spec["devices"])]}
    requests = [{"name": each["name"], **each["exactly"]} for each in spec["devices"]["requests"]]
    return {**spec, "devices": {**spec["devices"], "requests": requests}}


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (f'"{"a" * 250}".matches("a*a*a*b")', "takes more than 40000 steps on 250 characters"),
        ("true" + " == true" * 900, "nested deeper than 128"),
        (f"{'9' * 5000} > 0", "has an integer of more than 64 bits"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("{[1]: 2} == {}", "unsupported key type: list"),
    ],
    ids=["pattern", "chain", "literal", "sum", "key"],
)
def test_what_one_tenant_s_selector_breaks_is_that_tenant_s_alone(selector: str, why: str) -> None:
    found = rules(claim_template("any"), claim_template("broken", request(1, selector)))
    assert charge(found, pod_spec("any")) == ClaimCharge(
        {"example.com/gpus": 1}, devices={f"devices of class {DRIVER}": 1}
    )
    assert found.places.allocatable("n1")[f"devices of class {DRIVER}"] == 2
    assert why in refusal(found, pod_spec("broken"))
