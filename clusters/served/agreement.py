"""Two versions of one object, the row and the cluster's object: decides which of them follows the other (pure)."""

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
    """Decide the step for two sides that had `agreed` before.

    If one side alone has changed, it is followed. If both have, the later edit stands; of two in the same second, the
    object's does. A deletion in the cluster stands: there is nothing left to edit.
    """
    if row.content == obj.content:
        return Settlement(Step.NOTHING)
    if obj.content == agreed:
        return Settlement(Step.TELL)
    if row.content == agreed:
        return Settlement(Step.FOLLOW)
    is_later = row.edited_at > obj.edited_at and not (obj.content == ABSENT and agreed)
    return Settlement(Step.TELL if is_later else Step.FOLLOW, overwrites=True)
