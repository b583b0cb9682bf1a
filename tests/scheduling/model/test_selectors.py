"""Taints, tolerations, node selectors and required node affinity, against the Kubernetes documentation's rules."""

from collections.abc import Mapping

import pytest

from scheduling.model.selectors import (
    RequiredNodeAffinity,
    Taint,
    TaintEffect,
    Toleration,
    TolerationOperator,
    matches_flavor,
    matches_node_selector,
    required_node_affinity,
    tolerates,
    untolerated_taint,
)

GPU_TAINT = Taint("gpu", "yes", TaintEffect.NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", TolerationOperator.EQUAL, "yes"), True),
        (Toleration("gpu", TolerationOperator.EQUAL, "no"), False),
        (Toleration("gpu", TolerationOperator.EXISTS), True),
        (Toleration("", TolerationOperator.EXISTS), True),
        (Toleration("", TolerationOperator.EQUAL, "yes"), False),
        (Toleration("cpu", TolerationOperator.EXISTS), False),
        (Toleration("gpu", TolerationOperator.EXISTS, effect=TaintEffect.NO_EXECUTE), False),
        (Toleration("gpu", TolerationOperator.EXISTS, effect=TaintEffect.NO_SCHEDULE), True),
    ],
)
def test_toleration_covers_taint(toleration: Toleration, expected: bool) -> None:
    assert tolerates(GPU_TAINT, [toleration]) is expected


@pytest.mark.parametrize(
    ("operator", "bound", "expected"),
    [
        (TolerationOperator.GT, "900", True),
        (TolerationOperator.GT, "950", False),
        (TolerationOperator.LT, "1000", True),
        (TolerationOperator.LT, "950", False),
        (TolerationOperator.LT, "-1", False),
        (TolerationOperator.GT, "0900", False),
        (TolerationOperator.GT, "", False),
    ],
)
def test_tolerations_compare_numbers(operator: TolerationOperator, bound: str, expected: bool) -> None:
    taint = Taint("sla", "950", TaintEffect.NO_EXECUTE)
    assert Toleration("sla", operator, bound).tolerates(taint) is expected
    assert not Toleration("other", operator, bound).tolerates(taint)
    assert not Toleration("sla", operator, bound).tolerates(Taint("sla", "high", TaintEffect.NO_EXECUTE))


def test_first_repelling_taint_is_reported_and_preference_ignored() -> None:
    soft = Taint("soft", effect=TaintEffect.PREFER_NO_SCHEDULE)
    hard = Taint("hard", effect=TaintEffect.NO_EXECUTE)
    assert untolerated_taint([soft, GPU_TAINT, hard], [Toleration("gpu", TolerationOperator.EXISTS)]) == hard
    assert untolerated_taint([soft], []) is None


def affinity(*terms: Mapping[str, object]) -> RequiredNodeAffinity:
    required = {"nodeSelectorTerms": list(terms)}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    read = required_node_affinity(spec)
    assert read is not None
    return read


def expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In", "b"), False),
        (expression("missing", "In", "a"), False),
        (expression("zone", "NotIn", "b"), True),
        (expression("missing", "NotIn", "a"), True),
        (expression("zone", "NotIn", "a"), False),
        (expression("zone", "Exists"), True),
        (expression("missing", "Exists"), False),
        (expression("missing", "DoesNotExist"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("devices", "Gt", "7"), True),
        (expression("devices", "Gt", "8"), False),
        (expression("devices", "Lt", "9"), True),
        (expression("devices", "Lt", "many"), False),
        (expression("zone", "Lt", "9"), False),
        (expression("missing", "Gt", "0"), False),
    ],
)
def test_node_affinity_operators(requirement: dict[str, object], expected: bool) -> None:
    labels = {"zone": "a", "devices": "8"}
    assert affinity({"matchExpressions": [requirement]}).matches("node-1", labels) is expected


def test_terms_are_alternatives_and_their_expressions_all_hold() -> None:
    both = {"matchExpressions": [expression("zone", "In", "a"), expression("disk", "Exists")]}
    named = {"matchFields": [expression("metadata.name", "In", "node-1")]}
    assert not affinity(both).matches("node-1", {"zone": "a"})
    assert affinity(both, named).matches("node-1", {"zone": "a"})
    assert not affinity(both, named).matches("node-2", {"zone": "a"})


def test_empty_terms_match_no_node() -> None:
    assert not affinity({}).matches("node-1", {"zone": "a"})
    assert not affinity().matches("node-1", {"zone": "a"})
    assert required_node_affinity({"affinity": {}}) is None


def test_node_selector_needs_every_pair() -> None:
    assert matches_node_selector({}, {})
    assert matches_node_selector({"zone": "a"}, {"zone": "a", "rack": "r"})
    assert not matches_node_selector({"zone": "a", "rack": "r"}, {"zone": "a"})


def test_flavor_is_judged_by_its_own_keys_only() -> None:
    """T20: a key that the flavor does not name is no reason to refuse it."""
    assert matches_flavor({"zone": "z1"}, None, {"type": "a"})
    assert not matches_flavor({"type": "b"}, None, {"type": "a"})
    other_key = {"matchExpressions": [expression("zone", "In", "z1")]}
    wrong_type = {"matchExpressions": [expression("type", "In", "b")]}
    fields_only = {"matchFields": [expression("metadata.name", "In", "node-1")]}
    assert matches_flavor({}, affinity(other_key, wrong_type), {"type": "a"})
    assert matches_flavor({}, affinity(fields_only, wrong_type), {"type": "a"})
    assert not matches_flavor({}, affinity(wrong_type), {"type": "a"})
