"""How many evaluations of selectors tenants can make the scheduler do: they are counted, and no time is measured."""

from __future__ import annotations

from scheduling.devices.claims.claim_reading import read_claim_spec, read_class, read_pools
from scheduling.devices.claims.evaluations import MAX_KINDS, MAX_NAMESPACE_STEPS, NAMESPACE_STEPS_PER_SECOND
from scheduling.devices.claims.objects import DeviceObjects
from scheduling.model.configuration import DeviceClassMapping
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod import PodTemplate
from scheduling.model.vocabulary import PlacementScope
from scheduling.model.workload import PodSet, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World
from tests.claim_objects import DRIVER, Json, claim_template, device, driver_class, pod_spec, request, resource_slice
from tests.scheduling.world_helpers import Builder

NODES, PER_NODE = 20, 4
DEVICES = NODES * PER_NODE
STEPS_OF_COSTLY = 4_000
"""What `costly` takes at least for a device."""
INDEX = f'device.attributes["{DRIVER}"].index'


def costly(number: int, members: int = 15) -> str:
    """Return a selector that compares each pair of `members` numbers, which takes thousands of steps for a device."""
    numbers = "[" + ",".join(map(str, range(members))) + "]"
    return f"{numbers}.all(a, {numbers}.all(b, a + b + {INDEX} > {number - 1000}))"


def slices(*, model: str = "A100", nodes: int = NODES) -> list[Json]:
    return [
        resource_slice(
            f"n{node}", [device(f"gpu-{index}", model if node == 0 else "A100") for index in range(PER_NODE)]
        )
        for node in range(nodes)
    ]


def objects(*templates: Json, published: list[Json] | None = None) -> DeviceObjects:
    return DeviceObjects(
        {DRIVER: read_class(driver_class())},
        read_pools(slices() if published is None else published),
        {f"{each['metadata']['namespace']}/{each['metadata']['name']}": read_claim_spec(each["spec"]["spec"])
         for each in templates},
    )  # fmt: skip


def world(found: DeviceObjects) -> World:
    mappings = (DeviceClassMapping("example.com/gpus", (DRIVER,)),)
    builder = Builder(device_class_mappings=mappings, placement=PlacementScope.ALL)
    made = builder.queue("queue", {"default": {"cpu": 64_000, "example.com/gpus": 1000}}).world
    for namespace in ("hostile", "other"):
        made.set_namespace(namespace, {})
        made.set_local_queue(LocalQueue(namespace, "queue", "queue"))
    for node in range(NODES):
        made.set_node(Node(f"n{node}", allocatable={"cpu": 64_000, "pods": 110}))
    made.set_device_objects(found)
    return made


def submit(world: World, namespace: str, name: str, template: str, now: float = 0.0) -> str:
    pods = PodSet("main", 1, PodTemplate.from_manifest({"spec": pod_spec(template)}))
    world.set_workload(Workload(namespace, name, f"{namespace}-{name}", "queue", (pods,)), now)
    return f"{namespace}/{name}"


def admitted(world: World, now: float = 0.0) -> set[str]:
    return {found.workload for result in run_until_idle(world, now) for found in result.admissions}


def test_templates_that_no_workload_names_are_not_evaluated() -> None:
    many = [claim_template(f"t{number}", request(1, costly(number)), namespace="hostile") for number in range(30)]
    found = world(objects(*many))
    assert found.selector_evaluations == 0
    submit(found, "hostile", "one", "t7")
    assert 0 < found.selector_evaluations <= (1 + 1) * DEVICES  # the class and the selector of one request


def test_a_selector_is_evaluated_once_per_device_as_long_as_the_device_stays_as_it_is() -> None:
    template = claim_template("gpu", request(1, f"{INDEX} >= 0"))
    found = world(objects(template))
    submit(found, "team", "first", "gpu")
    before = found.selector_evaluations
    assert before == 2 * DEVICES
    submit(found, "team", "second", "gpu")
    found.set_device_objects(objects(template, claim_template("more", namespace="other")))
    assert found.selector_evaluations == before
    found.set_device_objects(objects(template, published=slices(model="H100")))
    assert found.selector_evaluations == before + 2 * PER_NODE  # the devices of one node are other ones


def test_a_tenant_whose_selectors_are_costly_delays_no_other_tenant() -> None:
    many = [claim_template(f"t{number}", request(1, costly(number)), namespace="hostile") for number in range(200)]
    found = world(objects(*many, claim_template("gpu", request(1, f"{INDEX} >= 0"), namespace="other")))
    hostile = {submit(found, "hostile", f"job-{number}", f"t{number}") for number in range(200)}
    spent = found.selector_evaluations
    assert spent <= MAX_NAMESPACE_STEPS / STEPS_OF_COSTLY + 2 * DEVICES + 1
    late = [key for key in hostile if found.claim_refusal(key) is not None]
    assert len(late) > 150
    assert "costly" in str(found.claim_refusal(late[0]))
    key = submit(found, "other", "job", "gpu")
    assert found.claim_refusal(key) is None
    assert key in admitted(found)
    before = found.selector_evaluations
    found.advance(1.0)
    assert found.selector_evaluations - before <= NAMESPACE_STEPS_PER_SECOND / STEPS_OF_COSTLY + 1


def test_costly_claims_are_counted_step_by_step() -> None:
    many = [claim_template(f"t{number}", request(1, costly(number)), namespace="hostile") for number in range(10)]
    found = world(objects(*many))
    keys = {submit(found, "hostile", f"job-{number}", f"t{number}") for number in range(10)}
    assert any(found.claim_refusal(key) is not None for key in keys)
    told: set[str] = set()
    for now in range(1, 100):
        found.advance(now)
        told.update(found.take_counted())
        if all(found.claim_refusal(key) is None for key in keys):
            break
    assert all(found.claim_refusal(key) is None for key in keys)
    assert told < keys
    assert told
    assert admitted(found, 100.0) == keys


def test_a_selector_that_takes_too_much_over_all_devices_is_refused() -> None:
    found = world(objects(claim_template("gpu", request(1, costly(1, members=35)))))
    key = submit(found, "team", "job", "gpu")
    assert f"steps for the {DEVICES} devices" in str(found.claim_refusal(key))
    before = found.selector_evaluations
    found.advance(60.0)
    assert found.selector_evaluations == before


def test_a_namespace_asks_for_so_many_kinds_of_devices_at_a_time() -> None:
    number = MAX_KINDS + 1
    many = [claim_template(f"t{index}", request(1, f"{INDEX} >= {-index}")) for index in range(number)]
    found = world(objects(*many))
    keys = [submit(found, "team", f"job-{index}", f"t{index}") for index in range(number)]
    refused = [key for key in keys if found.claim_refusal(key) is not None]
    assert refused == keys[-1:]
    assert f"{MAX_KINDS} kinds of devices" in str(found.claim_refusal(keys[-1]))
    found.delete_workload(keys[0])
    found.advance(1.0)
    assert found.claim_refusal(keys[-1]) is None


def test_workloads_with_quota_keep_their_charge_whatever_it_costs() -> None:
    """Their devices are in use: they must not count as free after a restart of the leader."""
    many = [claim_template(f"t{number}", request(1, costly(number)), namespace="hostile") for number in range(10)]
    found = world(objects(*many))
    keys = [submit(found, "hostile", f"job-{number}", f"t{number}") for number in range(10)]
    for now in range(1, 100):
        found.advance(now)
    assert admitted(found, 100.0) == set(keys)
    holders = [workload for key in keys if (workload := found.workload(key)) is not None]
    again = world(objects(*many))
    for workload in holders:
        again.set_workload(workload, 0.0)
    assert all(again.claim_refusal(key) is None for key in keys)


def test_a_kind_that_comes_later_is_charged_to_those_who_hold_its_devices() -> None:
    """One node, one device: the first holds it by its class, and the second asks for it by a selector."""
    templates = (claim_template("any"), claim_template("first", request(1, f"{INDEX} == 0")))
    found = world(objects(*templates, published=[resource_slice("n1", 1)]))
    first = submit(found, "team", "first", "any")
    assert admitted(found) == {first}
    submit(found, "team", "second", "first")
    assert admitted(found) == set()
    found.finish_workload(first, 0.0)
    assert admitted(found) == {"team/second"}
