"""Several roles in one process: the processes that `manage.py run` combines, for the demo and small clusters.

Scheduler and push are one Celery worker in the main thread; beat and the watcher are a thread each. The leader's lease
holds for all of them: if the process has the role of the scheduler, nothing starts before it leads; so a second such
process stands by with all its roles. If a role ends by itself, the process ends, and a supervisor starts all of them
again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from celery import Celery
from celery.beat import Service
from celery.signals import celeryd_after_setup

from foundation.heartbeat import Role, join_loops
from foundation.wake_ups import PUSH_QUEUE, scheduler_queue

ROLES: Final = (Role.SCHEDULER, Role.PUSH, Role.BEAT, Role.WATCHER)
"""Roles that one process can have together. The web and the studio have their own processes, which fork or serve."""
_PUSH_THREADS: Final = 4
_STOP_SECONDS: Final = 10.0
"""The seconds that a thread has to stop."""
_END_SECONDS: Final = 30.0
"""How long the process may take to end after one of its roles has failed."""

_log = logging.getLogger(__name__)

Work = Callable[[threading.Event], None]
"""Works until the event is set."""


class RoleThreads:
    """The threads of a process's roles. If one ends before `stop`, `failed` names it, and the process is asked to end,
    and killed if it does not.

    * tell: asks the process to end; end: ends it at once.
    """

    def __init__(self, work: Mapping[Role, Work], tell: Callable[[], None], end: Callable[[], None]) -> None:
        self.failed: Role | None = None
        self._stopped = threading.Event()
        self._tell = tell
        self._end = end
        self._threads = [
            threading.Thread(target=self._run, args=(role, each), name=role, daemon=True) for role, each in work.items()
        ]

    def start(self) -> None:
        """Start all of them."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop all of them."""
        self._stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_STOP_SECONDS)

    def _run(self, role: Role, work: Work) -> None:
        why = "it ended"
        try:
            work(self._stopped)
        except Exception as error:  # noqa: BLE001 (whatever it is, the process ends with it)
            _log.exception("The role %s failed", role)
            why = str(error)
        if self._stopped.is_set():
            return
        self.failed = role
        _log.error("The role %s does not run any more (%s), so this process ends", role, why)
        timer = threading.Timer(_END_SECONDS, self._end)
        timer.daemon = True
        timer.start()
        self._tell()


def run_roles(app: Celery, roles: Collection[Role], cluster: str, watch: Work) -> Role | None:
    """Run these roles until SIGINT or SIGTERM; return the role that failed, if one did.

    * cluster: the cluster that is scheduled, if it has its own scheduler (OWN_SCHEDULERS).
    * watch: the work of the watcher.
    """
    work: dict[Role, Work] = {Role.BEAT: lambda stopped: _beat(app, stopped), Role.WATCHER: watch}
    threads = RoleThreads(
        {role: each for role, each in work.items() if role in roles},
        tell=lambda: os.kill(os.getpid(), signal.SIGTERM),
        end=lambda: os._exit(1),
    )

    def begin(**_: Any) -> None:
        join_loops(_places(roles, cluster))
        threads.start()

    try:
        if {Role.SCHEDULER, Role.PUSH}.intersection(roles):
            _work(app, roles, cluster, begin)
        else:
            _wait(begin)
    finally:
        threads.stop()
    return threads.failed


def _places(roles: Collection[Role], cluster: str) -> list[tuple[Role, str]]:
    """Return the places whose loops turn here, as their heartbeats name them."""
    queue = scheduler_queue(cluster)
    of = {Role.WATCHER: cluster, Role.SCHEDULER: "" if queue == scheduler_queue("") else cluster}
    return [(role, of.get(role, "")) for role in roles]


def _work(app: Celery, roles: Collection[Role], cluster: str, begin: Callable[..., None]) -> None:
    """Run a worker of the queues of these roles, in this thread."""
    queues = [scheduler_queue(cluster)] if Role.SCHEDULER in roles else []
    queues += [PUSH_QUEUE] if Role.PUSH in roles else []
    worker = app.Worker(
        hostname=f"{'-'.join(roles)}@{socket.gethostname()}",
        queues=queues,
        pool_cls="threads" if Role.PUSH in roles else "solo",
        concurrency=_PUSH_THREADS if Role.PUSH in roles else 1,
        loglevel="INFO",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    # Connected last, so that it is called when the worker leads: the receiver that waits for that was connected as the
    # worker loaded the tasks.
    celeryd_after_setup.connect(begin, weak=False)
    try:
        worker.start()
    finally:
        celeryd_after_setup.disconnect(begin)


def _wait(begin: Callable[[], None]) -> None:
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    begin()
    told.wait()


def _beat(app: Celery, stopped: threading.Event) -> None:
    """Celery's clock."""
    service = Service(app, scheduler_cls=app.conf.beat_scheduler)

    def stop_when_told() -> None:
        stopped.wait()
        service.stop()

    threading.Thread(target=stop_when_told, name="end-of-beat", daemon=True).start()
    service.start()
