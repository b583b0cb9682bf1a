"""What a flavor's tree is made of, and that usage comes and goes without a trace."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.node import Node
from scheduling.model.selectors import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    RequiredNodeAffinity,
    SelectionOperator,
    Taint,
    Toleration,
    TolerationOperator,
)
from scheduling.model.topology import (
    PodSetTopologyRequest,
    SliceConstraint,
    Topology,
    TopologyAssignment,
    TopologyDomain,
    TopologyRequest,
    TopologyUsage,
)
from scheduling.topology.flavor import TopologyFlavor, TopologyFlavors
from tests.scheduling.topology_helpers import (
    HOST,
    HOSTS,
    RACK,
    RACKS,
    RACKS_AND_HOSTS,
    domains,
    flavor,
    node,
    place,
    pods,
    racks,
)

LARGE = Taint("large", "yes")


class TestNodes:
    def test_only_usable_nodes_with_every_label_are_leaves(self) -> None:
        good = node("good", 1)
        unlabelled = replace(node("unlabelled", 9), labels={"pool": "tas", HOST: "unlabelled"})
        elsewhere = replace(node("elsewhere", 9), labels={**good.labels, "pool": "other", HOST: "elsewhere"})
        out = [node("down", 9, ready=False), node("cordoned", 9, unschedulable=True), unlabelled, elsewhere]
        assert place(flavor(RACKS_AND_HOSTS, [good, *out]), pods(1)) == {"main": {"good": 1}}
        assert place(flavor(RACKS_AND_HOSTS, out), pods(1)) == 'topology "default" has no nodes'

    def test_a_node_that_changes_changes_its_leaf(self) -> None:
        made = flavor(RACKS, racks({"r0": [1, 1], "r1": [1]}))
        assert place(made, pods(3, TopologyRequest(required=RACK))) == (
            'topology "racks" has room for 2 of 3 pods in one domain of "rack"'
        )
        made.leaves.set_node(node("r0-n0", 2, rack="r0"))
        assert place(made, pods(3, TopologyRequest(required=RACK))) == {"main": {"r0": 3}}
        made.leaves.set_node(node("r0-n0", 2, rack="r1"))
        assert place(made, pods(3, TopologyRequest(required=RACK))) == {"main": {"r1": 3}}
        made.leaves.set_node(node("r0-n0", 2, rack="r1", ready=False))
        made.leaves.delete_node("r1-n0")
        assert place(made, pods(1, TopologyRequest(required=RACK))) == {"main": {"r0": 1}}

    def test_the_nodes_of_a_domain(self) -> None:
        made = flavor(RACKS, racks({"r0": [1, 1], "r1": [1]}))
        assert made.node_names(TopologyDomain(("b0", "r0"), 1)) == {"r0-n0", "r0-n1"}
        assert made.node_names(TopologyDomain(("b0", "r9"), 1)) == frozenset()

    def test_foreign_pods_take_room(self) -> None:
        made = flavor(HOSTS, [node("a", 4, foreign_usage={"cpu": 2500, "pods": 3})])
        assert place(made, pods(2)) == 'topology "hosts" has room for 1 of 2 pods'

    def test_a_resource_that_no_node_lists_is_not_there(self) -> None:
        made = flavor(HOSTS, [node("a", 4)])
        gpu = PodSetTopologyRequest("main", 1, {"nvidia.com/gpu": 1})
        assert place(made, gpu) == 'topology "hosts" has room for 0 of 1 pods'
        assert made.exclusions(gpu) == {"resource nvidia.com/gpu": 1}
        assert place(made, replace(gpu, requests={"nvidia.com/gpu": 0})) == {"main": {"a": 1}}


class TestSelection:
    """Single nodes are checked one by one; wider leaves are taken as they are."""

    nodes = (node("a", 1, taints=(LARGE,)), node("b", 2), node("c", 3))
    tolerant = Toleration("large", TolerationOperator.EXISTS)

    def test_taints_repel_pods_that_do_not_tolerate_them(self) -> None:
        made = flavor(HOSTS, self.nodes)
        assert place(made, pods(1)) == {"main": {"b": 1}}
        assert place(made, replace(pods(1), tolerations=(self.tolerant,))) == {"main": {"a": 1}}

    def test_the_flavors_tolerations_count(self) -> None:
        made = TopologyFlavor(HOSTS, {}, (self.tolerant,))
        for each in self.nodes:
            made.leaves.set_node(each)
        assert place(made, pods(1)) == {"main": {"a": 1}}

    def test_node_selector_and_affinity(self) -> None:
        made = flavor(HOSTS, self.nodes)
        not_b = NodeSelectorTerm((NodeSelectorRequirement(HOST, SelectionOperator.NOT_IN, ("b",)),))
        assert place(made, replace(pods(1), node_selector={HOST: "c"})) == {"main": {"c": 1}}
        assert place(made, replace(pods(1), affinity=RequiredNodeAffinity((not_b,)))) == {"main": {"c": 1}}

    def test_a_taint_that_comes_later_is_seen(self) -> None:
        made = flavor(HOSTS, self.nodes)
        assert place(made, pods(1)) == {"main": {"b": 1}}
        made.leaves.set_node(node("b", 2, taints=(LARGE,)))
        assert place(made, pods(1)) == {"main": {"c": 1}}

    def test_exclusions_say_why_nodes_are_left_out(self) -> None:
        made = flavor(HOSTS, self.nodes)
        request = replace(pods(1, cpu=3), node_selector={HOST: "b"})
        assert made.exclusions(request) == {"nodeSelector": 1, "resource cpu": 1, "taint large": 1}

    def test_wider_leaves_are_not_filtered(self) -> None:
        made = flavor(RACKS, [node("a", 1, taints=(LARGE,))])
        assert place(made, replace(pods(1), node_selector={HOST: "b"})) == {"main": {"r0": 1}}


class TestFits:
    made = flavor(RACKS, racks({"r0": [4]}))

    def usage(self, count: int, *, cpu: int = 1, leaf: tuple[str, ...] = ("b0", "r0")) -> TopologyUsage:
        return TopologyUsage({"cpu": cpu * 1000}, (TopologyDomain(leaf, count),))

    def test_entries_are_judged_one_by_one(self) -> None:
        """Correction A3: together they would oversubscribe the rack, and that is admitted."""
        assert self.made.fits([self.usage(4), self.usage(2)])
        assert not self.made.fits([self.usage(5)])

    def test_pods_are_not_counted(self) -> None:
        small = flavor(RACKS, [node("a", 4, pods=1)])
        assert small.fits([self.usage(4)])
        small.add_usage(self.usage(4))
        assert place(small, pods(1)) == 'topology "racks" has room for 0 of 1 pods'

    def test_domains_that_are_gone_do_not_fit(self) -> None:
        assert not self.made.fits([self.usage(1, leaf=("b0", "r9"))])
        assert not self.made.fits([self.usage(1, cpu=0, leaf=("b0", "r9"))])

    def test_pods_that_ask_for_nothing_fit(self) -> None:
        assert self.made.fits([self.usage(1000, cpu=0)])


class TestFlavors:
    def test_flavors_with_hosts_share_the_usage_of_shared_nodes(self) -> None:
        flavors = TopologyFlavors()
        flavors.set_flavor("hosts", HOSTS, {"pool": "tas"})
        flavors.set_flavor("all", RACKS_AND_HOSTS, {})
        flavors.set_flavor("racks", RACKS, {})
        flavors.set_nodes([node("a", 2)])
        flavors["hosts"].add_usage(pods(2).usage(TopologyAssignment((HOST,), (TopologyDomain(("a",), 2),))))
        assert place(flavors["all"], pods(1)) == 'topology "default" has room for 0 of 1 pods'
        assert place(flavors["racks"], pods(1)) == {"main": {"r0": 1}}

    def test_nodes_reach_flavors_in_any_order(self) -> None:
        flavors = TopologyFlavors()
        flavors.set_nodes([node("a", 1), node("b", 2)])
        flavors.set_flavor("hosts", HOSTS, {"pool": "tas"})
        flavors.set_nodes([node("b", 2), node("c", 3)])
        assert place(flavors["hosts"], pods(5)) == {"main": {"b": 2, "c": 3}}
        flavors.delete_node("c")
        flavors.delete_node("c")
        assert place(flavors["hosts"], pods(2)) == {"main": {"b": 2}}
        assert list(flavors) == ["hosts"]
        flavors.delete_flavor("hosts")
        assert len(flavors) == 0

    def test_a_changed_flavor_keeps_its_usage_while_its_levels_stay(self) -> None:
        flavors = TopologyFlavors()
        flavors.set_flavor("racks", RACKS, {"pool": "tas"})
        flavors.set_nodes([node("a", 2)])
        flavors["racks"].add_usage(TopologyUsage({"cpu": 2000}, (TopologyDomain(("b0", "r0"), 1),)))
        flavors.set_flavor("racks", RACKS, {}, (Toleration("large", TolerationOperator.EXISTS),))
        assert place(flavors["racks"], pods(1)) == 'topology "racks" has room for 0 of 1 pods'


levels = st.sampled_from([HOSTS, RACKS, RACKS_AND_HOSTS])
clusters = st.lists(
    st.tuples(st.sampled_from(["b0", "b1"]), st.sampled_from(["r0", "r1"]), st.integers(0, 5)), min_size=1, max_size=12
).map(lambda nodes: [node(f"n{i}", cpu, block=b, rack=f"{b}-{r}") for i, (b, r, cpu) in enumerate(nodes)])


@st.composite
def requests(draw: st.DrawFn, topology: Topology) -> TopologyRequest | None:
    level = draw(st.integers(0, len(topology.levels) - 1))
    size = draw(st.sampled_from([0, 1, 2, 3]))
    slice_level = draw(st.integers(level, len(topology.levels) - 1))
    slices = (SliceConstraint(topology.levels[slice_level], size),) if size else ()
    return draw(
        st.sampled_from(
            [
                None,
                TopologyRequest(unconstrained=True),
                TopologyRequest(required=topology.levels[level], slices=slices),
                TopologyRequest(preferred=topology.levels[level], slices=slices),
                TopologyRequest(slices=slices),
            ]
        )
    )


@given(st.data(), levels, clusters, st.integers(1, 12), st.integers(1, 2), st.booleans())
@settings(deadline=None)
def test_what_is_placed_is_whole_has_room_and_keeps_its_promise(
    data: st.DataObject, topology: Topology, nodes: list[Node], count: int, cpu: int, balanced: bool
) -> None:
    request = data.draw(requests(topology))
    size = request.slices[0].size if request and request.slices else 1
    wanted = pods(count - count % size or size, request, cpu=cpu)
    made = flavor(topology, nodes, balanced=balanced)
    found = made.find_topology_assignments([wanted])
    shuffled = flavor(topology, data.draw(st.permutations(nodes)), balanced=balanced)
    assert shuffled.find_topology_assignments([wanted]) == found
    if not isinstance(found, dict):
        return
    assignment = found["main"]
    assert assignment.count == wanted.count
    assert all(domain.count > 0 for domain in assignment.domains)
    tree = made.leaves.tree
    places = [tree.values[-1][tree.leaf_numbers[domain.values]] for domain in assignment.domains]
    assert places == sorted(set(places))
    for domain in assignment.domains:
        free = made.leaves.free(domain.values)
        assert free is not None
        assert domain.count * wanted.requests["cpu"] <= free["cpu"]
    if request and request.required:
        depth = topology.levels.index(request.required) + 1
        assert len({values[:depth] for values in places}) == 1
    if request and request.slices:
        depth = topology.levels.index(request.slices[0].topology) + 1
        per_domain: dict[tuple[str, ...], int] = {}
        for values, domain in zip(places, assignment.domains, strict=True):
            per_domain[values[:depth]] = per_domain.get(values[:depth], 0) + domain.count
        assert all(number % size == 0 for number in per_domain.values())


@given(
    st.data(),
    levels,
    clusters,
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2)), min_size=1, max_size=6),
)
@settings(deadline=None)
def test_usage_that_is_removed_in_any_order_leaves_no_trace(
    data: st.DataObject, topology: Topology, nodes: list[Node], shapes: list[tuple[int, int]]
) -> None:
    made, untouched = flavor(topology, nodes), flavor(topology, nodes)
    before = [made.find_topology_assignments([pods(count, cpu=cpu)]) for count, cpu in shapes]
    charged: list[TopologyUsage] = []
    for count, cpu in shapes:
        found = made.find_topology_assignments([pods(count, cpu=cpu)])
        if isinstance(found, dict):
            charged.append(pods(count, cpu=cpu).usage(found["main"]))
            made.add_usage(charged[-1])
    fresh = flavor(topology, nodes)
    for usage in charged:
        fresh.add_usage(usage)
    for count, cpu in shapes:
        request = [pods(count, TopologyRequest(preferred=topology.levels[0]), cpu=cpu)]
        assert made.find_topology_assignments(request) == fresh.find_topology_assignments(request)
    for usage in data.draw(st.permutations(charged)):
        made.remove_usage(usage)
    assert [made.find_topology_assignments([pods(count, cpu=cpu)]) for count, cpu in shapes] == before
    assert {leaf: used for leaf, used in made.usage.items() if used} == {}
    assert [untouched.find_topology_assignments([pods(count, cpu=cpu)]) for count, cpu in shapes] == before


@given(clusters, st.integers(1, 8), st.integers(1, 3))
@settings(deadline=None)
def test_leader_and_workers_are_placed_together_and_have_room(nodes: list[Node], count: int, leader_cpu: int) -> None:
    made = flavor(RACKS_AND_HOSTS, nodes)
    group = TopologyRequest(required=RACK, group="g")
    leader, workers = pods(1, group, cpu=leader_cpu, name="leader"), pods(count, group, name="workers")
    found = made.find_topology_assignments([leader, workers])
    if not isinstance(found, dict):
        return
    assert found["leader"].count == 1
    assert found["workers"].count == count
    cpus = {host: number * 1000 for host, number in domains(found["workers"]).items()}
    for host in domains(found["leader"]):
        cpus[host] = cpus.get(host, 0) + leader_cpu * 1000
    by_name = {each.name: each for each in nodes}
    assert all(cpu <= by_name[host].allocatable["cpu"] for host, cpu in cpus.items())
    assert len({by_name[host].labels[RACK] for host in cpus}) == 1
