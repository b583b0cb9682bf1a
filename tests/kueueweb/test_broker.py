"""Celery's way to Redis when the connection is gone while a task is under way."""

from __future__ import annotations

from typing import Any

import pytest
from kombu import Connection

from kueueweb.broker import Channel
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
