"""The errors that a call raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ClientError(Exception):
    """The base of all errors of this package."""


class Unreachable(ClientError):
    """The server did not answer."""


class NotLoggedIn(ClientError):
    """No server is known, or no token for it."""


class ClosedOutput(ClientError):
    """The reader of the output has closed it."""


class Timeout(ClientError):
    """The awaited state was not reached in time."""


class Failed(ClientError):
    """The workload that was waited for ended without success."""


class ApiError(ClientError):
    """The server refused a request.

    `status` is the HTTP status, `reason` the server's stable word for the cause, `errors` the located mistakes
    ({document, path, value, rule, remedy, reason}), `retry_after_seconds` the pause that a 429 demands, `current` the
    present state in a 412 or a 428.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        errors: Sequence[Mapping[str, Any]] = (),
        retry_after_seconds: int | None = None,
        current: Any = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.errors = list(errors)
        self.retry_after_seconds = retry_after_seconds
        self.current = current

    def __str__(self) -> str:
        lines = [f"{self.reason}: {self.message}"]
        lines += [
            f"  {_where(error)}: {error.get('rule', '')} {error.get('remedy', '')}".rstrip() for error in self.errors
        ]
        if self.retry_after_seconds is not None:
            lines.append(f"  Try again in {self.retry_after_seconds} s.")
        return "\n".join(lines)


def _where(error: Mapping[str, Any]) -> str:
    document, path = error.get("document"), error.get("path") or ""
    return f"document {document}, {path}".rstrip(", ") if document is not None else path or "request"
