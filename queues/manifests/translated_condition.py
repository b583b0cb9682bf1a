"""The condition `Translated` of workloads whose job was translated from an object of another scheduler."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from queues.manifests.kueue_keys import TRANSLATED
from scheduling.model.times import rfc3339

TYPE: Final = "Translated"
_WHOLLY: Final = "Wholly"
_WITH_LOSSES: Final = "WithLosses"
_MAX_MESSAGE: Final = 32768
"""Kubernetes' bound of a condition's message."""


def translated_condition(annotations: Mapping[str, str], created_at: datetime) -> dict[str, Any] | None:
    """Return the condition for the annotation of a translation; None if the annotation is missing or has another text.
    The message names each field that is lost, or that has another form here."""
    told = _read(annotations.get(TRANSLATED, ""))
    if told is None:
        return None
    lost, kept = _fields(told.get("lost")), _fields(told.get("kept"))
    lines = [f"{path} -> lost: {text}" for path, text in lost.items()]
    lines += [f"{path} -> {text}" for path, text in kept.items()]
    message = "; ".join((f"From {told.get('from', 'another scheduler')}", *lines))
    return {
        "type": TYPE,
        "status": "True",
        "reason": _WITH_LOSSES if lost else _WHOLLY,
        "message": message[:_MAX_MESSAGE],
        "lastTransitionTime": rfc3339(created_at),
    }


def _fields(told: Any) -> Mapping[str, Any]:
    return told if isinstance(told, Mapping) else {}


def _read(text: str) -> dict[str, Any] | None:
    try:
        told = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None  # anyone may write an annotation
    return told if isinstance(told, dict) else None
