"""Middleware that tells the database which user makes a request, and audits refused requests."""

import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from redis import RedisError

from accounts.models import AuditVerb
from accounts.services.actor import Actor, act_as, acting
from accounts.services.audit import record
from accounts.services.reach import EVERY_CLUSTER, SEPARATOR

REQUEST_ID_HEADER: Final = "X-Request-ID"
REASON_HEADER: Final = "X-Audit-Reason"
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_MAX_REASON: Final = 1000
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_ONCE_SECONDS: Final = 60

Handler = Callable[[HttpRequest], HttpResponse]


def audited(handler: Handler) -> Handler:
    """Give the request an id, tell the database who makes changes, and record refusals (403).

    Repeated refused reads of one user are recorded once a minute; every refused write is recorded.
    """

    def handle(request: HttpRequest) -> HttpResponse:
        with acting(_actor(request)) as actor:
            if request.method not in _SAFE and "sessionid" in request.COOKIES and request.user.is_authenticated:
                act_as(request.user.get_username(), "session")
            response = handler(request)
            response.headers[REQUEST_ID_HEADER] = actor.request_id
            if response.status_code == 403:
                _record_refusal(request, response, actor)
            return response

    return handle


def _actor(request: HttpRequest) -> Actor:
    shown = request.headers.get(REQUEST_ID_HEADER, "")
    return Actor(
        address=request.META.get("REMOTE_ADDR", ""),
        user_agent=_text(request.headers.get("User-Agent", ""), 256),
        request_id=shown if _REQUEST_ID.fullmatch(shown) else str(uuid.uuid4()),
        request=_text(f"{request.method} {request.path}", 1000),
        reason=_text(request.headers.get(REASON_HEADER, ""), _MAX_REASON),
    )


def _text(value: str, most: int) -> str:
    """Decode a header as UTF-8 (WSGI reads bytes as Latin-1), without characters that PostgreSQL cannot store."""
    with suppress(UnicodeError):
        value = value.encode("latin-1").decode()
    return value.replace("\0", "")[:most]


def _record_refusal(request: HttpRequest, response: HttpResponse, actor: Actor) -> None:
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated and not actor.username:
        act_as(user.get_username(), "session")
    if request.method in _SAFE and _seen_lately(f"{actor.username} {actor.address} {actor.request}"):
        return
    match = request.resolver_match
    found: dict[str, Any] = dict(match.kwargs) if match else {}
    body = getattr(response, "data", None)
    record(
        AuditVerb.REFUSED,
        _kind(request),
        cluster=_cluster(request, found),
        namespace=str(found.get("namespace", ""))[:63],
        name=str(found.get("name") or found.get("id") or found.get("uuid") or "")[:512],
        message=str(body.get("message", ""))[:1000] if isinstance(body, dict) else "",
    )


def _cluster(request: HttpRequest, found: dict[str, Any]) -> str:
    """Return the cluster of the request, or none if it names several. Such a record is shown to auditors of a whole
    cluster."""
    view = getattr(request.resolver_match.func, "view_class", None) if request.resolver_match else None
    asked = request.GET.get("cluster", found.get("cluster", getattr(view, "default_cluster", "")))
    if _kind(request) == "clusters" and "name" in found:
        asked = str(found["name"])
    return "" if asked == EVERY_CLUSTER or SEPARATOR in asked else _text(asked, 63)


def _kind(request: HttpRequest) -> str:
    """Return the kind that the view serves, or else the segment of the URL that names it."""
    match = request.resolver_match
    view = getattr(match.func, "view_class", None) if match else None
    kind = getattr(view, "kind", "")
    return str(getattr(kind, "name", kind) or request.path_info.removeprefix("/api/v1/").partition("/")[0])[:63]


def _seen_lately(what: str) -> bool:
    try:
        return not cache.add(f"refused-{sha256(what.encode()).hexdigest()}", True, _ONCE_SECONDS)
    except RedisError:
        return False
