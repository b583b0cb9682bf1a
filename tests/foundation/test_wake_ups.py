"""Wake-ups: one on its way stands for many, none before the commit, and none may hurt who sent it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import settings as django_settings
from pytest_django import Settings
from redis import Redis

from foundation import wake_ups

Captured = Callable[..., AbstractContextManager[list[Any]]]
QUEUE = "kueueweb:celery:scheduler"


@pytest.fixture
def redis(live_services: None, db: None) -> Iterator[Any]:
    """The broker, without wake-ups of other tests."""
    with Redis.from_url(django_settings.REDIS_URL) as redis:
        wake_ups._broker._paused_until = 0.0
        for key in redis.keys("kueueweb:*"):
            redis.delete(key)
        yield redis
        redis.delete(QUEUE, *redis.keys("kueueweb:wake:*"))
    wake_ups._broker._paused_until = 0.0


def waiting(redis: Any) -> int:
    return int(redis.llen(QUEUE))


def test_one_stands_for_many(redis: Any, django_capture_on_commit_callbacks: Captured) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        wake_ups.wake_scheduler("default")
        wake_ups.wake_scheduler("default")
        assert waiting(redis) == 0  # not before the commit
    assert waiting(redis) == 1
    with django_capture_on_commit_callbacks(execute=True):
        wake_ups.wake_scheduler("other")
    assert waiting(redis) == 2


def test_what_changes_after_the_task_has_begun_wakes_it_again(
    redis: Any, django_capture_on_commit_callbacks: Captured
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        wake_ups.wake_scheduler("default")
    wake_ups.wake_taken(wake_ups.SCHEDULE_TASK, "default")
    with django_capture_on_commit_callbacks(execute=True):
        wake_ups.wake_scheduler("default")
    assert waiting(redis) == 2


def test_without_redis_nothing_is_raised_and_little_time_lost(
    redis: Any, django_capture_on_commit_callbacks: Captured, settings: Settings
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    with django_capture_on_commit_callbacks(execute=True):
        wake_ups.wake_scheduler("default")
        wake_ups.request_push("default")
    wake_ups.wake_taken(wake_ups.SCHEDULE_TASK, "default")
    assert wake_ups._broker._paused_until > 0  # the tick alone wakes for a while
    assert waiting(redis) == 0


def test_joined_wake_ups_are_sent_once_at_the_end(redis: Any, django_capture_on_commit_callbacks: Captured) -> None:
    with wake_ups.joined_wake_ups():
        for cluster in ("default", "other", "default"):
            with django_capture_on_commit_callbacks(execute=True):
                wake_ups.wake_scheduler(cluster)
            wake_ups.wake_taken(wake_ups.SCHEDULE_TASK, cluster)
        assert waiting(redis) == 0
    assert waiting(redis) == 2


def test_joined_wake_ups_are_sent_after_an_error(redis: Any, django_capture_on_commit_callbacks: Captured) -> None:
    def wake_and_fail() -> None:
        with wake_ups.joined_wake_ups():
            with django_capture_on_commit_callbacks(execute=True):
                wake_ups.wake_scheduler("default")
            raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        wake_and_fail()
    assert waiting(redis) == 1


def test_wake_ups_after_a_block_that_could_not_send_its_own_are_sent(
    redis: Any, django_capture_on_commit_callbacks: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wake() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            wake_ups.wake_scheduler("default")

    def wake_in_a_block() -> None:
        with wake_ups.joined_wake_ups():
            wake()

    with monkeypatch.context() as broken:
        broken.setattr(wake_ups._broker, "send_once", Mock(side_effect=RuntimeError("no broker")))
        with pytest.raises(RuntimeError, match="no broker"):
            wake_in_a_block()
    wake()
    assert waiting(redis) == 1


def test_a_long_block_delays_its_first_wake_up_no_longer_than_its_next_one(
    redis: Any, django_capture_on_commit_callbacks: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wake_ups.joined_wake_ups():
        with django_capture_on_commit_callbacks(execute=True):
            wake_ups.wake_scheduler("default")
        monkeypatch.setattr(wake_ups, "_JOINED_SECONDS", 0.0)
        with django_capture_on_commit_callbacks(execute=True):
            wake_ups.wake_scheduler("other")
        assert waiting(redis) == 2
