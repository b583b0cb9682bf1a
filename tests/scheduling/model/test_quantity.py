"""Quantities: the vectors that the front end shares, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.quantity import (
    NANOS,
    UNLIMITED,
    InvalidQuantity,
    format_amount,
    parse_amount,
    parse_quantity,
    sum_of_quantities,
    to_nanos,
)

VECTORS: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parents[2] / "quantity_vectors.json").read_text())


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1", NANOS),
        ("500m", NANOS // 2),
        ("1.5", 3 * NANOS // 2),
        (".5", NANOS // 2),
        ("1e3", 1000 * NANOS),
        ("1E3", 1000 * NANOS),
        ("2E", 2 * 10**18 * NANOS),
        ("100n", 100),
        ("0.1n", 1),
        ("-1", -NANOS),
        ("10Gi", 10 * 2**30 * NANOS),
        (2, 2 * NANOS),
        (0.5, NANOS // 2),
    ],
)
def test_parse(text: str | float, nanos: int) -> None:
    assert parse_quantity(text) == nanos


@pytest.mark.parametrize("text", ["", "m", "1x", "1 Gi", "0x10", "1e", "--1", "1ee3", True, "NaN", "inf"])
def test_what_is_no_quantity_is_named(text: Any) -> None:
    with pytest.raises(InvalidQuantity, match=r"is not a quantity|unknown suffix"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [("cpu", "100.1m", 101), ("cpu", "2", 2000), ("nvidia.com/gpu", "1500m", 2), ("memory", "1Ki", 1024)],
)
def test_amounts_are_rounded_up_to_base_units(resource: str, text: str, amount: int) -> None:
    assert parse_amount(resource, text) == amount


def test_amounts_never_exceed_the_mark_for_unlimited() -> None:
    assert parse_amount("memory", "100E") == UNLIMITED


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 2**30, "1Gi"), ("memory", 1000, "1000"), ("pods", 0, "0")],
)
def test_format(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
    assert parse_amount(resource, text) == amount


def test_nanos_of_an_amount() -> None:
    assert to_nanos("cpu", 1500) == 3 * NANOS // 2
    assert to_nanos("memory", 2) == 2 * NANOS


@pytest.mark.parametrize("vector", VECTORS["parse"], ids=lambda vector: f"{vector['resource']} {vector['text']}")
def test_shared_vectors_to_parse(vector: dict[str, Any]) -> None:
    assert parse_amount(vector["resource"], vector["text"]) == vector["amount"]


@pytest.mark.parametrize("vector", VECTORS["format"], ids=lambda vector: f"{vector['resource']} {vector['amount']}")
def test_shared_vectors_to_format(vector: dict[str, Any]) -> None:
    assert format_amount(vector["resource"], vector["amount"]) == vector["text"]


@pytest.mark.parametrize("text", VECTORS["invalid"])
def test_shared_vectors_that_are_refused(text: Any) -> None:
    with pytest.raises(InvalidQuantity):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("texts", "total"),
    [
        ([], "0"),
        (["0"], "0"),
        (["1200m", "2"], "3200m"),
        (["2", "18"], "20"),
        (["1G", "4G"], "5G"),
        (["1Gi", "1Gi"], "2Gi"),
        (["512Mi", "1G"], "1536870912"),
        (["0", "1G", "1Gi"], "2073741824"),
        (["512Mi", "512Mi"], "1Gi"),
        (["1Ki", "1"], "1025"),
        (["1e3", "2"], "1002"),
        (["1e3", "2k"], "3e3"),
        (["500", "500"], "1k"),
    ],
)
def test_sums_are_written_as_kubernetes_does(texts: list[str], total: str) -> None:
    assert sum_of_quantities(texts) == total


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3"]))))
def test_a_sum_is_exact_in_whatever_notation(parts: list[tuple[int, str]]) -> None:
    texts = [f"{number}{suffix}" for number, suffix in parts]
    exact = sum(parse_quantity(text) for text in texts)
    total = parse_quantity(sum_of_quantities(texts))
    binary = any(suffix.endswith("i") for _, suffix in parts)
    assert total == exact or (binary and 0 < total - exact < NANOS), "binary notation has no fractions"
