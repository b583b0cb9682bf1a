"""Celery's way to Redis, where nothing that waits in Redis has to arrive: a tick a second compensates for it."""

from typing import Any, Final, Self

from celery.app import amqp
from kombu import Connection
from kombu.transport import redis

MAX_PAUSE_SECONDS: Final = 4.0
"""The longest pause between two tries to connect. kombu's grow to half a minute, in which no tick is heard."""

POLL_SECONDS: Final = 4
"""The longest wait for a message in one question to Redis. It returns at once when a message arrives; kombu polls each
second. Shorter than a socket's timeout, or a worker at rest would give up a Redis that is well.
"""


class Channel(redis.Channel):
    """A channel that drops unacknowledged messages of a lost server.

    While it closes a lost connection, kombu returns these messages through a client that no longer exists: an
    AttributeError, which ends the worker.
    """

    do_restore = False
    _shared: Any = None

    def _connparams(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        transport: Any = self.connection
        if transport is None or transport.client is None:  # an acknowledgement that arrives after the end
            raise ConnectionError("The connection to Redis was closed.")
        found: dict[str, Any] = super()._connparams(*args, **kwargs)  # type: ignore[misc]  # the stubs leave it out
        return found

    def _create_client(self, asynchronous: bool = False) -> Any:
        """Return the client of the channel's pool. kombu makes one for each question, which costs more than the
        question: a client holds no connection, so threads may share it. One that listens is kept by kombu, and is
        another."""
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # the stubs leave it out
        if self._shared is None or self._shared.connection_pool is not self.pool:
            self._shared = super()._create_client()  # type: ignore[misc]
        return self._shared


class Transport(redis.Transport):
    """Redis with such channels."""

    Channel = Channel
    brpop_timeout = POLL_SECONDS


class SteadyConnection(Connection):
    """A connection that workers and beat try again every few seconds, however long its server has been away."""

    def ensure_connection(self, *args: Any, **options: Any) -> Self:
        """Connect, with short pauses between attempts."""
        super().ensure_connection(*args, **{"interval_max": MAX_PAUSE_SECONDS, **options})
        return self


class AMQP(amqp.AMQP):
    """Celery's way to its broker, by such connections."""

    Connection = SteadyConnection
    BrokerConnection = SteadyConnection
