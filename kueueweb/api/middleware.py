"""Small rules for every request and answer."""

import time
from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

Handler = Callable[[HttpRequest], HttpResponse]

_BEGAN: Final = "began"
_SEEN: Final = "seen"
_RENEW_SECONDS: Final = 300


def no_store(handler: Handler) -> Handler:
    """Forbid caches to store responses about tenants, unless a view says otherwise."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        if request.path_info.startswith(("/api/", "/metrics")):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return handle


def without_options(handler: Handler) -> Handler:
    """Leave OPTIONS out of the header Allow: Django's views name it, and the API refuses it (405)."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = handler(request)
        allowed = response.headers.get("Allow")
        if allowed is not None and request.path_info.startswith("/api/"):
            names = [name for part in allowed.split(",") if (name := part.strip()) != "OPTIONS"]
            response.headers["Allow"] = ", ".join(names)
        return response

    return handle


class CompressedAnswers(GZipMiddleware):
    """Compress lists and exports with gzip for clients that accept it.

    A response with an ETag is not compressed, because it would only have a weak one, which If-Match cannot use.
    Neither are responses about tokens and logins, whose length must not be revealed.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Apply Django's rule to the addresses that it concerns."""
        whole = not request.path_info.startswith("/api/") or request.path_info.startswith("/api/v1/auth/")
        return response if whole or response.has_header("ETag") else super().process_response(request, response)


def session_limits(handler: Handler) -> Handler:
    """End a session after SESSION_COOKIE_AGE without use, and at the latest after SESSION_MAX_SECONDS.

    It is stored only every few minutes, because a write per request would be expensive, and these limits are in
    hours.
    """

    def handle(request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            _renew_or_end(request)
        return handler(request)

    return handle


def _renew_or_end(request: HttpRequest) -> None:
    session, now = request.session, int(time.time())
    began = session.setdefault(_BEGAN, now)
    if now - began > settings.SESSION_MAX_SECONDS:
        session.flush()
        request.user = AnonymousUser()
    elif now - session.get(_SEEN, 0) > _RENEW_SECONDS:
        session[_SEEN] = now
