"""Taints and tolerations of a manifest, by Kubernetes' rules, as dicts without empty values."""

from __future__ import annotations

from typing import Any

from scheduling.manifest.errors import MistakeReason
from scheduling.manifest.field_reader import INT32_MAX, FieldReader
from scheduling.manifest.syntax import label_value, qualified_name
from scheduling.model.selectors import TaintEffect, TolerationOperator, is_decimal_integer

_COMPARING = (TolerationOperator.LT, TolerationOperator.GT)


def read_taints(fields: FieldReader, key: str, max_items: int | None = None) -> list[dict[str, Any]]:
    """Read a list of taints, unique by key and effect."""
    found: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for item in fields.items(key, max_items=max_items):
        item.ignore("timeAdded")
        taint_key = item.text("key", required=True, syntax=qualified_name)
        value = item.text("value", syntax=label_value)
        effect = item.optional_choice("effect", list(TaintEffect))
        item.close()
        if effect is None:
            item.require("effect", f"Use one of {', '.join(TaintEffect)}.")
            continue
        if (taint_key, effect) in seen:
            item.error(
                "key", f"Duplicate value: a taint with effect {effect} exists", "Remove it.", MistakeReason.DUPLICATE
            )
        seen.add((taint_key, effect))
        found.append(_without_empty({"key": taint_key, "value": value, "effect": effect.value}))
    return found


def read_tolerations(fields: FieldReader, key: str, max_items: int | None = None) -> list[dict[str, Any]]:
    return [_read_toleration(item) for item in fields.items(key, max_items=max_items)]


def _read_toleration(item: FieldReader) -> dict[str, Any]:
    taint_key = item.text("key", syntax=qualified_name)
    operator = item.optional_choice("operator", list(TolerationOperator))
    value = item.text("value")
    effect = item.optional_choice("effect", list(TaintEffect))
    seconds = item.optional_integer("tolerationSeconds", minimum=-INT32_MAX)
    item.close()
    exists = operator is TolerationOperator.EXISTS
    if not taint_key and not exists:
        item.error("operator", "must be Exists when key is empty", "Name a key, or set operator: Exists.")
    if operator in _COMPARING and not is_decimal_integer(value):
        item.error("value", f"must be an integer when operator is {operator}", "Write it like 900 or -1.")
    if exists and value:
        item.error("value", "must be empty when operator is Exists", "Remove it.")
    if seconds is not None and effect is not TaintEffect.NO_EXECUTE:
        item.error("effect", "must be NoExecute when tolerationSeconds is set")
    return _without_empty(
        {
            "key": taint_key,
            "operator": operator.value if operator else "",
            "value": value,
            "effect": effect.value if effect else "",
            "tolerationSeconds": "" if seconds is None else seconds,
        }
    )


def _without_empty(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value != ""}
