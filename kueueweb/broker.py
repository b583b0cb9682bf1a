"""Celery's way to Redis, where nothing that waits in Redis has to arrive: a tick a second makes up for it."""

from typing import Any

from kombu.transport import redis


class Channel(redis.Channel):
    """A channel that drops unacknowledged messages of a lost server.

    While it closes a lost connection, kombu returns these messages through a client that no longer exists: an
    AttributeError, which ends the worker.
    """

    do_restore = False

    def _connparams(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        transport: Any = self.connection
        if transport is None or transport.client is None:  # an acknowledgement that comes after the end
            raise ConnectionError("The connection to Redis was closed.")
        found: dict[str, Any] = super()._connparams(*args, **kwargs)  # type: ignore[misc]  # the stubs leave it out
        return found


class Transport(redis.Transport):
    """Redis with such channels."""

    Channel = Channel
