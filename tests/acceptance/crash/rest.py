"""Requests that may meet a server which is being killed: an answer, or nothing."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said. Status 0: nothing, and so nobody knows what it did."""

    status: int
    body: Any = None
    etag: str = ""

    @property
    def acknowledged(self) -> bool:
        """Whether the server said that it was done."""
        return 200 <= self.status < 300

    @property
    def unknown(self) -> bool:
        """Whether it may have been done and may not."""
        return self.status == 0 or self.status >= 500


class Account:
    """A user's requests, each over a connection of its own."""

    def __init__(self, server: str, username: str, password: str) -> None:
        parts = urlsplit(server)
        self.username = username
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._password = password
        self._token = ""

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", if_match: str = ""
    ) -> Answer:
        """One request; never raises."""
        if not self._token and not self._log_in():
            return Answer(0)
        return self.raw(method, f"/api/v1/{path}", body, content_type, if_match)

    def every(self, path: str, **query: str) -> list[dict[str, Any]]:
        """All pages of a list; asks again where no answer comes."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            asked = {**query, "limit": "200", **({"after": after} if after else {})}
            answer = self.patiently("GET", f"{path}?{urlencode(asked)}")
            found += answer.body["results"]
            after = answer.body.get("next") or ""
            if not after:
                return found

    def patiently(self, method: str, path: str, body: Any = None, seconds: float = 90.0) -> Answer:
        """The same request until the server answers it. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (answer := self.call(method, path, body)).unknown or answer.status == http.client.TOO_MANY_REQUESTS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path}: no answer within {seconds:.0f} s, the last one was {answer}")
            time.sleep(0.5)
        return answer

    def _log_in(self) -> bool:
        credentials = {"username": self.username, "password": self._password}
        answer = self.raw("POST", "/api/v1/auth/token/", credentials)
        if answer.acknowledged:
            self._token = answer.body["token"]
        return bool(self._token)

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", if_match: str = ""
    ) -> Answer:
        """One request to any address of the server; never raises."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS)
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        if if_match:
            headers["If-Match"] = if_match
        if self._token:
            headers["Authorization"] = f"Token {self._token}"
        try:
            connection.request(method, path, body if isinstance(body, bytes) else _json(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return Answer(0)
        finally:
            connection.close()
        return Answer(answer.status, _read(text), answer.headers.get("ETag", ""))


def _json(body: Any) -> bytes | None:
    return None if body is None else orjson.dumps(body)


def _read(text: bytes) -> Any:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return text.decode(errors="replace")
