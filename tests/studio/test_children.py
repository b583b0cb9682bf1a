"""Children of the studio: an answer, a failure, and each limit. No database is needed."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from foundation.exceptions import NotFound
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World
from studio.services.children import MAX_ANSWER_BYTES, Child, GoOn, Limits, Outcome, Tell, start_child
from tests.patience import PATIENCE_SECONDS
from tests.scheduling.world_helpers import Builder

LIMITS = Limits(seconds=PATIENCE_SECONDS, memory_mib=64)


def ended(child: Child) -> Outcome:
    """Read until it has ended."""
    while child.outcome is None:
        select.select([child.pipe], [], [])
        child.read()
    assert_reaped(child)
    return child.outcome


def assert_reaped(child: Child) -> None:
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, 0)


def test_a_child_answers_and_ends() -> None:
    child = start_child(lambda *_: {"pid": os.getpid()}, LIMITS)
    assert ended(child) == Outcome({"pid": child.pid})


def test_a_large_answer_arrives_whole() -> None:
    assert ended(start_child(lambda *_: {"text": "x" * 2**20}, LIMITS)) == Outcome({"text": "x" * 2**20})


def test_first_answers_arrive_before_the_last_one() -> None:
    reading, writing = os.pipe()

    def work(_: GoOn, tell: Tell) -> Mapping[str, Any]:
        tell({"first": "line\nbreak"})
        os.read(reading, 1)
        return {"first": "x" * 2**20, "whole": 2}

    child = start_child(work, LIMITS)
    select.select([child.pipe], [], [])
    child.read()
    assert (child.take_first(), child.take_first()) == ({"first": "line\nbreak"}, None)
    assert child.outcome is None
    os.write(writing, b"x")
    assert ended(child) == Outcome({"first": "x" * 2**20, "whole": 2})


def test_an_answer_beyond_the_limit_is_refused() -> None:
    large = Limits(seconds=PATIENCE_SECONDS, memory_mib=512)
    assert ended(start_child(lambda *_: {"text": "x" * (MAX_ANSWER_BYTES + 1)}, large)).reason == "TooLarge"


def test_the_limit_is_of_each_answer_and_not_of_their_sum() -> None:
    large = Limits(seconds=PATIENCE_SECONDS, memory_mib=512)
    answer = {"text": "x" * (MAX_ANSWER_BYTES * 2 // 3)}

    def work(_: GoOn, tell: Tell) -> Mapping[str, Any]:
        tell(answer)
        return answer

    assert ended(start_child(work, large)) == Outcome(answer)


def test_a_refusal_is_told_with_its_reason() -> None:
    def refuse(*_: object) -> Mapping[str, Any]:
        raise NotFound("There is no Workload a/b.")

    assert ended(start_child(refuse, LIMITS)) == Outcome(None, "NotFound", "There is no Workload a/b.")


def test_the_text_of_an_unforeseen_error_stays_in_the_log() -> None:
    def fail(*_: object) -> Mapping[str, Any]:
        raise KeyError("team-b/secret")

    outcome = ended(start_child(fail, LIMITS))
    assert outcome.reason == "Error"
    assert "secret" not in outcome.message


def test_memory_beyond_the_limit_ends_the_child_alone() -> None:
    outcome = ended(start_child(lambda *_: {"size": len(bytearray(256 * 2**20))}, LIMITS))
    assert (outcome.answer, outcome.reason) == (None, "MemoryLimit")
    assert len(bytearray(256 * 2**20)), "this process is not limited"


def _spin(*_: object) -> Mapping[str, Any]:
    while True:
        pass


def _sleep(*_: object) -> Mapping[str, Any]:
    time.sleep(600)
    return {}


@pytest.mark.parametrize("hang", [_spin, _sleep])
def test_a_child_that_does_not_stop_is_ended(hang: Callable[..., Mapping[str, Any]]) -> None:
    assert ended(start_child(hang, Limits(seconds=0.2, memory_mib=64, grace_seconds=0.2))).reason == "TimeLimit"


def test_a_child_is_told_when_its_time_is_over() -> None:
    def work(go_on: GoOn, _: Tell) -> Mapping[str, Any]:
        while go_on():
            time.sleep(0.01)
        return {"complete": False}

    assert ended(start_child(work, Limits(seconds=0.2, memory_mib=64, grace_seconds=PATIENCE_SECONDS))) == Outcome(
        {"complete": False}
    )


def test_a_child_that_is_ended_leaves_no_process() -> None:
    child = start_child(_sleep, LIMITS)
    child.end(Outcome(None, "Gone", ""))
    assert child.outcome == Outcome(None, "Gone", "")
    assert_reaped(child)


_ORPHAN = """
import sys, time
from studio.services.children import Limits, start_child
child = start_child(lambda *_: time.sleep(600), Limits(seconds=600, memory_mib=64))
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_child_ends_with_its_studio_even_by_sigkill() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _ORPHAN], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.2)  # it asks the kernel after the fork
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _lives(child):
        assert time.monotonic() < deadline, "the child outlives its studio"
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def _decisions(world: World) -> list[Any]:
    return [
        [[each.workload, each.cluster_queue] for each in result.admissions]
        + [[each.workload] for each in result.preemptions]
        for result in run_until_idle(world, 100.0)
    ]


def test_a_forked_world_decides_the_same_and_leaves_the_first_alone() -> None:
    def build() -> World:
        builder = Builder().queue("a", {"default": 4}, "company").queue("b", {"default": 4}, "company")
        for number in range(20):
            builder.pending(f"w{number}", "ab"[number % 2], 1 + number % 3, at=float(number), priority=number % 2)
        return builder.world

    world = build()
    forked = ended(start_child(lambda *_: {"decisions": _decisions(world)}, LIMITS)).answer
    assert forked == {"decisions": _decisions(build())}
    assert _decisions(world) == forked["decisions"] if forked else False


def test_signals_that_end_the_studio_end_a_child() -> None:
    child = start_child(_sleep, LIMITS)
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGTERM)
    assert ended(child).reason == "Error"


_WITHOUT_PROCESSES = """
import os, resource
from studio.services.children import Limits, start_child
if os.geteuid() == 0:  # root has no limit of processes
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
before = len(os.listdir("/proc/self/fd"))
for _ in range(3):
    try:
        start_child(lambda _: {}, Limits(20, 64))
    except OSError as error:
        print(error.errno, len(os.listdir("/proc/self/fd")) - before)
"""


def test_a_child_that_cannot_be_started_leaves_nothing_open() -> None:
    done = subprocess.run((sys.executable, "-c", _WITHOUT_PROCESSES), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{errno.EAGAIN} 0"] * 3
