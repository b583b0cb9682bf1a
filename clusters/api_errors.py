"""Refusals of a Kubernetes API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson


class ClusterError(Exception):
    """The API server refused.

    * status: the HTTP status (0: no answer).
    * reason: Kubernetes' reason.
    * retry_after: seconds to wait before the next request, as the server asked.
    * fields: the paths of the fields that it names as causes.
    """

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float = 0.0, fields: Sequence[str] = ()
    ) -> None:
        super().__init__(f"{reason or status}: {message}")
        self.retry_after = retry_after
        self.fields = tuple(fields)
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def not_found(self) -> bool:
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def conflict(self) -> bool:
        """Whether another writer was first, or the object already exists."""
        return self.status == HTTPStatus.CONFLICT

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later: the server did not answer, another writer was first, or there
        were too many requests."""
        busy = (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
        return self.status in (0, *busy) or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    @property
    def expired(self) -> bool:
        """Whether the resourceVersion is too old, so that the client must list again."""
        return self.status == HTTPStatus.GONE


class ClusterUnreachable(ClusterError):
    """No answer, so it is unknown whether the request was carried out."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)


def retry_after_seconds(text: str | None) -> float:
    """Return the whole seconds of Kubernetes' `Retry-After` header; 0 without the header, or if it has a date."""
    return float(text) if text and text.isascii() and text.isdigit() else 0.0


def error_of_answer(status: int, content: bytes, retry_after: float = 0.0) -> ClusterError:
    """Return the error of an answer: the `Status` in its body, else the body's first 500 characters."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ClusterError(status, "", content.decode("utf-8", "replace")[:500], retry_after)
    return error_of_status(body if isinstance(body, dict) else {}, status, retry_after)


def error_of_status(body: Mapping[str, Any], status: int, retry_after: float = 0.0) -> ClusterError:
    """Return the error that a `Status` object describes."""
    details = body.get("details")
    causes = (details.get("causes") if isinstance(details, dict) else None) or ()
    fields = [str(cause["field"]) for cause in causes if isinstance(cause, dict) and cause.get("field")]
    return ClusterError(status, str(body.get("reason") or ""), str(body.get("message") or ""), retry_after, fields)
