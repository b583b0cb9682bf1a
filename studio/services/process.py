"""The loop of `manage.py studio`: takes up questions, forks a child for each, and stores their answers. In between, a
child renews the estimates of starts.

The process has one thread, and holds no connection while it forks: a child that had one would keep its locks.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import DatabaseError, InterfaceError, OperationalError, connection, connections

from foundation.exceptions import KueuewebError
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, touch_heartbeat
from foundation.redis_client import redis_client
from studio.models import Question, QuestionState
from studio.services.children import Child, Limits, Outcome, Work, start_child
from studio.services.estimate_rounds import EstimateRounds
from studio.services.leases import (
    CHANNEL,
    LEASE_SECONDS,
    end_question,
    give_back,
    give_up_hopeless,
    renew_leases,
    store_first_answer,
    take_question,
)
from studio.services.live_answers import announce_answer
from studio.services.looking_ahead import without_hours
from studio.services.run_histories import RunHistories
from studio.services.trials import Trial, prepare_trial

_RENEW_SECONDS: Final = LEASE_SECONDS / 5
_LOOK_SECONDS: Final = HEARTBEAT_SECONDS
"""The interval, in seconds, at which questions are searched without a wake-up: the end of a dead studio's lease sends
none.
"""
_PAUSE_SECONDS: Final = 1.0
_FORKS_BETWEEN_COLLECTIONS: Final = 100
_MAX_CHILDREN: Final = 4
"""Unless STUDIO_CHILDREN says otherwise: a container sees all cores of its node, but has a limit of memory."""

_log = logging.getLogger(__name__)


def default_children() -> int:
    """Return one fewer than the cores that this process may use, from one to four: each needs memory of its own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(1, cores - 1), _MAX_CHILDREN)


@dataclass(slots=True)
class _Running:
    question: Question
    trial: Trial
    child: Child
    told: Mapping[str, Any] = field(default_factory=dict)
    """The last answer that the child sent before its outcome."""


class Studio:
    """Tries questions until `stop` is called. `children`: how many at a time at most."""

    def __init__(self, limits: Limits, children: int) -> None:
        self.id: UUID = uuid4()
        self._limits = limits
        self._children = children
        self._running: dict[int, _Running] = {}
        self._stopped = False
        self._wake_reader, self._wake_writer = os.pipe()
        self._listens = False
        self._woken = False
        self._forks = 0
        self._beat_at = self._renewed_at = float("-inf")
        self._histories = RunHistories()
        self._estimates = EstimateRounds(self.id, limits.memory_mib, self._fork, self._histories)

    def stop(self) -> None:
        """Stop after the current turn. Signal handlers may call this."""
        self._stopped = True
        os.write(self._wake_writer, b"\0")

    def run(self) -> None:
        """Process questions until told to stop, then return the unfinished ones."""
        for end in (self._wake_reader, self._wake_writer):
            os.set_blocking(end, False)
        try:
            while not self._stopped:
                try:
                    self._turn()
                except (DatabaseError, OSError) as error:  # OSError: no file or memory is left for a connection
                    self._lose_connection(error)
        finally:
            self._give_back()

    def _turn(self) -> None:
        self._beat()
        self._listen()
        self._renew()
        self._end()
        if self._estimates.turn():
            return  # the fork closed the connection: listen again before the next look
        self._woken = False  # a question committed from here on is noticed, even while the next one is looked for
        if not (self._has_room() and self._start_next()):
            self._wait()

    def _beat(self) -> None:
        if time.monotonic() - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat_at = time.monotonic()
            touch_heartbeat(Role.STUDIO)

    def _listen(self) -> None:
        """Listen before looking: a question that is committed in between wakes this process again."""
        if self._listens and connection.connection is not None:
            return
        connection.ensure_connection()
        connection.connection.add_notify_handler(self._wake)
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        self._listens = True

    def _wake(self, _: object) -> None:
        self._woken = True

    def _renew(self) -> None:
        """Renew leases. Children whose question is gone, and children that no alarm ends, are killed."""
        if time.monotonic() - self._renewed_at < _RENEW_SECONDS:
            return
        self._renewed_at = time.monotonic()
        kept = renew_leases(self.id, self._running) if self._running else set()
        for key, running in self._running.items():
            if running.child.outcome is not None:
                continue  # it is kept until the database is back
            if key not in kept:
                running.child.end(Outcome(None, "Gone", "The question is deleted, or another studio's."))
            elif running.child.is_overdue():
                running.child.end(Outcome(None, "TimeLimit", "The trial did not end in its time."))
        for question in Question.objects.select_related("cluster").filter(pk__in=give_up_hopeless()):
            announce_answer(question)

    def _end(self) -> None:
        """Store first answers, and the outcomes of children that have ended. Where the database is away, outcomes are
        kept until it is back."""
        for key, running in [*self._running.items()]:
            first = running.child.take_first()
            if first is not None:
                running.told = first
                if store_first_answer(key, self.id, first):
                    announce_answer(running.question)
            outcome = running.child.outcome
            if outcome is not None:
                if outcome.answer is None:
                    outcome = without_hours(running.told, int(running.question.inputs.get("hours", 0)), outcome)
                self._store(running.question, outcome, running.trial)
                del self._running[key]

    def _store(self, question: Question, outcome: Outcome, trial: Trial | None) -> None:
        question.state = QuestionState.FAILED if outcome.answer is None else QuestionState.ANSWERED
        values: dict[str, Any] = {"reason": outcome.reason, "message": outcome.message}
        if outcome.answer is not None:
            values["answer"] = outcome.answer  # a first answer stays where the whole one failed
        if trial is not None:
            values |= {"configuration_generation": trial.configuration_generation, "tried_at": trial.tried_at}
            values["basis"] = trial.basis
        if end_question(question.pk, self.id, question.state, **values):
            announce_answer(question)

    def _has_room(self) -> bool:
        return len(self._running) < self._children

    def _start_next(self) -> bool:
        """Start the question whose turn it is; False if there is none."""
        question = take_question(self.id)
        if question is None:
            return False
        try:
            trial = prepare_trial(question, self._histories)
        except (OperationalError, InterfaceError):
            raise  # the database is away: the lease ends, and the question is taken up again
        except KueuewebError as error:
            self._store(question, Outcome(None, error.reason, error.message), None)
        except Exception:  # noqa: BLE001 (a question that fails must not end the studio)
            _log.exception("Question %s could not be prepared", question)
            self._store(question, Outcome(None, "Error", "The trial failed; the studio's log has the reason."), None)
        else:
            self._start(question, trial)
        return True

    def _start(self, question: Question, trial: Trial) -> None:
        try:
            child = self._fork(trial.work, self._limits)
        except OSError as error:
            _log.warning("No process could be started for question %s: %s", question, error)
            message = f"The studio could not start a process for the trial: {error.strerror}. Ask again later."
            child = Child.unstarted(self._limits, Outcome(None, "NoProcess", message))
        self._running[question.pk] = _Running(question, trial, child)

    def _fork(self, work: Work, limits: Limits) -> Child:
        self._disconnect()
        self._forks += 1
        if self._forks % _FORKS_BETWEEN_COLLECTIONS == 1:
            gc.unfreeze()
            gc.collect()
        # Collections leave frozen objects alone: the child shares their pages with this process.
        gc.freeze()
        return start_child(work, limits)

    def _wait(self) -> None:
        """Wait until a question is committed, a child has written or ended, or something is due."""
        if self._woken and self._has_room():
            return
        pipes = {running.child.pipe: running.child for running in self._running.values()} | self._estimates.pipes()
        listening = connection.connection.fileno()
        seconds = _RENEW_SECONDS if pipes else _LOOK_SECONDS
        readable, _, _ = select.select([self._wake_reader, listening, *pipes], [], [], seconds)
        for ready in readable:
            if ready in pipes:
                pipes[ready].read()
            elif ready == listening:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT")  # reads the notifications; the socket would stay readable otherwise

    def _disconnect(self) -> None:
        connections.close_all()
        self._listens = False
        redis_client().connection_pool.disconnect()

    def _lose_connection(self, error: Exception) -> None:
        _log.warning("The database failed; tried again in %g s: %s", _PAUSE_SECONDS, " ".join(str(error).split()))
        self._disconnect()
        time.sleep(_PAUSE_SECONDS)

    def _give_back(self) -> None:
        for running in self._running.values():
            running.child.end(Outcome(None, "Gone", "The studio ends."))
        self._estimates.end()
        try:
            give_back(self.id)
            self._estimates.give_back()
        except (DatabaseError, OSError) as error:
            _log.warning("Questions are taken up again when their leases end: %s", error)
        self._disconnect()


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGINT and SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop())
