"""Slurm's Fair Tree."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.policies.fair_tree import Association, fair_tree

ROOT = Association("root", None, is_user=False)


@st.composite
def trees(draw: st.DrawFn) -> list[Association]:
    """A root, accounts in a tree, and users below any of them."""
    found = [ROOT]
    for number in range(draw(st.integers(0, 5))):
        parent = draw(st.sampled_from(found)).key
        found.append(Association(f"a{number}", parent, is_user=False, shares=draw(st.integers(0, 5))))
    accounts = list(found)
    for number in range(draw(st.integers(1, 6))):
        parent, shares = draw(st.sampled_from(accounts)).key, draw(st.none() | st.integers(0, 5))
        used = draw(st.integers(0, 100))
        found.append(Association(f"u{number}", parent, is_user=True, shares=shares, usage=used))
    return found


def factors(associations: list[Association]) -> dict[str, float]:
    return {key: found.factor for key, found in fair_tree(associations).items() if found.factor is not None}


def test_users_are_ranked_account_by_account() -> None:
    found = fair_tree(
        [
            ROOT,
            Association("a", "root", is_user=False, shares=40),
            Association("u1", "a", is_user=True, usage=20),
            Association("u2", "a", is_user=True, usage=5),
            Association("b", "root", is_user=False, shares=60),
            Association("u3", "b", is_user=True, usage=75),
        ]
    )
    levels = {key: standing.level for key, standing in found.items()}
    assert levels == pytest.approx({"a": 1.6, "b": 0.8, "u1": 0.625, "u2": 2.5, "u3": 1.0})
    assert {key: found[key].factor for key in ("u1", "u2", "u3")} == {"u1": 2 / 3, "u2": 1.0, "u3": 1 / 3}


def test_equal_users_share_a_rank_and_the_next_one_skips() -> None:
    users = [Association(name, "root", is_user=True, usage=used) for name, used in (("a", 5), ("b", 5), ("c", 9))]
    assert factors([ROOT, *users]) == {"a": 1.0, "b": 1.0, "c": 1 / 3}


def test_the_children_of_an_account_without_shares_count_one_level_up() -> None:
    passed = Association("passed", "root", is_user=False, shares=None)
    found = fair_tree([ROOT, passed, Association("u", "passed", is_user=True, usage=3)])
    assert (found["passed"].level, found["u"].factor) == (math.inf, 1.0)


@given(trees())
def test_every_user_has_a_rank(associations: list[Association]) -> None:
    found = factors(associations)
    users = [each for each in associations if each.is_user]
    assert found.keys() == {user.key for user in users}
    assert all(0 < factor <= 1 for factor in found.values())
    assert max(found.values()) == 1.0


@given(trees(), st.integers(2, 9))
def test_only_the_ratios_of_usage_count(associations: list[Association], scale: int) -> None:
    scaled = [replace(each, usage=each.usage * scale) for each in associations]
    assert factors(scaled) == factors(associations)


@given(trees(), st.data())
def test_a_user_never_rises_by_using_more(associations: list[Association], data: st.DataObject) -> None:
    number = data.draw(st.sampled_from([index for index, each in enumerate(associations) if each.is_user]))
    key, more = associations[number].key, [*associations]
    more[number] = replace(associations[number], usage=associations[number].usage + data.draw(st.integers(1, 50)))
    assert fair_tree(more)[key].level <= fair_tree(associations)[key].level
