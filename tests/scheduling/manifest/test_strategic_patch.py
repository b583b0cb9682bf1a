"""Kubernetes' strategic merge patch."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.manifest.strategic_patch import strategic_patch

POD: dict[str, Any] = {
    "containers": [
        {"name": "a", "image": "one", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "args": ["1"]},
        {"name": "b", "image": "two"},
    ],
    "tolerations": [{"key": "gpu"}],
    "restartPolicy": "Never",
}


def test_items_are_merged_by_their_keys() -> None:
    patch = {"containers": [{"name": "a", "image": "new", "env": [{"name": "X", "value": "9"}]}, {"name": "c"}]}
    found = strategic_patch(POD, patch)
    first, second, third = found["containers"]
    assert (first["image"], first["env"]) == ("new", [{"name": "X", "value": "9"}, {"name": "Y", "value": "2"}])
    assert (second, third) == ({"name": "b", "image": "two"}, {"name": "c"})
    assert found["restartPolicy"] == "Never"


def test_lists_without_keys_are_replaced() -> None:
    found = strategic_patch(POD, {"tolerations": [{"key": "spot"}], "containers": [{"name": "a", "args": ["2", "3"]}]})
    assert found["tolerations"] == [{"key": "spot"}]
    assert found["containers"][0]["args"] == ["2", "3"]


def test_directives() -> None:
    gone = strategic_patch(POD, {"containers": [{"name": "a", "$patch": "delete"}]})
    assert [found["name"] for found in gone["containers"]] == ["b"]
    replaced = strategic_patch(POD, {"containers": [{"$patch": "replace"}, {"name": "z"}]})
    assert replaced["containers"] == [{"name": "z"}]
    ordered = strategic_patch(
        POD,
        {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}], "containers": [{"name": "c"}]},
    )
    assert [found["name"] for found in ordered["containers"]] == ["c", "b", "a"]
    assert strategic_patch({"x": {"a": 1, "b": 2}}, {"x": {"$retainKeys": ["b", "c"], "c": 3}}) == {
        "x": {"b": 2, "c": 3}
    }
    assert strategic_patch({"x": {"a": 1}}, {"x": {"$patch": "replace", "b": 2}}) == {"x": {"b": 2}}
    assert strategic_patch({"x": {"a": 1}, "y": 1}, {"x": {"$patch": "delete"}}) == {"y": 1}
    meta = {"finalizers": ["one", "two"]}
    assert strategic_patch(meta, {"finalizers": ["three"]})["finalizers"] == ["one", "two", "three"]
    assert strategic_patch(meta, {"$deleteFromPrimitiveList/finalizers": ["one"]})["finalizers"] == ["two"]


@pytest.mark.parametrize("patch", [{"$patch": "perhaps"}, {"$unknown": 1}])
def test_unknown_directives_are_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Unsupported value"):
        strategic_patch(POD, patch)


_VALUES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: (
        st.dictionaries(st.sampled_from(["a", "b", "env", "name"]), inner, max_size=3) | st.lists(inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "env"]), _VALUES),
    st.dictionaries(st.sampled_from(["a", "env"]), _VALUES),
)
def test_a_patch_changes_neither_argument_and_is_idempotent(target: Any, patch: Any) -> None:
    kept = deepcopy((target, patch))
    once = strategic_patch(target, patch)
    assert (target, patch) == kept
    assert strategic_patch(once, patch) == once
