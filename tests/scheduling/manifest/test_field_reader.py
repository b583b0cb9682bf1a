"""FieldReader: every mistake is noted with its place, and reading goes on."""

from enum import StrEnum
from typing import Any

import pytest

from scheduling.manifest import FieldReader, MistakeReason, ValidationReport


class Colour(StrEnum):
    RED = "Red"
    GREEN = "Green"


def read(**content: Any) -> FieldReader:
    return FieldReader(ValidationReport(document=3, source="a.yaml"), "spec", content)


def noted(fields: FieldReader) -> list[tuple[str, str]]:
    return [(error.path, error.reason) for error in fields.report.errors]


def test_it_reads_values() -> None:
    fields = read(a="text", b=5, c=True, d="500m", e="10Gi", f="Red", g=["x", "y"], h={"k": "v"}, i=[{"n": 1}])
    assert fields.text("a") == "text"
    assert fields.integer("b", 0) == 5
    assert fields.boolean("c") is True
    assert fields.amount("d", "cpu") == 500
    assert fields.amount("e", "memory") == 10 * 2**30
    assert fields.choice("f", Colour.GREEN) is Colour.RED
    assert fields.texts("g") == ["x", "y"]
    assert fields.text_map("h") == {"k": "v"}
    assert [item.integer("n", 0) for item in fields.items("i")] == [1]
    fields.close()
    assert noted(fields) == []


def test_null_is_as_good_as_left_out() -> None:
    fields = read(a=None, b=None, c=None, d=None, e=None)
    assert fields.text("a", "x") == "x"
    assert fields.integer("b", 7) == 7
    assert fields.boolean("c", default=True) is True
    assert fields.fields("d") is None
    assert fields.items("e") == []
    assert not fields.has("a")
    fields.close()
    assert noted(fields) == []


@pytest.mark.parametrize(
    ("value", "read_it", "reason"),
    [
        (5, lambda fields: fields.text("a"), MistakeReason.WRONG_TYPE),
        ("", lambda fields: fields.text("a", required=True), MistakeReason.REQUIRED),
        ("long", lambda fields: fields.text("a", max_length=3), MistakeReason.TOO_LONG),
        ("5", lambda fields: fields.integer("a", 0), MistakeReason.WRONG_TYPE),
        (True, lambda fields: fields.integer("a", 0), MistakeReason.WRONG_TYPE),
        (-1, lambda fields: fields.integer("a", 0), MistakeReason.INVALID),
        ("yes", lambda fields: fields.boolean("a"), MistakeReason.WRONG_TYPE),
        ("Blue", lambda fields: fields.choice("a", Colour.RED), MistakeReason.NOT_SUPPORTED),
        ("much", lambda fields: fields.quantity("a"), MistakeReason.INVALID),
        ([1], lambda fields: fields.quantity("a"), MistakeReason.WRONG_TYPE),
        (True, lambda fields: fields.quantity("a"), MistakeReason.INVALID),
        ("-1", lambda fields: fields.quantity("a"), MistakeReason.INVALID),
        ("10E", lambda fields: fields.amount("a", "memory"), MistakeReason.INVALID),
        ([], lambda fields: fields.fields("a"), MistakeReason.WRONG_TYPE),
        ({}, lambda fields: fields.items("a"), MistakeReason.WRONG_TYPE),
        ([1], lambda fields: fields.texts("a"), MistakeReason.WRONG_TYPE),
        (["x", "x"], lambda fields: fields.texts("a"), MistakeReason.DUPLICATE),
        ([], lambda fields: fields.sequence("a", min_items=1), MistakeReason.REQUIRED),
        ([1, 2], lambda fields: fields.sequence("a", max_items=1), MistakeReason.TOO_MANY),
        ({"k": 5}, lambda fields: fields.text_map("a"), MistakeReason.WRONG_TYPE),
    ],
)
def test_a_wrong_value_is_noted(value: Any, read_it: Any, reason: MistakeReason) -> None:
    fields = read(a=value)
    read_it(fields)
    assert [error.reason for error in fields.report.errors] == [reason]
    (error,) = fields.report.errors
    assert error.path.startswith("spec.a")
    assert (error.document, error.source) == (3, "a.yaml")


def test_a_field_that_no_reader_took_is_unknown() -> None:
    fields = read(known=1, knwon=2, other=3)
    fields.integer("known", 0)
    fields.close()
    assert noted(fields) == [("spec.knwon", MistakeReason.UNKNOWN_FIELD), ("spec.other", MistakeReason.UNKNOWN_FIELD)]
    assert fields.report.errors[0].remedy == 'Did you mean "known"?'
    assert fields.report.errors[1].remedy == "Supported: known."


def test_a_required_mapping_that_is_missing_is_noted_once() -> None:
    fields = read()
    inner = fields.required_fields("inner")
    inner.text("name", required=True)
    assert noted(fields) == [("spec.inner", MistakeReason.REQUIRED)]


def test_a_mistake_reads_as_a_sentence() -> None:
    fields = read(a="Blu", b=None)
    fields.choice("a", Colour.RED)
    fields.require("b")
    assert [str(error) for error in fields.report.errors] == [
        "a.yaml, document 3, spec.a: 'Blu': must be one of Red, Green. Supported: Green, Red.",
        "a.yaml, document 3, spec.b: Required value. Add it.",
    ]
