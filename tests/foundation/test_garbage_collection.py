"""Garbage collection in processes that live long."""

import subprocess
import sys

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


def test_workers_and_beat_leave_their_modules_out_of_the_collection() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["True (50000, 20, 50)", "True"] * 2
