"""Celery's way to Redis when the connection is gone while a task is under way."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from kueueweb.broker import MAX_PAUSE_SECONDS, Channel
from kueueweb.celery import app


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:9/0", "rediss://127.0.0.1:9/0", "redis+socket:///none?virtual_host=0"]
)
def test_every_address_of_redis_is_reached_by_our_channels(url: str) -> None:
    transport: Any = app.connection(url).transport
    assert transport.Channel is Channel
    assert not transport.Channel.do_restore


@pytest.mark.parametrize("gone", ["client", "connection"])
def test_an_acknowledgement_after_the_end_is_a_connection_s_error(gone: str) -> None:
    """It was an AttributeError, which kombu does not expect, and the worker ended."""
    with Connection("redis://127.0.0.1:9/0") as connection:
        channel: Any = Channel.__new__(Channel)
        channel.connection = connection.transport if gone == "client" else None
        if channel.connection is not None:
            channel.connection.client = None
        with pytest.raises(ConnectionError):
            channel._connparams()


def test_a_server_that_was_away_for_long_is_tried_again_within_seconds() -> None:
    """The pauses grew to half a minute, in which no scheduler heard a tick."""
    pauses: list[float] = []

    def note(error: Exception, pause: float) -> None:
        pauses.append(pause)

    connection = app.connection("redis://127.0.0.1:9/0")
    with pytest.raises(OperationalError):
        connection.ensure_connection(note, max_retries=3, interval_start=0, interval_step=3)
    assert max(pauses) <= MAX_PAUSE_SECONDS


def test_a_message_that_cannot_be_sent_is_refused_after_the_tries_of_its_sender() -> None:
    connection = app.connection("redis://127.0.0.1:9/0")
    policy = {"max_retries": 1, "interval_start": 0}
    with connection.Producer(auto_declare=False) as producer, pytest.raises(OperationalError):
        producer.publish({}, routing_key="push", retry=True, retry_policy=policy)


def test_a_server_that_hangs_is_given_up() -> None:
    """A stopped process takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = app.connection(f"redis://127.0.0.1:{server.getsockname()[1]}/0")
        with pytest.raises(OperationalError):
            connection.ensure_connection(max_retries=1, interval_start=0)


def test_the_questions_of_a_channel_share_a_client_until_its_connections_end() -> None:
    """kombu made a client for each message that was sent, and for each that was taken."""
    with app.connection() as connection:
        channel: Any = connection.channel()
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
            assert first is second
            assert first is not channel.client
        channel._disconnect_pools()
        with channel.conn_or_acquire() as third:
            assert third is not first
            assert third.ping()
