"""Volcano's Queues as ClusterQueues and Cohorts: a tree keeps the sums of its claims."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.manifests.translation.volcano_queue_objects import translate_queues

Cell = dict[str, str]


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def cell_of(manifest: dict[str, Any], resource: str = "cpu") -> Cell:
    (group,) = manifest["spec"]["resourceGroups"]
    return next(cell for cell in group["flavors"][0]["resources"] if cell["name"] == resource)


def test_a_parent_has_what_is_beyond_the_queues_below_it() -> None:
    made = translate_queues(
        [
            queue("lab", deserved={"cpu": 10}, capability={"cpu": 20}),
            queue("a", parent="lab", deserved={"cpu": 4}),
            queue("b", parent="lab", deserved={"cpu": 3}),
        ]
    )
    lab, a, b = (each.manifests[0] for each in made)
    assert (lab["kind"], a["kind"], b["kind"]) == ("Cohort", "ClusterQueue", "ClusterQueue")
    assert cell_of(lab) == {"name": "cpu", "nominalQuota": "3", "borrowingLimit": "10"}
    root = made[0].shared[1]
    quotas = json.loads(root["metadata"]["annotations"]["kueueweb.io/node-quotas"])
    assert {each["resource"]: each["headroom"] for each in quotas}["cpu"] == "10"


TREE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=5)


@given(TREE)
def test_the_quotas_of_a_subtree_are_the_larger_of_its_claim_and_of_those_below(tree: list[tuple[int, int]]) -> None:
    """Each queue is below an earlier one, or below the root."""
    queues = [
        queue(f"q{number}", deserved={"cpu": cpu}, **({"parent": f"q{above}"} if above < number else {}))
        for number, (above, cpu) in enumerate(tree)
    ]
    made = {each.manifests[0]["metadata"]["name"]: each for each in translate_queues(queues)}
    own = {name: int(cell_of(each.manifests[0])["nominalQuota"]) for name, each in made.items()}
    above = {each["metadata"]["name"]: each["spec"].get("parent", "root") for each in queues}

    def total(name: str) -> int:
        return own[name] + sum(total(child) for child, parent in above.items() if parent == name)

    for number, (_, cpu) in enumerate(tree):
        below = sum(total(child) for child, parent in above.items() if parent == f"q{number}")
        assert total(f"q{number}") == max(cpu, below)


def test_a_long_chain_of_parents_is_read() -> None:
    queues = [queue(f"q{number}", parent=f"q{number + 1}", deserved={"cpu": 1}) for number in range(3000)]
    made = translate_queues(queues)
    assert cell_of(made[0].manifests[0])["nominalQuota"] == "1"
    assert {cell_of(each.manifests[0])["nominalQuota"] for each in made[1:]} == {"0"}


def test_resources_without_end_are_refused() -> None:
    (made,) = translate_queues([queue("a", capability={f"example.com/r{number}": 1 for number in range(100)})])
    (refusal,) = made.refusals
    assert refusal.rule == "the queues of the request name 103 resources: at most 64 are covered"


def test_a_name_is_given_to_one_queue() -> None:
    first, second = translate_queues(
        [queue("a", guarantee={"resource": {"example.com/r": 1}}), queue("a", guarantee={"resource": {"cpu": 1}})]
    )
    assert first.refusals == []
    assert [(refusal.path, refusal.rule) for refusal in second.refusals] == [("metadata.name", "Duplicate value")]


def test_queues_below_each_other_are_refused() -> None:
    for made in translate_queues([queue("a", parent="b"), queue("b", parent="a")]):
        assert [(refusal.path, refusal.rule) for refusal in made.refusals] == [
            ("spec.parent", "the parents form a circle")
        ]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"guarantee": {"resource": {"cpu": 5}}, "deserved": {"cpu": 4}}, "spec.guarantee.resource[cpu]"),
        ({"deserved": {"cpu": 5}, "capability": {"cpu": 4}}, "spec.deserved[cpu]"),
        ({"wieght": 5}, "spec.wieght"),
    ],
)
def test_claims_that_contradict_each_other_are_refused(spec: dict[str, Any], path: str) -> None:
    (made,) = translate_queues([queue("a", **spec)])
    assert [refusal.path for refusal in made.refusals] == [path]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"affinity": {"nodeGroupAffinity": {}, "x": 1}}, "spec.affinity"),
        ({"extendClusters": [{"name": "b"}]}, "spec.extendClusters"),
        ({"capability": {"pods": 10}}, "spec.capability[pods]"),
    ],
)
def test_what_a_queue_cannot_say_here_is_named(spec: dict[str, Any], path: str) -> None:
    (made,) = translate_queues([queue("a", **spec)])
    assert path in {note.path for note in made.lost}
