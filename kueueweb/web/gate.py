"""The ASGI application in front of Django's threads.

A thread is taken for a request that is here as a whole, and only when it is its sender's turn. The probes need no
thread of the pool and no host name, so they answer whatever the pool does.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from hashlib import sha256
from typing import Any, Final

import orjson

from foundation.client_addresses import counted_address
from foundation.serving.bodies import BodyReader, Disconnected, Headers, Message, Receive, Refused
from kueueweb.web.turns import Turns

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

Checks = Mapping[str, str | dict[str, str]]
"""The state of each service that is needed: "ok", or the reason; and, as `roles`, that of the other processes."""

THREADS: Final = 8
_THREADS_PER_CALLER: Final = 3
_THREADS_PER_ADDRESS: Final = 6
_READY_SECONDS: Final = 3.0
_TURN_SECONDS: Final = 30.0
_TOKEN: Final = re.compile(rb"(?:token|bearer)\s+(\S+)", re.IGNORECASE)
_SESSION: Final = re.compile(rb"(?:^|;)\s*sessionid\s*=([^;]*)")
_MAX_SECRETS: Final = 4


class Gate:
    """Reads bodies, answers probes, and lets requests through to `application` by turns."""

    def __init__(
        self,
        application: Application,
        ready: Callable[[], Checks],
        bodies: BodyReader,
        ready_seconds: float = _READY_SECONDS,
    ) -> None:
        self._application = application
        self._ready = ready
        self._bodies = bodies
        self._ready_seconds = ready_seconds
        self._callers = Turns(_THREADS_PER_CALLER)
        self._addresses = Turns(_THREADS_PER_ADDRESS)
        self._prober = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readiness")
        self._probe: asyncio.Future[Checks] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/healthz":
            # Liveness checks nothing else: a broken database is no reason to restart this process.
            await answer(send, 200, {"status": "ok"})
        elif scope["path"] == "/readyz":
            await self._answer_ready(send)
        elif not scope["query_string"].isascii():
            await refuse(send, Refused(400, "Malformed", "The query string contains bytes beyond ASCII."))
        else:
            await self._serve(scope, receive, send)

    async def _answer_ready(self, send: Send) -> None:
        """Askers share one look; one that hangs is an answer too."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.get_running_loop().run_in_executor(self._prober, self._ready)
        try:
            checks = await asyncio.wait_for(asyncio.shield(self._probe), self._ready_seconds)
        except TimeoutError:
            checks = {"database": f"no answer within {self._ready_seconds:g} s"}
        roles = checks.get("roles", {})
        ready = all(found == "ok" for name, found in checks.items() if name != "roles")
        well = isinstance(roles, dict) and all(found.startswith("ok") for found in roles.values())
        # Pages and REST work without the other processes: readiness reports their state, but does not stop traffic.
        status = ("ok" if well else "degraded") if ready else "unavailable"
        await answer(send, 200 if ready else 503, {"status": status, **checks})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._bodies.read(receive, scope["headers"], _address(scope))
        except Disconnected:
            return
        except Refused as refusal:
            await refuse(send, refusal)
            return
        try:
            await self._take_turn(scope, body, receive, send)
        finally:
            self._bodies.release(body, _address(scope))

    async def _take_turn(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as turns:
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    for caller in callers(scope):
                        await turns.enter_async_context(self._callers.turn(caller))
                    await turns.enter_async_context(self._addresses.turn(_address(scope)))
            except TimeoutError:
                message = f"Your other requests kept the server busy for {_TURN_SECONDS:g} s. Send fewer at a time."
                await refuse(send, Refused(503, "Busy", message))
                return
            await self._application(scope, replay(body, receive), send)


def callers(scope: Scope) -> list[str]:
    """Return the callers that share a turn: the token and the session of the request, or else its address. A request
    with both takes a turn of each, because one of them may be forged."""
    found = []
    for name, pattern in ((b"authorization", _TOKEN), (b"cookie", _SESSION)):
        shown = b"; ".join(value for header, value in scope["headers"] if header == name)
        secrets = {match.group(1).strip(b' "') for match in pattern.finditer(shown)}
        if len(secrets) > _MAX_SECRETS:
            secrets = {b""}  # no honest client sends so many: such requests count as one caller
        found += [sha256(name + b" " + secret).hexdigest() for secret in sorted(secrets)]
    return found or [_address(scope)]


def _address(scope: Scope) -> str:
    return counted_address(str(scope["client"][0])) if scope.get("client") else ""


def replay(body: bytes, receive: Receive) -> Receive:
    """Receive the part of the body that was already read, and then the rest."""
    first = True

    async def replayed() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed


async def refuse(send: Send, refusal: Refused) -> None:
    """Refuse a request before it reaches Django."""
    headers = [(b"connection", b"close")]  # the rest of the body is discarded
    if refusal.status == 503:
        headers.append((b"retry-after", b"5"))
    await answer(send, refusal.status, {"reason": refusal.reason, "message": str(refusal), "errors": []}, headers)


async def answer(send: Send, status: int, content: dict[str, Any], more: Headers | None = None) -> None:
    """Answer with JSON."""
    body = orjson.dumps(content)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *(more or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
