"""Sweeps take turns: one works, one waits, any other may leave."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection

from accounts.models import Cluster
from clusters.push.sweep_lock import sweep_lock
from tests.factories import make_cluster
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


class Sweep(threading.Thread):
    """A sweep in a session of its own: says whether it was its turn, and works until it is let go."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self.asked = threading.Event()
        self.done = threading.Event()
        self.mine: bool | None = None
        self.lost = False

    def run(self) -> None:
        try:
            with sweep_lock(self._cluster) as mine:
                self.mine = mine
                self.asked.set()
                self.done.wait(PATIENCE_SECONDS)
        except OperationalError:
            self.lost = True
        finally:
            connection.close()


def started(cluster: Cluster) -> Sweep:
    sweep = Sweep(cluster)
    sweep.start()
    return sweep


def waiting() -> int:
    """How many sessions wait for an advisory lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return int(cursor.fetchone()[0])


def finish(*sweeps: Sweep) -> None:
    for sweep in sweeps:
        sweep.done.set()
    for sweep in sweeps:
        sweep.join(PATIENCE_SECONDS)
        assert not sweep.is_alive()


def test_one_works_one_waits_and_the_third_leaves() -> None:
    cluster = make_cluster()
    first = started(cluster)
    assert first.asked.wait(PATIENCE_SECONDS)
    second = started(cluster)
    while not waiting():
        assert second.is_alive()
        threading.Event().wait(0.02)
    third = started(cluster)
    assert third.asked.wait(PATIENCE_SECONDS)
    assert (first.mine, second.mine, third.mine) == (True, None, False)
    finish(first, third)
    assert second.asked.wait(PATIENCE_SECONDS)
    assert second.mine
    finish(second)
    assert not waiting()


def test_another_cluster_has_its_own_turns_and_a_holder_that_dies_holds_nothing() -> None:
    here, there = make_cluster(), make_cluster("there")
    first, other = started(here), started(there)
    assert first.asked.wait(PATIENCE_SECONDS)
    assert other.asked.wait(PATIENCE_SECONDS)
    assert (first.mine, other.mine) == (True, True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    again = started(here)
    assert again.asked.wait(PATIENCE_SECONDS)
    assert again.mine
    finish(first, other, again)
    assert (first.lost, other.lost, again.lost) == (True, True, False)
