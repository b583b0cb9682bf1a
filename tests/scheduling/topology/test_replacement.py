"""Moving the pods of a failed node."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.node import Node
from scheduling.model.topology import (
    PodSetTopologyRequest,
    SliceConstraint,
    TopologyAssignment,
    TopologyDomain,
    TopologyFailure,
    TopologyRequest,
)
from scheduling.topology.flavor import TopologyFlavor
from scheduling.topology.replacement import Replacement, replace_failed_node
from tests.scheduling.topology_helpers import (
    BLOCK,
    HOST,
    HOSTS,
    RACK,
    RACKS_AND_HOSTS,
    domains,
    flavor,
    node,
    pods,
    racks,
)


def assigned(**counts: int) -> TopologyAssignment:
    """Hosts (with _ for -) and their pods."""
    hosts = ((host.replace("_", "-"), count) for host, count in counts.items())
    return TopologyAssignment((HOST,), tuple(TopologyDomain((host,), count) for host, count in hosts))


def after_failure(
    made: TopologyFlavor, request: PodSetTopologyRequest, assignment: TopologyAssignment, failed: str
) -> dict[str, int] | str:
    """Charge the workload, take the node away, and replace it."""
    made.add_usage(request.usage(assignment))
    made.leaves.delete_node(failed)
    found = replace_failed_node(made, request, assignment, failed)
    return found.message if isinstance(found, TopologyFailure) else domains(found.whole)


def test_pods_of_the_failed_node_move_and_the_others_stay() -> None:
    made = flavor(HOSTS, [node("a", 2), node("b", 2), node("c", 4)])
    moved = after_failure(made, pods(4, TopologyRequest(preferred=HOST)), assigned(a=2, b=2), "a")
    assert moved == {"b": 2, "c": 2}


def test_pods_may_join_a_domain_that_the_workload_uses() -> None:
    made = flavor(HOSTS, [node("a", 2), node("b", 4)])
    assert after_failure(made, pods(4), assigned(a=2, b=2), "a") == {"b": 4}


def returned(made: TopologyFlavor, request: PodSetTopologyRequest, assignment: TopologyAssignment) -> dict[str, int]:
    """Where the pods of node `a` go when it is Ready again."""
    made.add_usage(request.usage(assignment))
    found = replace_failed_node(made, request, assignment, "a")
    assert isinstance(found, Replacement)
    return domains(found.whole)


def test_t72_a_node_that_is_ready_again_takes_pods_back_as_far_as_it_has_room_beside_them() -> None:
    """The pods stay charged there while a place is looked for."""
    request = pods(2, TopologyRequest(preferred=HOST))
    assert returned(flavor(HOSTS, [node("a", 4)]), request, assigned(a=2)) == {"a": 2}
    assert returned(flavor(HOSTS, [node("a", 3), node("b", 1)]), request, assigned(a=2)) == {"a": 1, "b": 1}
    full = flavor(HOSTS, [node("a", 3)])
    full.add_usage(request.usage(assigned(a=2)))
    refused = replace_failed_node(full, request, assigned(a=2), "a")
    assert isinstance(refused, TopologyFailure)
    assert refused.message == 'topology "hosts" has room for 1 of 2 pods'


def test_no_room_elsewhere() -> None:
    made = flavor(HOSTS, [node("a", 2), node("b", 2)])
    assert after_failure(made, pods(4), assigned(a=2, b=2), "a") == 'topology "hosts" has room for 0 of 2 pods'


def test_another_domain_that_is_gone_is_a_failure() -> None:
    made = flavor(HOSTS, [node("a", 2), node("b", 2), node("c", 9)])
    made.leaves.delete_node("b")
    message = after_failure(made, pods(4), assigned(a=2, b=2), "a")
    assert message == 'the domain "b" of the assignment no longer exists'


def test_a_required_domain_is_kept() -> None:
    nodes = racks({"r0": [2, 2, 1], "r1": [9]})
    request = pods(4, TopologyRequest(required=RACK))
    message = after_failure(flavor(RACKS_AND_HOSTS, nodes), request, assigned(r0_n0=2, r0_n1=2), "r0-n0")
    assert message == 'topology "default" has room for 1 of 2 pods in one domain of "rack"'
    wider = pods(4, TopologyRequest(required=BLOCK))
    moved = after_failure(flavor(RACKS_AND_HOSTS, nodes), wider, assigned(r0_n0=2, r0_n1=2), "r0-n0")
    assert moved == {"r0-n1": 2, "r1-n0": 2}


def test_a_workload_that_lost_its_only_node_may_go_to_another_required_domain() -> None:
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [2], "r1": [3]}))
    assert after_failure(made, pods(2, TopologyRequest(required=RACK)), assigned(r0_n0=2), "r0-n0") == {"r1-n0": 2}


def test_part_of_a_slice_stays_with_the_rest_of_it() -> None:
    request = pods(8, TopologyRequest(preferred=BLOCK, slices=(SliceConstraint(RACK, 4),)))
    nodes = racks({"r0": [4], "r1": [2, 2, 2], "r2": [2]})
    moved = after_failure(flavor(RACKS_AND_HOSTS, nodes), request, assigned(r0_n0=4, r1_n0=2, r1_n1=2), "r1-n0")
    assert moved == {"r0-n0": 4, "r1-n1": 2, "r1-n2": 2}
    tight = racks({"r0": [4], "r1": [2, 2], "r2": [9]})
    message = after_failure(flavor(RACKS_AND_HOSTS, tight), request, assigned(r0_n0=4, r1_n0=2, r1_n1=2), "r1-n0")
    assert message == 'topology "default" has room for 0 of 2 pods'


def test_a_whole_slice_may_go_anywhere_but_stays_whole() -> None:
    request = pods(8, TopologyRequest(preferred=BLOCK, slices=(SliceConstraint(RACK, 4),)))
    nodes = racks({"r0": [4], "r1": [4], "r2": [2, 2], "r3": [3]})
    moved = after_failure(flavor(RACKS_AND_HOSTS, nodes), request, assigned(r0_n0=4, r1_n0=4), "r1-n0")
    assert moved == {"r0-n0": 4, "r2-n0": 2, "r2-n1": 2}


def test_slices_alone_are_relaxed_without_becoming_narrower() -> None:
    request = pods(4, TopologyRequest(slices=(SliceConstraint(RACK, 4),)))
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [3, 1, 2]}))
    assert after_failure(made, request, assigned(r0_n0=3, r0_n1=1), "r0-n1") == {"r0-n0": 3, "r0-n2": 1}


def test_t71_the_moved_pods_complete_the_innermost_slice_that_they_break() -> None:
    """Two pods of a rack's slice of 4 move within that rack, though the block has more room elsewhere."""
    layers = (SliceConstraint(BLOCK, 8), SliceConstraint(RACK, 4))
    request = pods(8, TopologyRequest(required=BLOCK, slices=layers))
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [2, 2, 2], "r1": [4, 9]}))
    moved = after_failure(made, request, assigned(r0_n0=2, r0_n1=2, r1_n0=4), "r0-n0")
    assert moved == {"r0-n1": 2, "r0-n2": 2, "r1-n0": 4}
    tight = flavor(RACKS_AND_HOSTS, racks({"r0": [2, 2], "r1": [4, 9]}))
    message = after_failure(tight, request, assigned(r0_n0=2, r0_n1=2, r1_n0=4), "r0-n0")
    assert message == 'topology "default" has room for 0 of 2 pods in one domain of "block"', "evicted, not torn apart"


def test_t71_of_the_layers_only_the_innermost_that_is_whole_is_kept() -> None:
    """Two pods are a whole slice of 2, and stay together on one host of the rack that they leave."""
    layers = (SliceConstraint(BLOCK, 8), SliceConstraint(RACK, 4), SliceConstraint(HOST, 2))
    request = pods(8, TopologyRequest(unconstrained=True, slices=layers))
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [2, 2, 1, 1, 2], "r1": [4]}))
    moved = after_failure(made, request, assigned(r0_n0=2, r0_n1=2, r1_n0=4), "r0-n0")
    assert moved == {"r0-n1": 2, "r0-n4": 2, "r1-n0": 4}


def test_t71_without_a_whole_layer_unconstrained_pods_fill_the_fullest_leaf() -> None:
    """One pod of a slice of 2 has no layer any more, and takes the least free host of its rack."""
    request = pods(2, TopologyRequest(unconstrained=True, slices=(SliceConstraint(RACK, 2),)))
    made = flavor(RACKS_AND_HOSTS, racks({"r0": [2, 1, 3, 2], "r1": [1]}))
    assert after_failure(made, request, assigned(r0_n1=1, r0_n2=1), "r0-n1") == {"r0-n0": 1, "r0-n2": 1}


nodes_of_racks = st.lists(st.tuples(st.sampled_from(["r0", "r1"]), st.integers(1, 5)), min_size=2, max_size=8).map(
    lambda nodes: [node(f"n{i}", cpu, rack=rack) for i, (rack, cpu) in enumerate(nodes)]
)


@given(nodes_of_racks, st.integers(1, 10), st.booleans(), st.data())
@settings(deadline=None)
def test_a_replacement_keeps_count_capacity_and_the_other_pods(
    nodes: list[Node], count: int, required: bool, data: st.DataObject
) -> None:
    request = pods(count, TopologyRequest(required=RACK) if required else TopologyRequest(preferred=RACK))
    made = flavor(RACKS_AND_HOSTS, nodes)
    found = made.find_topology_assignments([request])
    if not isinstance(found, dict):
        return
    before = domains(found["main"])
    failed = data.draw(st.sampled_from(sorted(before)))
    after = after_failure(made, request, found["main"], failed)
    if isinstance(after, str):
        return
    by_name = {each.name: each for each in nodes}
    assert failed not in after
    assert sum(after.values()) == count
    assert all(after[host] >= number for host, number in before.items() if host != failed)
    assert all(number * 1000 <= by_name[host].allocatable["cpu"] for host, number in after.items())
    if required:
        assert len({by_name[host].labels[RACK] for host in after}) == 1
