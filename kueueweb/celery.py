"""The Celery app. One worker of the queue `scheduler` decides; workers of the queue `push` do everything else."""

import logging
import os
import time
import warnings
from typing import Any

from celery import Celery, bootsteps
from celery.beat import Scheduler
from celery.concurrency.solo import TaskPool as SoloPool
from celery.exceptions import CPendingDeprecationWarning
from celery.signals import beat_init, celeryd_init, task_postrun, task_prerun, worker_ready
from django.db import DatabaseError, close_old_connections
from kombu.transport import TRANSPORT_ALIASES

from foundation.chores import CHORE_SECONDS, Chores
from foundation.garbage_collection import calm_the_collector, raise_thresholds
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, touch_heartbeat
from foundation.wake_ups import request_chore, scheduled_cluster

raise_thresholds()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
# Celery runs Django's checks and drops what they find, but they load every view: 20 MiB in each worker and in beat.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

# Chosen by the scheme of the URL, not by `broker_transport`: with the latter, kombu connects to rediss:// without TLS.
TRANSPORT_ALIASES.update(redis="kueueweb.broker:Transport", rediss="kueueweb.broker:Transport")

# Tasks that run while the connection is lost continue on purpose.
warnings.simplefilter("ignore", CPendingDeprecationWarning)

_log = logging.getLogger(__name__)

app = Celery("kueueweb", amqp="kueueweb.broker:AMQP")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# The current app is per thread: without a default one, a web thread would send to an app that has no broker.
app.set_default()


class Heartbeat(bootsteps.StartStopStep):
    """Beats from the worker's own loop, so that a worker that hangs or has no broker stops beating."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._timer: Any = None

    def start(self, parent: Any) -> None:
        """Start with the worker. If its pool has threads, the thread of the cycles sends the scheduler's heartbeat."""
        cluster = scheduled_cluster(parent.app.amqp.queues.consume_from)
        decides = cluster is not None and issubclass(parent.pool_cls, SoloPool)
        beat = (Role.SCHEDULER, cluster or "") if decides else (Role.PUSH, "")
        touch_heartbeat(*beat)
        self._timer = parent.timer.call_repeatedly(HEARTBEAT_SECONDS, touch_heartbeat, beat)

    def stop(self, parent: Any) -> None:
        """Stop with the worker."""
        if self._timer is not None:
            self._timer.cancel()


app.steps["worker"].add(Heartbeat)


@celeryd_init.connect
@beat_init.connect
def wait_for_tables(**_: Any) -> None:
    """Wait for `manage.py migrate` before a worker or beat starts."""
    from foundation.migrated import wait_until_migrated  # models are not loaded yet when this module is imported

    wait_until_migrated()


@worker_ready.connect
@beat_init.connect
def collect_seldom(**_: Any) -> None:
    """Collect garbage seldom from now on: modules and settings are loaded, and stay in memory."""
    calm_the_collector()


@task_prerun.connect
@task_postrun.connect
def keep_good_connections(sender: Any, **_: Any) -> None:
    """Close broken and old connections before and after a task; all others serve the next task, too."""
    if not sender.request.is_eager:
        close_old_connections()


class BeatScheduler(Scheduler):
    """The table of the settings is the schedule: beat needs no file for it. It also sends the chores."""

    _beat_at = float("-inf")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._chores = Chores()

    def tick(self, *args: Any, **options: Any) -> Any:
        """Send the due tasks; return the seconds to sleep. If tasks were sent while a clock was ahead, the current
        clock decides when they are due again; otherwise none would be sent until it reaches that time."""
        if time.monotonic() - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat_at = time.monotonic()
            touch_heartbeat(Role.BEAT)
        now = self.app.now()
        ahead = [entry for entry in self.schedule.values() if (entry.last_run_at or now) > now]
        for entry in ahead:
            entry.last_run_at, self._heap = now, None
        close_old_connections()
        self.keep_house()
        return min(CHORE_SECONDS, super().tick(*args, **options))

    def keep_house(self) -> None:
        """Have the push workers run the chores that are due."""
        try:
            chores = self._chores.due()
        except DatabaseError as error:
            _log.warning("Housekeeping could not be sent; beat's next turn repeats it: %s", error)
            return
        for task, seconds in chores.items():
            request_chore(task, seconds)
