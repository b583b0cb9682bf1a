"""The header Idempotency-Key: a request that is sent again, for example after a time-out, gets the first answer.

The key, the stored objects and the answer are written in one transaction. A request that fails leaves no key. Of two
simultaneous requests the second waits for the first and gets its answer. A key belongs to its user and is kept for a
day.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import orjson
from django.db import transaction
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotAuthenticated, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import KeptAnswer
from accounts.services.kept_answers import reserve
from foundation.exceptions import Conflict

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_MAX_LENGTH: Final = 255

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="A key of your choice. If it is sent again within a day with the same body, the first answer is "
    "repeated and nothing is done twice; with another body, the answer is 409.",
)

_View = TypeVar("_View")
_Place = ParamSpec("_Place")
"""The parts of the address, such as the number of a question."""


def done_once(
    handler: Callable[Concatenate[_View, Request, _Place], Response],
) -> Callable[Concatenate[_View, Request, _Place], Response]:
    """Decorator for a view method that creates objects or acts: it honours the header Idempotency-Key."""

    @wraps(handler)
    def handle(view: _View, request: Request, /, *place: _Place.args, **named: _Place.kwargs) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return handler(view, request, *place, **named)
        if not (0 < len(key) <= _MAX_LENGTH and key.isascii() and key.isprintable()):
            raise ValidationError({HEADER: f"must be 1 to {_MAX_LENGTH} printable ASCII characters."})
        fingerprint = _fingerprint(request)
        user_id = request.user.pk
        if user_id is None:
            raise NotAuthenticated
        with transaction.atomic():
            if not reserve(user_id, key, fingerprint):
                return _replay(user_id, key, fingerprint)
            response = handler(view, request, *place, **named)
            kept = KeptAnswer.objects.filter(user_id=user_id, key=key)
            kept.update(status=response.status_code, data=orjson.loads(orjson.dumps(response.data, default=str)))
        return response

    return handle


def _fingerprint(request: Request) -> str:
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    digest.update(request.body)  # as it came, before it is parsed
    return digest.hexdigest()


def _replay(user_id: int, key: str, fingerprint: str) -> Response:
    kept: Any = KeptAnswer.objects.get(user_id=user_id, key=key)
    if kept.fingerprint != fingerprint:
        raise Conflict(f"{HEADER} {key!r} was sent before with another request. Choose another key for this one.")
    return Response(kept.data, kept.status, headers={REPLAYED: "true"})
