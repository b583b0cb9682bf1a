"""Tolerations of a manifest, by Kubernetes' rules."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.manifest import FieldReader, ValidationReport
from scheduling.manifest.taints import read_tolerations


def read(toleration: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """What is read of a toleration, and the fields with mistakes."""
    fields = FieldReader(ValidationReport(document=1, source="a.yaml"), "spec", {"tolerations": [toleration]})
    return read_tolerations(fields, "tolerations"), [error.path for error in fields.report.errors]


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        {"key": "sla", "operator": "Gt", "value": "900"},
        {"key": "sla", "operator": "Lt", "value": "-1", "effect": "NoExecute", "tolerationSeconds": 5},
    ],
)
def test_tolerations_are_read_as_they_are(toleration: dict[str, Any]) -> None:
    assert read(toleration) == ([toleration], [])


@pytest.mark.parametrize(
    ("toleration", "wrong"),
    [
        ({"value": "yes"}, "operator"),
        ({"key": "spot", "operator": "Exists", "value": "yes"}, "value"),
        ({"key": "sla", "operator": "Gt", "value": "high"}, "value"),
        ({"key": "sla", "operator": "Lt"}, "value"),
        ({"key": "sla", "operator": "About", "value": "5"}, "operator"),
        ({"key": "sla", "tolerationSeconds": 5}, "effect"),
    ],
)
def test_mistakes_in_tolerations(toleration: dict[str, Any], wrong: str) -> None:
    assert read(toleration)[1] == [f"spec.tolerations[0].{wrong}"]
