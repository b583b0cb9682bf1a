"""Garbage collection in processes that live long, and while much is loaded."""

import gc
import subprocess
import sys

import pytest

from foundation.garbage_collection import without_collection

SCRIPT = """
import gc
import kueueweb.celery
from celery.signals import beat_init, worker_ready
for signal in (worker_ready, beat_init):
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    kueueweb.celery.collect_seldom()
    print(gc.get_freeze_count() > 10_000, gc.get_threshold())
    print(any(receiver[1]() is kueueweb.celery.collect_seldom for receiver in signal.receivers))
"""


STARTED = """
import gc, sys
sys.argv = ["manage.py", "version"]
from kueueweb.__main__ import main
main()
print(gc.get_threshold())
"""
IMPORTED = "import gc, kueueweb.celery; print(gc.get_threshold())"


@pytest.mark.parametrize("script", [STARTED, IMPORTED])
def test_processes_collect_seldom_while_they_load(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "(50000, 20, 50)"


def test_workers_and_beat_leave_their_modules_out_of_the_collection() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["True (50000, 20, 50)", "True"] * 2


def test_nothing_is_collected_meanwhile_and_collection_is_on_again_afterwards() -> None:
    assert gc.isenabled()
    with without_collection():
        assert not gc.isenabled()
        with without_collection():
            pass
        assert not gc.isenabled(), "the outer one has not ended"
    assert gc.isenabled()


def test_a_failure_turns_collection_on_again() -> None:
    with pytest.raises(ZeroDivisionError), without_collection():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_a_process_without_collection_stays_without_it() -> None:
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
