"""The three patches beside server-side apply."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.simulated.api.errors import ApiError
from clusters.simulated.api.patching import json_patch, merge_patch, strategic_merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, "bar", "bar"),
    ],
)
def test_merge_patch_as_in_rfc_7386(target: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(target, patch) == expected


def test_strategic_merge_merges_containers_by_name() -> None:
    target = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    patch = {"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]}
    merged = strategic_merge_patch(target, patch)
    assert [(entry["name"], entry["image"]) for entry in merged["containers"]] == [("a", "1"), ("b", "2"), ("c", "3")]


def test_strategic_merge_deletes_and_replaces_by_directive() -> None:
    target = {"containers": [{"name": "a"}, {"name": "b"}], "finalizers": ["x", "y"], "labels": {"a": "1", "b": "2"}}
    patch: dict[str, Any] = {
        "containers": [{"name": "a", "$patch": "delete"}],
        "$deleteFromPrimitiveList/finalizers": ["x"],
        "finalizers": ["z"],
        "labels": {"$patch": "replace", "c": "3"},
    }
    assert strategic_merge_patch(target, patch) == {
        "containers": [{"name": "b"}],
        "finalizers": ["y", "z"],
        "labels": {"c": "3"},
    }


def test_strategic_merge_replaces_lists_without_a_key_and_merges_taints_by_key() -> None:
    target = {"args": ["a"], "taints": [{"key": "a", "effect": "NoSchedule"}]}
    patch = {"args": ["b"], "taints": [{"key": "b", "effect": "NoExecute"}]}
    merged = strategic_merge_patch(target, patch)
    assert (merged["args"], [taint["key"] for taint in merged["taints"]]) == (["b"], ["a", "b"])


def test_json_patch() -> None:
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/a", "value": 1},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "replace", "path": "/list/0", "value": 0},
        {"op": "remove", "path": "/x~1y"},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "move", "from": "/a", "path": "/c"},
    ]
    assert json_patch({"a": 1, "list": [1, 2], "x/y": 2}, operations) == {"b": 1, "c": 1, "list": [0, 2, 3]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/none"},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "replace", "path": "/list/7", "value": 1},
        {"op": "explode", "path": "/a"},
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        json_patch({"a": 1, "list": []}, [operation])
