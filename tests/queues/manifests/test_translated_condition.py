"""The condition of a translated workload: it says what the annotation says, and any other text is harmless."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.manifests.kueue_keys import TRANSLATED
from queues.manifests.translated_condition import translated_condition
from tests.factories import START


def condition(text: str) -> dict[str, Any] | None:
    return translated_condition({TRANSLATED: text}, START)


def test_a_workload_that_was_not_translated_has_none() -> None:
    assert translated_condition({}, START) is None


@pytest.mark.parametrize(
    ("told", "reason", "message"),
    [
        ({"from": "x Job", "kept": {"a": "b"}}, "Wholly", "From x Job; a -> b"),
        ({"from": "x Job", "lost": {"c": "d"}, "kept": {"a": "b"}}, "WithLosses", "From x Job; c -> lost: d; a -> b"),
        ({"lost": [1]}, "Wholly", "From another scheduler"),
    ],
)
def test_it_names_each_field(told: dict[str, Any], reason: str, message: str) -> None:
    found = condition(json.dumps(told))
    assert found is not None
    assert (found["type"], found["status"], found["reason"], found["message"]) == (
        "Translated", "True", reason, message,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3", "[" * 100_000, "1" * 5000])
def test_an_annotation_of_any_text_is_harmless(text: str) -> None:
    assert condition(text) is None


def test_a_long_message_is_cut_to_what_kubernetes_takes() -> None:
    found = condition(json.dumps({"lost": {str(number): "x" * 100 for number in range(1000)}}))
    assert found is not None
    assert len(found["message"]) == 32768


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    condition(text)
