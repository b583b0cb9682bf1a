"""Which pod is sent where."""

from scheduling.model.topology import TopologyAssignment, TopologyDomain, TopologyRequest
from scheduling.topology.ungater import TopologyPod, domains_for_gated_pods, node_selector, rank_offsets

INDEX, GROUP = "batch.kubernetes.io/job-completion-index", "jobset.sigs.k8s.io/job-index"
ASSIGNMENT = TopologyAssignment(("hostname",), (TopologyDomain(("a",), 2), TopologyDomain(("b",), 2)))
BY_INDEX = TopologyRequest(pod_index_label=INDEX)
BY_GROUP = TopologyRequest(pod_index_label=INDEX, sub_group_index_label=GROUP, sub_group_count=2)


def pod(name: str, index: object = None, group: object = None, domain: str | None = None) -> TopologyPod:
    labels = {key: str(value) for key, value in ((INDEX, index), (GROUP, group)) if value is not None}
    return TopologyPod(name, labels, None if domain is None else (domain,))


def test_ranks_are_laid_out_over_the_domains_in_stored_order() -> None:
    pods = [pod("w", 3), pod("x", 2), pod("y", 1), pod("z", 0)]
    assert domains_for_gated_pods(ASSIGNMENT, BY_INDEX, pods) == {"w": ("b",), "x": ("b",), "y": ("a",), "z": ("a",)}


def test_pods_that_are_not_there_yet_keep_their_places() -> None:
    assert domains_for_gated_pods(ASSIGNMENT, BY_INDEX, [pod("late", 2)]) == {"late": ("b",)}


def test_subgroups_follow_one_another() -> None:
    pods = [pod("0-0", 0, 0), pod("0-1", 1, 0), pod("1-0", 0, 1), pod("1-1", 1, 1)]
    expected = {"0-0": ("a",), "0-1": ("a",), "1-0": ("b",), "1-1": ("b",)}
    assert domains_for_gated_pods(ASSIGNMENT, BY_GROUP, pods) == expected


def test_the_numbering_may_start_elsewhere() -> None:
    assert domains_for_gated_pods(ASSIGNMENT, BY_INDEX, [pod("w", 5)], index_offset=2) == {"w": ("b",)}


def test_without_ranks_pods_fill_the_domains_in_order() -> None:
    pods = [pod("y"), pod("x"), pod("running", domain="a"), pod("z"), pod("too-many")]
    expected = {"too-many": ("a",), "x": ("b",), "y": ("b",)}
    assert domains_for_gated_pods(ASSIGNMENT, TopologyRequest(), pods) == expected


def test_ranks_that_cannot_be_trusted_are_not_used() -> None:
    in_order = {"x": ("a",), "y": ("a",)}
    for x, y in ((1, 1), (2, 4), (3, None), (3, "x"), (3, -1)):
        assert domains_for_gated_pods(ASSIGNMENT, BY_INDEX, [pod("x", x), pod("y", y)]) == in_order
    outside = [pod("x", 2, 0), pod("y", 0, 1)]
    assert domains_for_gated_pods(ASSIGNMENT, BY_GROUP, outside) == in_order


def test_a_pod_that_was_sent_elsewhere_ends_the_layout_by_rank() -> None:
    pods = [pod("x", 0, domain="b"), pod("y", 1), pod("z", 2)]
    assert domains_for_gated_pods(ASSIGNMENT, BY_INDEX, pods) == {"y": ("a",), "z": ("a",)}


def test_the_selector_names_every_stored_level() -> None:
    two = TopologyAssignment(("block", "rack"), (TopologyDomain(("b0", "r1"), 1),))
    assert node_selector(two, ("b0", "r1")) == {"block": "b0", "rack": "r1"}


def test_the_larger_pod_set_of_a_group_continues_the_ranks_of_the_smaller_one() -> None:
    assert rank_offsets([("launcher", 1, "same"), ("worker", 3, "same")]) == {"launcher": 0, "worker": 1}
    assert rank_offsets([("worker", 3, "same"), ("leader", 2, "same")]) == {"worker": 2, "leader": 0}
    assert rank_offsets([("a", 2, "same"), ("b", 2, "same")]) == {"a": 0, "b": 2}
    assert rank_offsets([("a", 1, None), ("b", 3, None)]) == {"a": 0, "b": 0}
