"""Checks a request's token or session before a large body is accepted."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import DatabaseError, connection
from rest_framework.exceptions import AuthenticationFailed

from accounts.api.authentication import TokenAuthentication
from foundation.serving.bodies import Headers, Refused

_threads: Final = ThreadPoolExecutor(max_workers=2, thread_name_prefix="credentials")


async def are_known(headers: Headers) -> bool:
    """Return whether the request has a valid token or session. Raises Refused while that is unknown."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _are_known, headers)


def _are_known(headers: Headers) -> bool:
    try:
        return any(
            _is_token(value) if name == b"authorization" else _is_session(value)
            for name, value in headers
            if name in (b"authorization", b"cookie")
        )
    except DatabaseError:
        raise Refused(503, "Unavailable", "The database does not answer. Try again in a moment.") from None
    finally:
        connection.close()  # large bodies are rare, and Django does not clean up after this thread


def _is_token(value: bytes) -> bool:
    scheme, _, token = value.partition(b" ")
    try:
        return TokenAuthentication().authenticate_header_value(scheme, token.strip()) is not None
    except AuthenticationFailed:
        return False


def _is_session(value: bytes) -> bool:
    try:
        cookies = SimpleCookie(value.decode("latin-1"))
    except CookieError:
        return False
    found = cookies.get(settings.SESSION_COOKIE_NAME)
    if found is None:
        return False
    return SESSION_KEY in import_module(settings.SESSION_ENGINE).SessionStore(found.value).load()
