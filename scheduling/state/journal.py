"""The journal of a batch: undo steps, and snapshots of objects from before their first change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Undoable(Protocol):
    """An object that can be copied cheaply and restored."""

    def snapshot(self) -> Any:
        """Return a copy of the current values."""

    def restore(self, values: Any) -> None:
        """Put the values of a snapshot back."""


class Journal:
    """Undo steps since the last savepoint. Records nothing while it is closed."""

    __slots__ = ("_noted", "_steps")

    def __init__(self) -> None:
        self._steps: list[tuple[Callable[..., object], tuple[Any, ...]]] | None = None
        self._noted: set[int] = set()

    @property
    def is_open(self) -> bool:
        """Whether changes are being recorded."""
        return self._steps is not None

    def open(self) -> None:
        """Record every change from now on."""
        self._steps = []
        self._noted = set()

    def close(self, *, undo: bool) -> None:
        """Stop recording; with `undo`, first revert every recorded change, latest first."""
        steps, self._steps = self._steps, None
        if undo:
            for function, arguments in reversed(steps or ()):
                function(*arguments)

    def note(self, function: Callable[..., object], *arguments: Any) -> None:
        if self._steps is not None:
            self._steps.append((function, arguments))

    @property
    def step_count(self) -> int:
        """How many steps would be undone."""
        return len(self._steps or ())

    def note_again(self, thing: Undoable) -> None:
        """Record an object's values at this step, even if they were recorded before."""
        if self._steps is not None:
            self._steps.append((thing.restore, (thing.snapshot(),)))

    def note_once(self, thing: Undoable) -> None:
        """Record an object's values, unless they were recorded since the savepoint."""
        if self._steps is not None and id(thing) not in self._noted:
            self._noted.add(id(thing))
            self._steps.append((thing.restore, (thing.snapshot(),)))
