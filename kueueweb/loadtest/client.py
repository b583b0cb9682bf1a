"""A REST client over one persistent connection: as fast as a client can be that waits for each answer."""

from __future__ import annotations

import http.client
import time
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson

_KEPT_SECONDS: Final = 4.0
"""An idle connection is used again within this time: servers close theirs after 5 s or more."""


class RequestRefused(Exception):
    """The server answered with an error; the message is the server's."""


class Client:
    """Requests to `/api/v1/` of a server, with a token."""

    def __init__(self, server: str, username: str, password: str, *, timeout_seconds: float = 60.0) -> None:
        parts = urlsplit(server)
        self._used_at = time.monotonic()
        self._connection = http.client.HTTPConnection(
            parts.hostname or "127.0.0.1", parts.port or 80, timeout=timeout_seconds
        )
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        answer = self.post("auth/token/", {"username": username, "password": password})
        self.token: str = answer["token"]
        self._headers["Authorization"] = f"Token {self.token}"

    def post(self, path: str, body: Any, content_type: str = "application/json") -> Any:
        """Send a POST and read the answer. Raises `RequestRefused`."""
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return self._request("POST", path, content, {**self._headers, "Content-Type": content_type})

    def get(self, path: str, **query: Any) -> Any:
        """Send a GET and read the answer. Raises `RequestRefused`."""
        return self._request("GET", f"{path}?{urlencode(query)}" if query else path, None, self._headers)

    def _request(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> Any:
        if time.monotonic() - self._used_at > _KEPT_SECONDS:
            self._connection.close()  # the server may be closing it, too; the request opens another
        self._connection.request(method, f"/api/v1/{path}", content, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        self._used_at = time.monotonic()
        if answer.status >= 400:
            raise RequestRefused(f"{method} {path}: {answer.status} {text[:2000].decode(errors='replace')}")
        return orjson.loads(text) if text else None
