"""The fields of server-side apply."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduling.manifest.applied_fields import (
    applied_part,
    as_fields,
    difference,
    fields_of,
    merged,
    projected,
    union,
    values_at,
    without,
    written,
)

SPEC: dict[str, Any] = {
    "labels": {"team": "a"},
    "containers": [
        {"name": "main", "image": "one", "ports": [{"containerPort": 80}], "args": ["x"]},
        {"name": "side", "image": "two"},
    ],
    "finalizers": ["one"],
}


def test_fields_have_kubernetes_form() -> None:
    assert fields_of(SPEC) == {
        "f:labels": {"f:team": {}},
        "f:containers": {
            'k:{"name":"main"}': {
                ".": {},
                "f:name": {},
                "f:image": {},
                "f:args": {},
                "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            },
            'k:{"name":"side"}': {".": {}, "f:name": {}, "f:image": {}},
        },
        "f:finalizers": {'v:"one"': {}},
    }


def test_what_identifies_an_object_is_not_owned() -> None:
    manifest = {
        "apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "uid": "1", "labels": {"b": "c", "d": None}},
        "spec": {"x": None}, "status": {"y": 1},
    }  # fmt: skip
    assert applied_part(manifest) == {"metadata": {"labels": {"b": "c"}}, "spec": {}}


def test_merging_keeps_what_was_not_applied() -> None:
    applied = {"containers": [{"name": "new"}, {"name": "side", "image": "three"}], "finalizers": ["two"]}
    found = merged(SPEC, applied)
    assert [item["name"] for item in found["containers"]] == ["main", "new", "side"]
    assert found["containers"][2]["image"] == "three"
    assert found["finalizers"] == ["one", "two"]
    assert found["labels"] == {"team": "a"}


def test_dropped_fields_go_and_take_what_they_leave_empty() -> None:
    dropped = difference(fields_of(SPEC), fields_of({"containers": [{"name": "main", "image": "one"}]}))
    assert without(SPEC, dropped) == {"containers": [{"name": "main", "image": "one"}]}


def test_paths_are_written_as_in_kubernetes() -> None:
    paths = [written(path) for path, _ in values_at(SPEC, fields_of(SPEC))]
    assert ".labels.team" in paths
    assert '.containers[name="main"].ports[containerPort=80,protocol="TCP"].containerPort' in paths
    assert '.finalizers[="one"]' in paths


_ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("xyz"), "value": st.integers(0, 3)}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
_SETS = st.lists(st.sampled_from("pq"), min_size=1, unique=True)
_OBJECTS = st.recursive(
    st.fixed_dictionaries({"a": st.integers(0, 3)}, optional={"env": _ITEMS, "finalizers": _SETS}),
    lambda inner: st.dictionaries(st.sampled_from(["b", "c"]), inner, min_size=1, max_size=2),
    max_leaves=5,
)
"""Objects in which no map and no list is empty: an empty one is a value that is owned whole."""


def is_within(part: Any, whole: Any) -> bool:
    """Whether the whole has each value of the part, with lists by key and as sets."""
    fields = fields_of(part)
    held = dict(values_at(whole, fields))
    return all(held.get(path) == value for path, value in values_at(part, fields))


@given(_OBJECTS, _OBJECTS)
def test_laws(there: Any, applied: Any) -> None:
    result = merged(there, applied)
    assert is_within(applied, result)
    assert merged(result, applied) == result
    assert projected(there, fields_of(there)) == there
    assert difference(fields_of(there), fields_of(there)) == {}
    both = union(fields_of(there), fields_of(applied))
    assert difference(fields_of(there), both) == {}
    owned = [path for path, _ in values_at(there, fields_of(there))]
    assert without(there, as_fields(owned)) == {}
