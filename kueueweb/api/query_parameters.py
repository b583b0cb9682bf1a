"""Refuses query parameters that an address does not know, on reads and writes alike.

A filter that is none would list everything, and `?dry_run=true` where nothing can be tried would store it. What an
address knows is what its operation in the OpenAPI document has, worked out when it is first asked with a parameter.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings

from kueueweb.api.errors import error_body, located
from scheduling.manifest import LocatedError, MistakeReason

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_lock = threading.Lock()

View = Callable[..., Any]


class RefuseUnknownParameters:
    """Middleware: 400 that names the parameter and those that the address has."""

    def __init__(self, handler: Callable[[HttpRequest], HttpResponse]) -> None:
        self._handler = handler

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """As it comes: which view it is for is known in `process_view`."""
        return self._handler(request)

    def process_view(
        self, request: HttpRequest, view: View, args: Any, kwargs: Mapping[str, Any]
    ) -> HttpResponse | None:
        """None if every parameter is known, or if the address is no API operation."""
        if not request.GET or request.method not in _METHODS:
            return None
        known = known_parameters(view, request.method)
        if known is None:
            return None
        # Clients name the cluster in every request, also where none is concerned.
        unknown = [name for name in request.GET if name not in known and name != "cluster"]
        errors = [located(_mistake(name, str(request.GET[name]), known)) for name in unknown]
        if not errors:
            return None
        message = f"{errors[0]['path']}: {errors[0]['rule']}"
        return JsonResponse(error_body("Invalid", message, errors), status=400)


def _mistake(name: str, value: str, known: frozenset[str]) -> LocatedError:
    close = difflib.get_close_matches(name, known, n=1)
    remedy = f'Did you mean "{close[0]}"?' if close else "Leave it out."
    rule = f"unknown query parameter; this address takes {', '.join(sorted(known)) or 'none'}"
    return LocatedError(0, name, value, rule, remedy, MistakeReason.UNKNOWN_FIELD)


@cache
def known_parameters(view: View, method: str) -> frozenset[str] | None:
    """The names of an operation's query parameters; None for what is no operation of the API."""
    found = _operations().get((view, method))
    if found is None:
        return None
    path, pattern = found
    with _lock:  # one at a time: drf-spectacular counts the names of what it describes
        generator = SchemaGenerator()  # type: ignore[no-untyped-call]
        described = generator.create_view(view, method)  # type: ignore[no-untyped-call]
        if described.schema.is_excluded():
            return None
        described.request = spectacular_settings.GET_MOCK_REQUEST(method, path, described, None)
        path = generator.coerce_path(path, method, described)  # type: ignore[no-untyped-call]  # untyped there
        prefix = f"^{spectacular_settings.SCHEMA_PATH_PREFIX}"
        operation = described.schema.get_operation(path, pattern, prefix, method, generator.registry)
    parameters = (operation or {}).get("parameters", [])
    return frozenset(parameter["name"] for parameter in parameters if parameter["in"] == "query")


@cache
def _operations() -> dict[tuple[View, str], tuple[str, str]]:
    """(view, method) -> (path, path as a regular expression)."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # untyped there
    inspector = generator.endpoint_inspector_cls(generator.patterns, generator.urlconf)
    endpoints = inspector.get_api_endpoints()  # type: ignore[no-untyped-call]
    return {(view, method): (path, pattern) for path, pattern, method, view in endpoints}
