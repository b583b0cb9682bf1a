"""Tracebacks in logs.

The rule: a traceback is for a person who has to change the program. That PostgreSQL, Redis or another process of ours
is away is not the program's fault, and is one line. So no log of a process of ours holds any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_START = re.compile(r"^\s*(\+ Exception Group )?Traceback \(most recent call last\):")
_CONTINUED = ("During handling of the above exception", "The above exception was the direct cause")


def tracebacks(logs: Path) -> Iterator[tuple[str, str]]:
    """The process, and the traceback with the line before it; chained ones are one."""
    for path in sorted(logs.glob("*.log")):
        lines = path.read_text(errors="replace").splitlines()
        number = 0
        while number < len(lines):
            if not _START.match(lines[number]):
                number += 1
                continue
            begin, number = max(0, number - 1), _end(lines, number)
            yield path.stem, "\n".join(lines[begin:number])


def _end(lines: list[str], number: int) -> int:
    """The line after a traceback: behind its indented lines, the error's own, and those that it is chained to."""
    number += 1
    while number < len(lines):
        line = lines[number]
        if line.startswith((" ", "\t")) or not line or line.startswith(_CONTINUED) or _START.match(line):
            number += 1
        elif lines[number - 1].startswith((" ", "\t")):
            number += 1  # the error itself
        else:
            return number
    return number
