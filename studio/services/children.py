"""One child process per question: a fork of the studio that works on its copy of everything, within limits.

The child writes first answers as lines of JSON to a pipe, then its outcome, and ends. It ends with the studio, whatever
ends that (Linux).
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import orjson

from foundation.exceptions import KueuewebError
from foundation.parent_death import to_die_with

_NICENESS: Final = 10
"""The scheduler has precedence on a machine that both run on."""
_KILLED_FIRST: Final = b"800"
"""The score by which the kernel ends a child, and not the studio or the database, when memory runs out."""
_MIB: Final = 2**20
_READ_BYTES: Final = 2**18
MAX_ANSWER_BYTES: Final = 16 * _MIB

_log = logging.getLogger(__name__)

GoOn = Callable[[], bool]
Tell = Callable[[Mapping[str, Any]], None]
Work = Callable[[GoOn, Tell], Mapping[str, Any]]
"""Tries a question while `go_on` returns True, and returns its answer as JSON. Before that, it may `tell` first
answers.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one child: seconds, by the clock and of processor time, and memory beyond the studio's.

    It stops trying when its seconds are over, between two cycles; `grace_seconds` later it is killed.
    """

    seconds: float
    memory_mib: int
    grace_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a question: an answer, or the stable reason of a failure and a message."""

    answer: Mapping[str, Any] | None = None
    reason: str = ""
    message: str = ""


@dataclass(slots=True)
class Child:
    """A running child; `pipe` is readable when it has written or ended."""

    pid: int
    pipe: int
    limits: Limits
    started: float = field(default_factory=time.monotonic)
    outcome: Outcome | None = None
    _first: Mapping[str, Any] | None = None
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    @classmethod
    def unstarted(cls, limits: Limits, outcome: Outcome) -> Self:
        """Return a child that never was: it has only an outcome."""
        return cls(0, -1, limits, outcome=outcome)

    def read(self) -> None:
        """Read the child's output. When the child has ended, set `outcome`. Call this when the pipe is readable."""
        with suppress(BlockingIOError):
            while part := os.read(self.pipe, _READ_BYTES):
                self._size += len(part)
                if self._size > MAX_ANSWER_BYTES:
                    self.end(Outcome(None, "TooLarge", f"The answer has more than {MAX_ANSWER_BYTES // _MIB} MiB."))
                    return
                self._parts.append(part)
                if b"\n" in part:
                    self._take_lines()
            self._reap()

    def take_first(self) -> Mapping[str, Any] | None:
        """Return the first answer that it has told since the last call."""
        found, self._first = self._first, None
        return found

    def _take_lines(self) -> None:
        """Read the complete lines, which are first answers."""
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts, self._size = [rest], len(rest)
        for line in lines:
            with suppress(orjson.JSONDecodeError):
                self._first = orjson.loads(line)

    def is_overdue(self) -> bool:
        """Return whether it still runs although its own alarm should have ended it."""
        return time.monotonic() - self.started > self.limits.seconds + 2 * self.limits.grace_seconds

    def end(self, outcome: Outcome) -> None:
        """Kill the child, and set its outcome."""
        if self.outcome is None:
            os.kill(self.pid, signal.SIGKILL)  # it is not reaped, so that the number is still its own
            self._reap()
        self.outcome = outcome

    def _reap(self) -> None:
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.outcome = self._written() if status == 0 else _killed(status, self.limits)

    def _written(self) -> Outcome:
        try:
            return Outcome(**orjson.loads(b"".join(self._parts)))
        except (orjson.JSONDecodeError, TypeError):
            return Outcome(None, "Error", "The trial ended without an answer.")


def start_child(work: Work, limits: Limits) -> Child:
    """Fork a child that does the work. The caller holds no connection, and has no threads. Raises OSError, and leaves
    nothing open, if the system has no process, memory or file left for a child."""
    reading, writing = os.pipe()
    die_with_studio = to_die_with(os.getpid(), signal.SIGKILL)
    try:
        pid = _fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if pid:
        os.close(writing)
        os.set_blocking(reading, False)
        return Child(pid, reading, limits)
    status = 1
    try:
        os.close(reading)
        if die_with_studio is not None:
            die_with_studio()
        _limit(limits)
        _write(writing, _outcome(work, limits, lambda first: _write(writing, _json(first) + b"\n")))
        status = 0
    finally:
        os._exit(status)  # neither the studio's clean-up nor its buffers


def _fork() -> int:
    with warnings.catch_warnings():
        # The linear algebra below numpy has threads, which it stops and starts around a fork by itself.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _limit(limits: Limits) -> None:
    """Limit this process, for good."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.nice(_NICENESS)
    with suppress(OSError):  # another system than Linux has no such file
        Path("/proc/self/oom_score_adj").write_bytes(_KILLED_FIRST)
    whole = limits.seconds + limits.grace_seconds
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, whole)
    _set_limit(resource.RLIMIT_CPU, round(whole) + 1)
    _set_limit(resource.RLIMIT_CORE, 0)
    if present := _address_space_bytes():
        _set_limit(resource.RLIMIT_AS, present + limits.memory_mib * _MIB)


def _set_limit(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (value, value))


def _address_space_bytes() -> int:
    """Return the address space that this process has; 0 if the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _json(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def _outcome(work: Work, limits: Limits, tell: Tell) -> bytes:
    end = time.monotonic() + limits.seconds
    try:
        return _json({"answer": work(lambda: time.monotonic() < end, tell)})
    except MemoryError:
        outcome = _too_much_memory(limits)
    except KueuewebError as error:
        outcome = Outcome(None, error.reason, error.message)
    except Exception:  # noqa: BLE001 (the asker is told of any failure, and the studio continues)
        # Its text may name objects of other tenants: only the log has it.
        _log.exception("A trial failed")
        outcome = Outcome(None, "Error", "The trial failed; the studio's log has the reason.")
    return orjson.dumps(outcome)


def _write(pipe: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(pipe, view) :]


def _killed(status: int, limits: Limits) -> Outcome:
    number = -os.waitstatus_to_exitcode(status)
    if number in (signal.SIGALRM, signal.SIGXCPU):
        return Outcome(None, "TimeLimit", f"The trial took more than {limits.seconds:g} s (STUDIO_SECONDS).")
    if number == signal.SIGKILL:
        return Outcome(None, "Killed", "The trial was killed, as by a kernel that has no memory left.")
    return Outcome(None, "Error", "The trial ended without an answer.")


def _too_much_memory(limits: Limits) -> Outcome:
    return Outcome(None, "MemoryLimit", f"The trial needs more than {limits.memory_mib} MiB (STUDIO_MEMORY_MIB).")
