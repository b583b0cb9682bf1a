"""Deltas applied and merged lead to the same numbers; an audience sees its own and no more."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from queues.services.visibility import Visibility
from scheduler.live.frames import PARTS, Audience, apply, empty, merge, moves, redact

names = st.sampled_from("abcd")
parts = st.dictionaries(names, st.integers(0, 9), max_size=3)


@st.composite
def deltas(draw: st.DrawFn) -> dict[str, Any]:
    """Whole entries of some names; other names removed."""
    delta: dict[str, Any] = {part: draw(parts) for part in PARTS if draw(st.booleans())}
    removed = {part: [name for name in draw(st.sets(names)) if name not in delta.get(part, {})] for part in PARTS}
    if any(removed.values()):
        delta["removed"] = removed
    if draw(st.booleans()):
        delta["totals"] = {"pending": draw(st.integers(0, 9))}
    return delta


@given(st.lists(deltas(), max_size=6))
def test_a_merged_delta_leads_where_all_of_them_lead(steps: list[dict[str, Any]]) -> None:
    one_by_one, at_once = empty(), empty()
    for step in steps:
        apply(one_by_one, step)
    apply(at_once, merge(steps))
    assert at_once == one_by_one


def queue(cohort: str, pending: int = 1) -> dict[str, Any]:
    return {"cohort": cohort, "pending": pending, "inadmissible": 0, "reserving": 0, "admitted": 2, "usage": []}


WHOLE = {
    "totals": {"pending": 11, "inadmissible": 0, "reserving": 0, "admitted": 4, "devices": 1},
    "cluster_queues": {"research": queue("science", 1), "production": queue("business", 10)},
    "cohorts": {
        "company": {"parent": ""},
        "science": {"parent": "company"},
        "business": {"parent": "company"},
    },
    "devices": {
        "GPU-1": {
            "node": "n1",
            "used_memory_mib": 3,
            "slices": [
                {
                    "workload": "team-a/x",
                    "namespace": "team-a",
                    "pod_set": "main",
                    "replica": 1,
                    "container": "c",
                    "memory_mib": 1,
                },
                {
                    "workload": "team-b/y",
                    "namespace": "team-b",
                    "pod_set": "main",
                    "replica": 1,
                    "container": "c",
                    "memory_mib": 2,
                },
            ],
        }
    },
}
TENANT = Audience(frozenset({"team-a"}), Visibility(frozenset({"research", "not-yet-there"})))
AUDITOR = Audience(None, Visibility(None))


def test_a_tenant_sees_its_queues_and_who_its_own_neighbours_are_not() -> None:
    seen = redact(WHOLE, WHOLE, TENANT)
    assert list(seen["cluster_queues"]) == ["research"]
    assert sorted(seen["cohorts"]) == ["company", "science"]
    assert seen["totals"] == {"pending": 1, "inadmissible": 0, "reserving": 0, "admitted": 2, "devices": 1}
    mine, occupied = seen["devices"]["GPU-1"]["slices"]
    assert mine["workload"] == "team-a/x"
    assert occupied == {
        "workload": None,
        "namespace": None,
        "pod_set": "",
        "replica": 0,
        "container": "",
        "memory_mib": 2,
    }
    assert "team-b" not in repr(seen)
    assert "production" not in repr(seen)
    assert WHOLE["devices"]["GPU-1"]["slices"][1]["workload"] == "team-b/y"  # type: ignore[index]  # what came in is left alone


def test_a_delta_of_others_is_empty_but_for_the_totals() -> None:
    delta = {"cluster_queues": {"production": queue("business", 11)}}
    assert redact(delta, WHOLE, TENANT) == {"cluster_queues": {}, "totals": redact(WHOLE, WHOLE, TENANT)["totals"]}
    assert redact(delta, WHOLE, AUDITOR) == delta


def test_workloads_are_named_to_those_who_may_see_them() -> None:
    delta = {"workloads": {"changed": ["team-a/x", "team-b/y"]}}
    assert redact(delta, WHOLE, AUDITOR) == delta
    assert redact(delta, WHOLE, TENANT) == {"workloads": {"changed": ["team-a/x"]}}
    others = {"workloads": {"changed": ["team-b/y"]}}
    assert redact(others, WHOLE, TENANT) == {}
    many = {"workloads": {"changed": ["team-b/y"], "more": True}}
    assert redact(many, WHOLE, TENANT) == {"workloads": {"changed": [], "more": True}}


def test_a_merged_delta_names_each_workload_once_and_not_too_many() -> None:
    first, second = {"workloads": {"changed": ["a/x", "a/y"]}}, {"workloads": {"changed": ["a/y", "a/z"]}}
    assert merge([first, {}, second]) == {"workloads": {"changed": ["a/x", "a/y", "a/z"]}}
    many = [{"workloads": {"changed": [f"a/{number}" for number in range(start, start + 60)]}} for start in (0, 60)]
    assert merge(many)["workloads"] == {"changed": [f"a/{number}" for number in range(100)], "more": True}
    assert merge([first, {"workloads": {"changed": [], "more": True}}])["workloads"]["more"]


def test_what_changes_the_tree() -> None:
    assert not moves(WHOLE, {"cluster_queues": {"research": queue("science", 7)}})
    assert not moves(WHOLE, {"totals": {}})
    assert moves(WHOLE, {"cluster_queues": {"research": queue("business")}})
    assert moves(WHOLE, {"cluster_queues": {"new": queue("")}})
    assert moves(WHOLE, {"cohorts": {"science": {"parent": ""}}})
    assert moves(WHOLE, {"removed": {"devices": ["GPU-1"]}})
