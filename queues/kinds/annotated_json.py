"""Values that an annotation of a manifest states as JSON, and our JSON as a field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from scheduling.manifest import FieldReader, ValidationReport

Value = TypeVar("Value")
_KEY = "value"


def read_json_annotation(text: str, shape: str, read: Callable[[FieldReader, str], Value]) -> Value:
    """Read the value in an annotation; `read` gets the reader that holds it, and its key. Raises ValueError with the
    first mistake."""
    try:
        stated = json.loads(text)
    except ValueError as mistake:
        raise ValueError(f"must be {shape}: {mistake}") from mistake
    report = ValidationReport()
    found = read(FieldReader(report, "", {_KEY: stated}), _KEY)
    for error in report.errors:
        place = error.path.removeprefix(_KEY).removeprefix(".")
        raise ValueError(f"{place}: {error.rule}. {error.remedy}".removeprefix(": ").rstrip())
    return found
