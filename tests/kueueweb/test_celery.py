"""Workers keep their database session from one task to the next; beat survives a clock that is set back, and workers
and beat ask Redis little while nothing happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import orjson
import pytest
from celery.signals import task_postrun, task_prerun
from django.conf import settings
from django.db import OperationalError, connection
from redis import Redis

from foundation.chores import CHORE_SECONDS
from kueueweb.celery import BeatScheduler, app
from notifications.models import Event, NotificationRule
from tests.factories import START, make_cluster
from tests.users import make_user


@pytest.fixture
def run_task(db: None) -> Any:
    """Runs a function as a worker runs a task, between Celery's signals."""
    fixup: Any = import_module("celery.fixups.django").DjangoWorkerFixup(app).install()  # its types leave it out
    task = app.tasks["celery.chord_unlock"]

    def run(work: Callable[[], object]) -> Any:
        task_prerun.send(sender=task)
        try:
            return work()
        finally:
            task_postrun.send(sender=task)

    yield run
    task_prerun.disconnect(fixup.on_task_prerun)
    task_postrun.disconnect(fixup.on_task_postrun)


def session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end_session() -> None:
    with pytest.raises(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.django_db(transaction=True)
def test_tasks_share_a_database_session(run_task: Callable[[Callable[[], object]], Any]) -> None:
    """PostgreSQL compiles all triggers anew in each session."""
    assert run_task(session) == run_task(session)


@pytest.mark.django_db(transaction=True)
def test_a_task_after_a_lost_session_has_a_new_one(run_task: Callable[[Callable[[], object]], Any]) -> None:
    before = run_task(session)
    run_task(end_session)
    assert run_task(session) != before


@pytest.mark.django_db(transaction=True)
def test_beat_sends_its_ticks_after_the_clock_was_set_back() -> None:
    """It waited until the clock was where it had been: for an hour, no timer ran and no sweep."""
    beat: Any = BeatScheduler(app=app, lazy=True)
    beat.setup_schedule()
    for entry in beat.schedule.values():
        entry.last_run_at = app.now() + timedelta(hours=1)
    beat.populate_heap()
    schedule: dict[str, dict[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    assert beat.tick() <= min(entry["schedule"] for entry in schedule.values())
    assert max(entry.last_run_at for entry in beat.schedule.values()) <= app.now()


@pytest.fixture
def commands(live_services: None) -> Iterator[Callable[[], Counter[str]]]:
    """The commands that Redis has taken since it was last asked, by name."""
    with Redis.from_url(settings.REDIS_URL) as redis:

        def taken() -> Counter[str]:
            stats: Any = redis.info("commandstats")
            redis.config_resetstat()
            return Counter({name.removeprefix("cmdstat_"): found["calls"] for name, found in stats.items()})

        taken()
        yield taken


@pytest.mark.django_db(transaction=True)
def test_the_turns_of_beat_between_two_heartbeats_say_nothing(commands: Callable[[], Counter[str]]) -> None:
    beat: Any = BeatScheduler(app=app, lazy=True)
    beat.setup_schedule()
    for entry in beat.schedule.values():
        entry.last_run_at = app.now()
    for _ in range(10):
        beat.tick()
    assert commands()["hset"] == 2  # its life, and its clock


@pytest.mark.django_db(transaction=True)
def test_beat_has_users_told_of_a_scheduler_that_is_silent(live_services: None) -> None:
    """No scheduler runs here: one that is dead could not send it."""
    rule = {"cluster": make_cluster(), "user": make_user("alice"), "event": Event.SCHEDULER_SILENT}
    NotificationRule.objects.create(**rule, created_at=START)
    app.loader.import_default_modules()
    beat: Any = BeatScheduler(app=app, lazy=True)
    beat.setup_schedule()
    for entry in beat.schedule.values():
        entry.last_run_at = app.now()
    with Redis.from_url(settings.REDIS_URL) as redis:
        redis.delete("kueueweb:celery:push")
        assert beat.tick() <= CHORE_SECONDS
        sent = [orjson.loads(message)["headers"]["task"] for message in redis.lrange("kueueweb:celery:push", 0, -1)]
    assert "notifications.tasks.notify" in sent


def test_a_worker_asks_redis_for_messages_less_often_than_it_gives_a_silent_one_up() -> None:
    with app.connection_for_read() as connected:
        transport: Any = connected.transport
        assert 1 < transport.brpop_timeout < settings.CELERY_BROKER_TRANSPORT_OPTIONS["socket_timeout"]
