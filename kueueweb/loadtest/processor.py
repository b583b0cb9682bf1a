"""Seconds of processor that processes have taken: a figure that other load of the machine hardly moves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

Clock = Callable[[], Mapping[str, float]]
"""Answers the seconds taken so far, by the name of the process."""


def seconds_taken(pid: int) -> float:
    """Return user and system time of a process and of its descendants, ended ones included; 0 for a process that has
    ended. Linux only: it reads `/proc`."""
    folder = Path(f"/proc/{pid}")
    try:
        # The second field, the command in parentheses, may contain spaces.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # utime, stime, cutime, cstime: fields 14 to 17 of proc(5), 11 to 14 behind the command.
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(seconds_taken, _children(folder)))


def _children(folder: Path) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (folder / "task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found
