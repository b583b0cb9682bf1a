"""How to go back: steps that undo changes, and what was noted of things before they first changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Undoable(Protocol):
    """Something that can be copied cheaply and put back."""

    def snapshot(self) -> Any:
        """What it is now."""

    def restore(self, values: Any) -> None:
        """Be that again."""


class Journal:
    """Steps back to the last savepoint, the latest last. Notes nothing while it is closed."""

    __slots__ = ("_noted", "_steps")

    def __init__(self) -> None:
        self._steps: list[tuple[Callable[..., object], tuple[Any, ...]]] | None = None
        self._noted: set[int] = set()

    @property
    def is_open(self) -> bool:
        """Whether changes are being noted."""
        return self._steps is not None

    def open(self) -> None:
        """Note every change from now on."""
        self._steps = []
        self._noted = set()

    def close(self, *, undo: bool) -> None:
        """Stop; with `undo`, go back first."""
        steps, self._steps = self._steps, None
        if undo:
            for function, arguments in reversed(steps or ()):
                function(*arguments)

    def note(self, function: Callable[..., object], *arguments: Any) -> None:
        if self._steps is not None:
            self._steps.append((function, arguments))

    def note_once(self, thing: Undoable) -> None:
        """Remember a thing as it is, unless that was done since the savepoint."""
        if self._steps is not None and id(thing) not in self._noted:
            self._noted.add(id(thing))
            self._steps.append((thing.restore, (thing.snapshot(),)))
