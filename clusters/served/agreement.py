"""Decides which of two versions of an object, the row or the cluster's object, follows the other (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

ABSENT = ""
"""The content of an object that does not exist, or is being deleted."""


class Step(Enum):
    """The step that makes both sides equal again."""

    NOTHING = "nothing"
    FOLLOW = "follow"
    """The row is set to the object's content."""
    TELL = "tell"
    """The object is set to the row's content."""


@dataclass(frozen=True, slots=True)
class Side:
    """One writer's version: its content, comparable across both sides, and when it was last edited."""

    content: str
    edited_at: datetime


@dataclass(frozen=True, slots=True)
class Settlement:
    """The step, and whether it overwrites an edit of the other side."""

    step: Step
    overwrites: bool = False


def settle(agreed: str, row: Side, obj: Side) -> Settlement:
    """Decide the step for two sides that last agreed on `agreed`.

    If only one side has changed, the other follows it. If both have changed, the later edit wins; within the same
    second, the object wins. A deletion in the cluster always wins, because nothing is left to edit.
    """
    if row.content == obj.content:
        return Settlement(Step.NOTHING)
    if obj.content == agreed:
        return Settlement(Step.TELL)
    if row.content == agreed:
        return Settlement(Step.FOLLOW)
    is_later = row.edited_at > obj.edited_at and not (obj.content == ABSENT and agreed)
    return Settlement(Step.TELL if is_later else Step.FOLLOW, overwrites=True)
