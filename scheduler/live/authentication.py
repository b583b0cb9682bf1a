"""Authenticates live sockets: browsers by session cookie and only from our own origin, tools by token.

A browser cannot set the header `Authorization` on a websocket, so a request with it was not sent by another site's
page. A request without it must name one of our own hosts as its origin.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.security.websocket import WebsocketDenier
from channels.sessions import SessionMiddlewareStack
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError, close_old_connections
from django.http.request import split_domain_port, validate_host
from rest_framework.exceptions import AuthenticationFailed

from accounts.api.authentication import TokenAuthentication
from accounts.services.access import access_of
from accounts.services.cluster_settings import cluster_named
from foundation.exceptions import NotFound
from queues.services.visibility import visibility_of
from scheduler.live.frames import Audience

Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]

UNAUTHENTICATED = 4401
FORBIDDEN = 4403
NO_SUCH_CLUSTER = 4404
TOO_MANY = 4429
TRY_AGAIN_LATER = 1013


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a socket is closed: a code of the private range, and a message."""

    code: int
    reason: str


def by_session_or_token(inner: Application) -> Application:
    """Accept sockets with a token directly. All others need one of our origins, and get their session."""
    by_session: Application = SessionMiddlewareStack(inner)
    refused: Application = WebsocketDenier.as_asgi()

    async def application(scope: Scope, receive: Any, send: Any) -> None:
        if _header(scope, b"authorization"):
            await inner(scope, receive, send)
        else:
            await (by_session if is_own_origin(scope) else refused)(scope, receive, send)

    return application


def is_own_origin(scope: Scope) -> bool:
    """Return whether the page is kueueweb's own: its scheme, host and port are those of the socket, or trusted.

    The host name alone is not enough, since other servers on the same machine share it.
    """
    origin = _header(scope, b"origin").decode("latin-1").lower()
    host = _header(scope, b"host").decode("latin-1").lower()
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    secure = scope.get("scheme") in ("wss", "https")
    own = f"{'https' if secure else 'http'}://{host}"
    allowed = settings.ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
    return origin == own and validate_host(split_domain_port(host)[0], allowed)


async def audience_of(scope: Scope, cluster: str) -> Audience | Refusal:
    """Return the permissions of the socket now. They are read each time, because sessions end, tokens expire and roles
    are removed.
    """
    try:
        return await _audience_of(scope, cluster)
    except DatabaseError as error:
        _log.warning("Closing a live stream, because its permissions cannot be read: %s", error)
        return Refusal(TRY_AGAIN_LATER, "The database does not answer.")


async def _audience_of(scope: Scope, cluster: str) -> Audience | Refusal:
    token = _header(scope, b"authorization")
    user = await database_sync_to_async(_user_of_token)(token) if token else await _user_of_session(scope)
    if not user.is_authenticated:
        return Refusal(UNAUTHENTICATED, "Not logged in.")
    scope["user_id"] = user.pk
    audience: Audience | Refusal = await database_sync_to_async(_audience)(user, cluster)
    return audience


def _header(scope: Mapping[str, Any], name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _user_of_token(header: bytes) -> Any:
    scheme, _, token = header.partition(b" ")
    try:
        found = TokenAuthentication().authenticate_header_value(scheme, token)
    except AuthenticationFailed:
        return AnonymousUser()
    return found[0] if found else AnonymousUser()


async def _user_of_session(scope: Scope) -> Any:
    """Return the user of the stored session; the session that opened the socket may have ended."""
    session = scope.get("session")
    if session is None or not session.session_key:
        return AnonymousUser()
    store = import_module(settings.SESSION_ENGINE).SessionStore(session.session_key)
    return await get_user({"session": store})


def _audience(user: Any, cluster: str) -> Audience | Refusal:
    close_old_connections()
    access = access_of(user, cluster)
    if not access.has_any_role:
        return Refusal(FORBIDDEN, "This account has no role.")
    try:
        row = cluster_named(cluster)
    except NotFound as error:
        return Refusal(NO_SUCH_CLUSTER, error.message)
    return Audience(access.visible_namespaces(), visibility_of(access, row))
