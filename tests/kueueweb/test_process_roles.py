"""Several roles in one process: the process ends with the first role that does."""

from __future__ import annotations

import threading
from argparse import ArgumentTypeError
from typing import Any

import pytest

from foundation.heartbeat import Role
from kueueweb.management.commands.run import _roles
from kueueweb.process_roles import RoleThreads, _places
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def told() -> threading.Event:
    """Set when the process is told to end."""
    return threading.Event()


def threads_of(told: threading.Event, **work: Any) -> RoleThreads:
    return RoleThreads({Role(name): each for name, each in work.items()}, tell=told.set, end=lambda: None)


def wait(stopped: threading.Event) -> None:
    stopped.wait(PATIENCE_SECONDS)


def fail(stopped: threading.Event) -> None:
    raise ValueError("no such cluster")


@pytest.mark.parametrize("work", [fail, lambda stopped: None], ids=["by an error", "without an error"])
def test_a_role_that_ends_by_itself_ends_the_process(told: threading.Event, work: Any) -> None:
    threads = threads_of(told, beat=wait, watcher=work)
    threads.start()
    assert told.wait(PATIENCE_SECONDS)
    assert threads.failed is Role.WATCHER
    threads.stop()
    assert threads.failed is Role.WATCHER


def test_roles_that_are_stopped_have_not_failed(told: threading.Event) -> None:
    threads = threads_of(told, beat=wait, watcher=wait)
    threads.start()
    threads.stop()
    assert threads.failed is None
    assert not told.is_set()


def test_roles_that_never_started_can_be_stopped(told: threading.Event) -> None:
    """A process that stands by has none yet."""
    threads_of(told, beat=wait).stop()


def test_heartbeats_of_all_roles_count(settings: Any) -> None:
    everything = [Role.SCHEDULER, Role.PUSH, Role.BEAT, Role.WATCHER]
    settings.OWN_SCHEDULERS = ["east"]
    assert _places(everything, "default") == [("scheduler", ""), ("push", ""), ("beat", ""), ("watcher", "default")]
    assert _places(everything, "east") == [("scheduler", "east"), ("push", ""), ("beat", ""), ("watcher", "east")]


def test_roles_are_named_in_any_order() -> None:
    assert _roles("watcher,scheduler") == [Role.SCHEDULER, Role.WATCHER]


@pytest.mark.parametrize(("text", "why"), [("scheduler,web", "Unsupported value 'web'"), ("", "Required value")])
def test_other_roles_are_refused(text: str, why: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{why}: supported values: scheduler, push, beat, watcher"):
        _roles(text)
