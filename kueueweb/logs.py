"""Logging: JSON, one object per line, with the fields of `extra=`; and no traceback for an unreachable server.

A traceback helps to change the program. An outage of PostgreSQL or Redis is one line.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

import kombu.exceptions
import redis
from pythonjsonlogger.core import LogData
from pythonjsonlogger.orjson import OrjsonFormatter

from foundation.outages import is_database_away

_AWAY: Final = (redis.ConnectionError, redis.TimeoutError, kombu.exceptions.OperationalError, ConnectionError)
_SILENCE_SECONDS: Final = 10.0


class JsonFormatter(OrjsonFormatter):
    """One line of JSON for each record, ours and the libraries': event, logger, level, timestamp, exception, and the
    fields of `extra=`."""

    def __init__(self) -> None:
        names = {"message": "event", "name": "logger", "exc_info": "exception"}
        super().__init__("%(message)s %(name)s", rename_fields=names, timestamp=True)

    def add_fields(self, log_data: LogData, record: logging.LogRecord, message_dict: LogData) -> None:
        """Add the level as it is usual in JSON, in lower case."""
        super().add_fields(log_data, record, message_dict)
        log_data["level"] = record.levelname.lower()


class OutageInOneLine(logging.Filter):
    """Removes the traceback from records of errors that mean an unreachable server, and shortens the error to one line.

    Repetitions of the same logger are limited: beat tries to send something each second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None or not is_outage(error):
            return True
        now = self._clock()
        if now - self._said.get(record.name, -_SILENCE_SECONDS) < _SILENCE_SECONDS:
            return False
        self._said[record.name] = now
        what, why = in_one_line(record.getMessage().partition("\n")[0]), in_one_line(str(error))
        record.msg, record.args = (what if why in what else f"{what}: {why}"), ()
        record.exc_info = record.exc_text = None
        return True


def is_outage(error: BaseException) -> bool:
    """Return whether PostgreSQL or Redis is down or went down during a query, or whether that caused the error."""
    if isinstance(error, _AWAY):
        return True
    if is_database_away(error):
        return True
    # beat re-raises the error without its cause.
    cause = error.__context__ if type(error).__module__ == "celery.beat" else error.__cause__
    return cause is not None and is_outage(cause)


def in_one_line(text: str) -> str:
    """Return the same words without line breaks."""
    return " ".join(text.split())
