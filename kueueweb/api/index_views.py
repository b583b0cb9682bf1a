"""`/api/` and `/api/v1/`: the addresses of everything, for a client that has only the host."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

_ROOT: Final = "api/v1/"


class ApiIndexView(APIView):
    """`/api/`. No operation of the schema: it leads to it."""

    schema = None
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        """Return the address of each version."""
        return Response({"versions": {"v1": request.get_full_path().partition("?")[0] + "v1/"}})


class VersionIndexView(APIView):
    """`/api/v1/`."""

    schema = None
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        """Return the addresses without parameters by their names, `schema` and `docs` among them."""
        base = request.get_full_path().partition("?")[0]
        return Response({name.rstrip("/"): f"{base}{name}" for name in _addresses()})


@cache
def _addresses() -> tuple[str, ...]:
    [root] = (
        each for each in get_resolver().url_patterns if isinstance(each, URLResolver) and str(each.pattern) == _ROOT
    )
    return tuple(sorted({address for address in _within(root, "") if address and "<" not in address}))


def _within(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for each in resolver.url_patterns:
        address = f"{prefix}{each.pattern}"
        if isinstance(each, URLPattern):
            yield address
        else:
            yield from _within(each, address)
