"""Reservations in cycles: reserved nodes are lent to workloads that end before the window, and closed to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from scheduling.advice.waiting_rules import Rule
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule
from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import BackfillPolicy, PlacementScope
from scheduling.reservations.reservation import Admittance, BusyPolicy, Recurrence, Reservation
from scheduling.state.workload_info import QueueState
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, PLENTY, gpu_node, gpu_racks, gpus, rack_node
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    messages,
    names,
    preemption,
    preemptions,
    reason_of,
    settled,
    workload,
)

START: Final = 1000.0
END: Final = 2000.0
WAITS: Final = "WaitingForReservation"


def reservation(*nodes: str, start: float = START, end: float = END, **fields: Any) -> Reservation:
    return Reservation(fields.pop("name", "maintenance"), start, end, frozenset(nodes), **fields)


def limited(seconds: int) -> dict[str, Any]:
    return {"maximum_execution_time_seconds": seconds}


def two_nodes(**fields: Any) -> Builder:
    """A ClusterQueue over the nodes a and b of one device each."""
    builder = Builder().queue("q", {"default": PLENTY}, **fields)
    for name in "ab":
        builder.world.set_node(gpu_node(name))
    return builder


def started(world: World, now: float = 0.0) -> list[str]:
    world.advance(now)
    return names(admission.workload for result in settled(world, now) for admission in result.admissions)


def nodes_of(world: World, name: str) -> list[str]:
    found = world.workload(f"{NAMESPACE}/{name}")
    assert found is not None
    return [pod.node for pod in found.placement.pods] if found.placement is not None else []


def whole(**fields: Any) -> list[Any]:
    """A pod that takes a whole device."""
    return [gpus(memory_mib=16384, **fields)]


@pytest.mark.parametrize(
    ("now", "seconds", "starts"),
    [
        (0.0, None, False),
        (0.0, 1000, True),
        (0.0, 1001, False),
        (500.0, 500, True),
        (999.0, 2, False),
        (1000.0, 1, False),
        (1999.0, 1, False),
        (2000.0, None, True),
    ],
)
def test_a_reserved_node_is_lent_to_a_workload_that_ends_before_the_window(
    now: float, seconds: int | None, starts: bool
) -> None:
    world = two_nodes().world
    world.set_reservation(reservation("a", "b"))
    world.set_workload(workload("w", "q", whole(), **({} if seconds is None else limited(seconds))), now)
    assert started(world, now) == (["w"] if starts else [])
    assert reason_of(world, "w") == ("" if starts else WAITS)


def test_a_workload_takes_an_open_node_and_leaves_the_reserved_one() -> None:
    world = two_nodes().pending("w", "q", whole()).pending("x", "q", whole(), at=1.0).world
    world.set_reservation(reservation("a"))
    assert started(world) == ["w"]
    assert nodes_of(world, "w") == ["b"]
    assert reason_of(world, "x") == WAITS


@pytest.mark.parametrize(
    "allowed",
    [
        Admittance(namespaces=frozenset({NAMESPACE})),
        Admittance(local_queues=frozenset({f"{NAMESPACE}/q"})),
        Admittance(cluster_queues=frozenset({"q"})),
        Admittance(users=frozenset({"ann"})),
    ],
)
def test_an_allowed_workload_uses_the_reserved_nodes(allowed: Admittance) -> None:
    world = two_nodes().pending("w", "q", whole(), submitted_by="ann").world
    world.set_reservation(reservation("a", "b", allowed=allowed))
    assert started(world, START) == ["w"]


def test_the_end_of_the_window_wakes_the_workload() -> None:
    world = two_nodes().pending("w", "q", whole()).world
    world.set_reservation(reservation("a", "b"))
    assert started(world) == []
    world.advance(END - 1)
    assert not world.has_active()
    world.advance(END)
    assert world.has_active()
    assert started(world, END) == ["w"]


def test_a_node_that_comes_back_frees_the_one_in_its_place_for_queues_of_another_flavor() -> None:
    builder = Builder().flavor("one", node_labels={"rack": "1"}).flavor("two", node_labels={"rack": "2"})
    world = builder.queue("q", {"two": PLENTY}).pending("w", "q", whole()).world
    first = gpu_node("a", rack="1")
    for node in (replace(first, ready=False), gpu_node("b", rack="2")):
        world.set_node(node)
    world.set_reservation(reservation(node_count=1))
    assert started(world, START) == []
    assert reason_of(world, "w") == WAITS
    world.set_node(first)
    assert started(world, START) == ["w"]


def test_a_recurring_window_closes_again() -> None:
    world = two_nodes().world
    world.set_reservation(reservation("a", "b", recurrence=Recurrence.DAILY))
    day = 86_400
    for name, seconds in (("short", day + 1000 - 3000), ("long", day + 1001 - 3000)):
        world.set_workload(workload(name, "q", whole(), **limited(seconds)), 3000.0)
    assert started(world, 3000.0) == ["short"]
    assert reason_of(world, "long") == WAITS


@pytest.mark.parametrize(
    ("fields", "lends"),
    [
        ({"recurrence": Recurrence.DAILY, "if_busy": BusyPolicy.EVICT}, True),
        ({"recurrence": Recurrence.DAILY}, False),
        ({"if_busy": BusyPolicy.EVICT}, False),
    ],
)
def test_nodes_of_a_window_that_returns_and_evicts_are_lent_without_a_limit(
    fields: dict[str, Any], lends: bool
) -> None:
    world = two_nodes().pending("w", "q", whole()).world
    world.set_reservation(reservation("a", "b", **fields))
    assert started(world) == (["w"] if lends else [])
    if lends:
        window = world.evicting_window(f"{NAMESPACE}/w", 0.0)
        assert window is not None
        assert window.starts_at == START
        assert world.next_window_effect(0.0) == START
    world.set_workload(workload("late", "q", whole()), START)
    assert started(world, START) == []
    assert reason_of(world, "late") == WAITS
    world.set_workload(workload("long", "q", whole(), **limited(200_000)), END)
    returns = "recurrence" in fields
    assert started(world, END) == (["late"] if lends else [] if returns else ["late", "long"])
    assert reason_of(world, "long") == (WAITS if returns else "")


def test_deleting_or_changing_the_reservation_wakes_the_workload() -> None:
    others = (None, reservation("a"), reservation("a", "b", allowed=Admittance(users=frozenset({"ann"}))))
    for other in others:
        world = two_nodes().pending("w", "q", whole(), submitted_by="ann").world
        world.set_reservation(reservation("a", "b"))
        assert started(world) == []
        if other is None:
            world.delete_reservation("maintenance")
        else:
            world.set_reservation(other)
        assert started(world) == ["w"]


def test_a_node_that_gets_the_labels_is_closed() -> None:
    world = two_nodes().world
    world.set_reservation(reservation(node_labels={"rack": "1"}))
    for name in "ab":
        world.set_node(gpu_node(name, rack="1"))
    world.set_workload(workload("w", "q", whole()), 0.0)
    assert started(world) == []
    world.set_node(gpu_node("b", rack="2"))
    assert started(world) == ["w"]
    assert nodes_of(world, "w") == ["b"]


def test_the_reason_is_the_reservation_only_if_it_decides() -> None:
    """A busy open node may become free first; if open nodes could never take the pods, only the window's end helps."""
    world = two_nodes().pending("first", "q", whole()).world
    assert started(world) == ["first"]
    assert nodes_of(world, "first") == ["a"]
    world.set_reservation(reservation("a"))
    world.set_workload(workload("both", "q", whole(pods=2), at=1.0), 0.0)
    world.set_workload(workload("one", "q", whole(), at=2.0), 0.0)
    world.set_workload(workload("two", "q", whole(), at=3.0), 0.0)
    assert started(world) == ["one"]
    assert reason_of(world, "both") == WAITS, "the open node alone never takes both pods"
    assert reason_of(world, "two") == "WaitingForDevices", "it waits for the open node, which is busy"


def test_a_workload_on_a_busy_closed_node_waits_for_the_reservation() -> None:
    world = Builder().queue("q", {"default": PLENTY}).world
    world.set_node(gpu_node("a"))
    world.set_workload(workload("holder", "q", whole()), 0.0)
    assert started(world) == ["holder"]
    world.set_reservation(reservation("a"))
    world.set_workload(workload("w", "q", whole(), at=1.0), 0.0)
    assert started(world) == []
    assert reason_of(world, "w") == WAITS


def test_the_message_names_the_reservation_and_its_window() -> None:
    world = two_nodes().pending("w", "q", whole()).world
    world.set_reservation(reservation("a", "b"))
    found = messages(settled(world, 0.0)[0])["w"]
    assert found == (
        'needs nodes that are kept free by the reservation "maintenance" from 1970-01-01T00:16:40Z to '
        "1970-01-01T00:33:20Z"
    )


def test_the_advice_tells_the_limit_with_which_it_would_start() -> None:
    world = two_nodes().pending("w", "q", whole()).world
    world.set_reservation(reservation("a", "b"))
    assert started(world, 400.0) == []
    found = world.explain(f"{NAMESPACE}/w")
    assert found.rule is Rule.RESERVATION
    assert [window.reservation for window in found.reservations] == ["maintenance"]
    assert found.limit_to_start == 600
    assert "at most 600 seconds" in found.remedy
    world.advance(START)
    found = world.explain(f"{NAMESPACE}/w")
    assert (found.rule, found.limit_to_start) == (Rule.RESERVATION, None), "no limit helps within the window"


def test_the_message_and_the_advice_leave_out_reservations_of_other_flavors_nodes() -> None:
    builder = Builder().flavor("one", node_labels={"rack": "1"}).flavor("two", node_labels={"rack": "2"})
    world = builder.queue("q", {"two": PLENTY}).pending("w", "q", whole()).world
    for node in (gpu_node("a", rack="1"), gpu_node("b", rack="2")):
        world.set_node(node)
    world.set_reservation(reservation("a", start=500.0, name="of-one"))
    world.set_reservation(reservation("b", name="of-two"))
    assert '"of-one"' not in messages(settled(world, 0.0)[0])["w"]
    found = world.explain(f"{NAMESPACE}/w")
    assert [window.reservation for window in found.reservations] == ["of-two"]
    assert found.limit_to_start == 1000


def test_an_earlier_run_counts_in_the_limit_with_which_it_would_start() -> None:
    world = two_nodes().pending("w", "q", whole(), executed_seconds=100).world
    world.set_reservation(reservation("a", "b"))
    assert started(world, 400.0) == []
    limit = world.explain(f"{NAMESPACE}/w").limit_to_start
    assert limit == 700
    world.set_workload(workload("w", "q", whole(), executed_seconds=100, **limited(limit + 1)), 400.0)
    assert started(world, 400.0) == []
    world.set_workload(workload("w", "q", whole(), executed_seconds=100, **limited(limit)), 400.0)
    assert started(world, 400.0) == ["w"]


def test_preemption_never_frees_a_closed_node() -> None:
    fields: dict[str, Any] = {"preempt_for_devices": True, "preemption": preemption(within="LowerPriority")}
    world = two_nodes(**fields).pending("low-a", "q", whole()).pending("low-b", "q", whole()).world
    assert started(world) == ["low-a", "low-b"]
    world.set_reservation(reservation("a"))
    world.set_workload(workload("high", "q", whole(), priority=10, at=1.0), 0.0)
    world.set_workload(workload("higher", "q", whole(), priority=20, at=2.0), 0.0)
    results = settled(world, 0.0)
    victims = [name for result in results for name in preemptions(result)]
    assert victims == ["low-b"], "the workload on the open node"
    assert nodes_of(world, "higher") == ["b"]
    assert nodes_of(world, "low-a") == ["a"]


@pytest.mark.parametrize("reserved_first", [True, False])
def test_equal_workloads_are_barred_by_the_same_reservations_and_have_the_same_limit(reserved_first: bool) -> None:
    world = two_nodes().world
    reserved = reservation("a", "b", allowed=Admittance(users=frozenset({"ann"})))
    if reserved_first:
        world.set_reservation(reserved)
    for number, (user, limit) in enumerate([("bob", {}), ("ann", {}), ("bob", limited(10))]):
        world.set_workload(workload(f"w{number}", "q", whole(), at=number, submitted_by=user, **limit), 0.0)
    if not reserved_first:
        world.set_reservation(reserved)
    assert started(world) == ["w1", "w2"], "the refusal of the first refuses neither of the others"


def test_with_admission_checks_no_limit_counts() -> None:
    """Its time begins when the checks are ready, at an unknown time."""
    rule = AdmissionCheckRule("check")
    builder = two_nodes(admission_checks=(rule,))
    builder.world.set_admission_check(AdmissionCheck("check", "example.com/check"))
    builder.world.set_reservation(reservation("a", "b"))
    builder.pending("w", "q", whole(), **limited(10))
    assert started(builder.world) == []
    assert reason_of(builder.world, "w") == WAITS
    assert builder.world.explain(f"{NAMESPACE}/w").limit_to_start is None


def test_pods_without_devices_are_placed_on_open_nodes() -> None:
    builder = Builder(placement=PlacementScope.ALL).queue("q", {"default": 100})
    for name in "ab":
        builder.world.set_node(Node(name, allocatable={"cpu": 4000, "pods": 110}))
    builder.world.set_reservation(reservation("a"))
    builder.pending("w", "q", 4).pending("x", "q", 4, at=1.0)
    assert started(builder.world) == ["w"]
    assert nodes_of(builder.world, "w") == ["b"]
    assert reason_of(builder.world, "x") == WAITS


def test_a_topology_leaves_out_closed_nodes() -> None:
    world = gpu_racks(rack_node("a", "1"), rack_node("b", "1")).world
    world.set_reservation(reservation("a"))
    for number in range(2):
        world.set_workload(workload(f"w{number}", "q", [gpus(memory_mib=16_000)], at=number), 0.0)
    assert started(world) == ["w0"]
    assert nodes_of(world, "w0") == ["b"]
    assert reason_of(world, "w1") == WAITS


def wide_racks(places: PlacementScope = PlacementScope.ALL) -> World:
    """A topology whose last level is a rack of the nodes a and b, with 4 CPUs each."""
    builder = Builder(placement=places).flavor("tas", topology_name="racks")
    builder.world.set_topology(Topology("racks", ("rack",)))
    builder.queue("q", {"tas": 100})
    for name in "ab":
        labels = {"rack": "1", HOSTNAME_LABEL: name}
        builder.world.set_node(Node(name, labels, allocatable={"cpu": 4000, "pods": 110}))
    return builder.world


@pytest.mark.parametrize("places", [PlacementScope.ALL, PlacementScope.DEVICES])
def test_of_a_domain_wider_than_a_node_only_the_closed_nodes_capacity_is_taken(places: PlacementScope) -> None:
    world = wide_racks(places)
    world.set_reservation(reservation("a"))
    world.set_workload(workload("both", "q", 4, count=2), 0.0)
    world.set_workload(workload("one", "q", 4, at=1.0), 0.0)
    assert started(world) == ["one"]
    assert reason_of(world, "both") == WAITS
    if places is PlacementScope.ALL:
        assert nodes_of(world, "one") == ["b"]


def test_an_allowed_workload_on_the_closed_node_takes_nothing_from_the_open_one() -> None:
    world = wide_racks()
    allowed = Admittance(users=frozenset({"ann"}))
    world.set_reservation(reservation("a", allowed=allowed))
    world.set_workload(workload("ours", "q", 4, submitted_by="ann"), 0.0)
    assert started(world) == ["ours"]
    assert nodes_of(world, "ours") == ["a"]
    world.set_workload(workload("theirs", "q", 4, at=1.0), 0.0)
    assert started(world) == ["theirs"]
    assert nodes_of(world, "theirs") == ["b"]


def test_a_failed_node_is_replaced_by_an_open_one() -> None:
    for reserved, expected in (((), ["b"]), (("b",), ["c"])):
        world = gpu_racks(*(rack_node(name, "1") for name in "abc")).world
        world.set_workload(workload("w", "q", [gpus(memory_mib=16_000)]), 0.0)
        assert started(world) == ["w"]
        assert nodes_of(world, "w") == ["a"]
        if reserved:
            world.set_reservation(reservation(*reserved))
        found = world.workload(f"{NAMESPACE}/w")
        assert found is not None
        world.set_workload(replace(found, unhealthy_nodes=("a",)), 1.0)
        settled(world, 1.0)
        assert nodes_of(world, "w") == expected


def test_pods_without_devices_move_to_an_open_node() -> None:
    for reserved, expected in (((), "b"), (("b",), "c")):
        builder = Builder().flavor("tas", topology_name="hosts")
        builder.world.set_topology(Topology("hosts", (HOSTNAME_LABEL,)))
        builder.queue("q", {"tas": 100})
        for name in "abc":
            node = Node(name, {HOSTNAME_LABEL: name}, allocatable={"cpu": 4000, "pods": 110})
            builder.world.set_node(node)
        builder.pending("w", "q", 4)
        assert started(builder.world) == ["w"]
        builder.world.set_reservation(reservation(*reserved or ("none",)))
        found = builder.world.workload(f"{NAMESPACE}/w")
        assert found is not None
        builder.world.set_workload(replace(found, unhealthy_nodes=("a",)), 1.0)
        settled(builder.world, 1.0)
        moved = builder.world.workload(f"{NAMESPACE}/w")
        assert moved is not None
        assert moved.admission is not None
        topology = moved.admission.pod_set_assignments[0].topology_assignment
        assert topology is not None
        assert [domain.values for domain in topology.domains] == [(expected,)]


def test_a_planned_start_waits_for_the_end_of_the_window() -> None:
    """The head needs both nodes. One is busy for 500 seconds, and both are reserved from 1000 to 2000."""
    for seconds, expected in ((400, 500.0), (600, END)):
        world = two_nodes(backfill=BackfillPolicy.EASY).pending("busy", "q", whole(), **limited(500)).world
        assert started(world) == ["busy"]
        world.set_reservation(reservation("a", "b"))
        world.set_workload(workload("head", "q", whole(pods=2), at=1.0, **limited(seconds)), 0.0)
        assert started(world) == []
        plan = world.explain(f"{NAMESPACE}/head").planned_start
        assert plan is not None
        assert plan.starts_at == expected


def test_a_workload_passes_a_plan_that_a_window_delays() -> None:
    world = two_nodes(backfill=BackfillPolicy.EASY).pending("busy", "q", whole(), **limited(500)).world
    assert started(world) == ["busy"]
    world.set_reservation(reservation("b"))
    world.set_workload(workload("head", "q", whole(pods=2), at=1.0, **limited(600)), 0.0)
    world.set_workload(workload("passes", "q", whole(), at=2.0, **limited(900)), 0.0)
    assert started(world) == ["passes"], "it ends before the head's start, which is the end of the window"


def test_a_workload_passes_a_plan_that_has_room_beside_it_when_the_window_ends() -> None:
    """The head needs three of four nodes, two of which are reserved; one stays free beside it."""
    builder = Builder().queue("q", {"default": PLENTY}, backfill=BackfillPolicy.EASY)
    for name in "abcd":
        builder.world.set_node(gpu_node(name))
    builder.world.set_reservation(reservation("c", "d"))
    builder.pending("head", "q", whole(pods=3)).pending("passes", "q", whole(), at=1.0)
    assert started(builder.world) == ["passes"]


def test_the_windows_that_evict_a_workload() -> None:
    world = two_nodes().pending("w", "q", whole()).world
    assert started(world) == ["w"]
    world.set_reservation(reservation("a"))
    key = f"{NAMESPACE}/w"
    assert world.evicting_window(key, 0.0) is None
    world.set_reservation(reservation("a", if_busy=BusyPolicy.EVICT))
    found = world.evicting_window(key, 0.0)
    assert found is not None
    assert found.starts_at == START
    assert world.evicting_window(key, END) is None
    world.set_reservation(reservation("b", if_busy=BusyPolicy.EVICT))
    assert world.evicting_window(key, 0.0) is None


def test_undone_changes_of_reservations_leave_no_trace() -> None:
    world = two_nodes().pending("w", "q", whole()).world
    world.set_reservation(reservation("a", "b"))
    assert started(world) == []
    point = world.savepoint()
    world.delete_reservation("maintenance")
    world.set_reservation(reservation("a", name="other"))
    assert started(world) == ["w"]
    world.undo(point)
    assert list(world.objects.reservations) == ["maintenance"]
    assert world.objects.reserved_nodes("maintenance") == {"a", "b"}
    assert world.queue_state(f"{NAMESPACE}/w") is QueueState.INADMISSIBLE
    assert started(world) == []
    assert started(world, END) == ["w"]


def test_an_undone_node_is_reserved_as_before() -> None:
    world = two_nodes().world
    world.set_reservation(reservation(node_labels={"rack": "1"}))
    point = world.savepoint()
    world.set_node(gpu_node("a", rack="1"))
    assert world.objects.reserved_nodes("maintenance") == {"a"}
    world.undo(point)
    assert world.objects.reserved_nodes("maintenance") == frozenset()


def test_an_unlimited_quota_alone_is_not_reserved() -> None:
    """Where kueueweb chooses no nodes, a reservation keeps none free: quota alone decides."""
    world = Builder().queue("q", {"default": {GPU: 10, MEMORY: 10}}).pending("w", "q", {GPU: 1}).world
    world.set_reservation(reservation("a"))
    assert started(world) == ["w"]
