"""The webhook over HTTP: an ASGI application. Rules run in threads, as they ask the database and the cluster."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, close_old_connections, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from prometheus_client import Histogram, generate_latest

from clusters.api_errors import ClusterError
from clusters.webhook.admission import PATHS, Admission
from clusters.webhook.conversion import CONVERT, answer_conversion
from clusters.webhook.reviews import BadReview, read_review, write_review
from foundation.serving.bodies import BodyReader, Disconnected, Refused

_log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_MAX_BODY_BYTES: Final = 7 * 1024 * 1024
"""Two objects of etcd's size limit, with room to spare."""
_MAX_HELD_BYTES: Final = 128 * 1024 * 1024
_MAX_HELD_BY_ADDRESS: Final = 32 * 1024 * 1024
"""Enough for several API servers with reviews of this size; a pod that pretends to be one cannot hold more memory."""
_BYTES_PER_SECOND: Final = 4 * 1024 * 1024
_THREADS: Final = 8
ANSWER_SECONDS: Final = 4.0
"""Below the limit that its configuration gives it: a database that hangs is an answer, not a silence."""
_HEALTH: Final = ("/healthz", "/readyz")
_SECONDS: Final = Histogram(
    "kueueweb_webhook_seconds",
    "How long admission reviews take.",
    ["path", "answer"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


def review_bodies() -> BodyReader:
    """Read reviews. The API server sends a review at once, and gives up after the time in its configuration."""
    return BodyReader(
        _MAX_BODY_BYTES,
        _MAX_HELD_BYTES,
        first_seconds=ANSWER_SECONDS,
        max_held_by_address=_MAX_HELD_BY_ADDRESS,
        bytes_per_second=_BYTES_PER_SECOND,
        max_unknown_bytes=_MAX_BODY_BYTES,
    )


class WebhookApplication:
    """ASGI 3: POST of an AdmissionReview to each of the rules' paths, of a ConversionReview to `/convert`; GET
    /healthz, /readyz and /metrics.

    Without the database or the cluster, or after the time-out, the answer is a 500: the failurePolicy of the webhook's
    configuration decides then, as if the webhook were down.
    """

    def __init__(
        self, admission: Admission, answer_seconds: float = ANSWER_SECONDS, bodies: BodyReader | None = None
    ) -> None:
        self._admission = admission
        self._bodies = bodies or review_bodies()
        self._answer_seconds = answer_seconds
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="review")
        self._connections: dict[int, BaseDatabaseWrapper] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                code, body = await self._answer(scope, receive)
            except Disconnected:
                return
            await _send(send, code, body)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await asyncio.to_thread(self._close)  # Django does not close connections in an event loop's thread
        await send({"type": "lifespan.shutdown.complete"})

    def _close(self) -> None:
        """End the threads, and their sessions of the database with them."""
        self._threads.shutdown()
        for session in self._connections.values():
            session.inc_thread_sharing()
            session.close()

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        path, method = scope["path"], scope["method"]
        if path in _HEALTH:
            return HTTPStatus.OK, b"ok"
        if path == "/metrics":
            return HTTPStatus.OK, generate_latest()
        if path not in (*PATHS, CONVERT):
            return HTTPStatus.NOT_FOUND, f"there are {', '.join((*PATHS, CONVERT))}".encode()
        if method != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, b"POST an AdmissionReview or a ConversionReview"
        address = str(scope["client"][0]) if scope.get("client") else ""
        try:
            body = await self._bodies.read(receive, scope["headers"], address)
        except Refused as refusal:
            return refusal.status, str(refusal).encode()
        try:
            return await self._answer_body(path, body)
        finally:
            self._bodies.release(body, address)

    async def _answer_body(self, path: str, body: bytes) -> tuple[int, bytes]:
        answer = self._convert if path == CONVERT else self._review
        asked = asyncio.get_running_loop().run_in_executor(self._threads, answer, path, body)
        try:
            return await asyncio.wait_for(asked, self._answer_seconds)
        except TimeoutError:
            _log.error("A review of %s was not answered within %s s", path, self._answer_seconds)
            return HTTPStatus.INTERNAL_SERVER_ERROR, b"the database or the cluster does not answer in time"

    @staticmethod
    def _convert(path: str, body: bytes) -> tuple[int, bytes]:
        """Convert objects; this needs neither the database nor the cluster."""
        try:
            with _SECONDS.labels(path, "answered").time():
                return HTTPStatus.OK, answer_conversion(body)
        except BadReview as mistake:
            return HTTPStatus.BAD_REQUEST, str(mistake).encode()

    def _review(self, path: str, body: bytes) -> tuple[int, bytes]:
        close_old_connections()
        self._connections[threading.get_ident()] = connections[DEFAULT_DB_ALIAS]
        try:
            request = read_review(body)
            with _SECONDS.labels(path, "answered").time():
                return HTTPStatus.OK, write_review(request, self._admission.review(path, request))
        except BadReview as mistake:
            return HTTPStatus.BAD_REQUEST, str(mistake).encode()
        except (DatabaseError, ClusterError) as failure:
            _log.error("A review of %s was not answered: %s", path, failure)
            return HTTPStatus.INTERNAL_SERVER_ERROR, b"the database or the cluster does not answer"


async def _send(send: Send, code: int, body: bytes) -> None:
    kind = b"application/json" if body[:1] == b"{" else b"text/plain; charset=utf-8"
    headers: Iterable[tuple[bytes, bytes]] = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": int(code), "headers": headers})
    await send({"type": "http.response.body", "body": body})
