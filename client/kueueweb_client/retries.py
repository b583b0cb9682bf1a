"""Repetition of failed requests: only where it does no harm."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx

    from kueueweb_client.calls import Call

MAX_RETRIES: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.25
_MAX_PAUSE_SECONDS: Final = 60
_TOO_MANY: Final = 429
_LATER: Final = (502, 503, 504)
_READS: Final = ("GET",)
_SAME_TWICE: Final = ("PUT", "DELETE")


def pause_after_answer(call: Call[Any], attempt: int, answer: httpx.Response) -> float | None:
    """Return the seconds until the request is sent again; None if the answer is final. 429 says that nothing was done;
    after the others it may have been."""
    passing = answer.status_code == _TOO_MANY or (answer.status_code in _LATER and _may_repeat(call))
    if not passing or attempt >= MAX_RETRIES:
        return None
    asked = answer.headers.get("Retry-After", "")
    return min(int(asked), _MAX_PAUSE_SECONDS) if asked.isdigit() else _pause(attempt)


def pause_after_cut(call: Call[Any], attempt: int, error: httpx.HTTPError) -> float | None:
    """Return the seconds until the request is sent again; None if it is not: the server does not listen, it is slow, or
    the request may have been carried out."""
    import httpx

    cut = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
    return _pause(attempt) if cut and _may_repeat(call) and attempt < MAX_RETRIES else None


def _may_repeat(call: Call[Any]) -> bool:
    """Return whether a second time comes to the same as the first."""
    if call.silent_seconds:
        return False  # waits continue by themselves
    unbound = call.method in _SAME_TWICE and "If-Match" not in call.headers
    return call.method in _READS or unbound or "Idempotency-Key" in call.headers


def _pause(attempt: int) -> float:
    pause = min(_FIRST_PAUSE_SECONDS * 2**attempt, _MAX_PAUSE_SECONDS)
    return float(pause / 2 + random.random() * pause / 2)  # noqa: S311 (no secret)
