"""Refuses query parameters that are unknown at an address or have an invalid value, on reads and writes alike.

An unknown filter, `?healthy=maybe` and `?until=` would list everything, and `?dry_run=true` would store the change if
the operation has no dry run. The known parameters of an address are those of its operation in the OpenAPI document,
which are read at its first request with a parameter.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.dateparse import parse_datetime
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings

from kueueweb.api.errors import error_body, located
from scheduling.manifest import LocatedError, MistakeReason

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_NAMES_OF_ONE: Final = frozenset({"container"})
"""Parameters that take one name; filters take several with commas between them, or texts."""
_lock = threading.Lock()

View = Callable[..., Any]
Parameters = Mapping[str, Mapping[str, Any]]
"""Names of query parameters with the schemas of their values."""


class RefuseUnknownParameters:
    """Middleware: 400 that names the parameter and those that the address has."""

    def __init__(self, handler: Callable[[HttpRequest], HttpResponse]) -> None:
        self._handler = handler

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on: its view is known in `process_view`."""
        return self._handler(request)

    def process_view(
        self, request: HttpRequest, view: View, args: Any, kwargs: Mapping[str, Any]
    ) -> HttpResponse | None:
        """Refuse unknown parameters of an API operation; return None for all other requests."""
        if not request.GET or request.method not in _METHODS:
            return None
        known = known_parameters(view, request.method)
        if known is None:
            return None
        mistakes = [mistake for name, values in request.GET.lists() if (mistake := _check(name, values, known))]
        errors = [located(mistake) for mistake in mistakes]
        if not errors:
            return None
        message = f"{errors[0]['path']}: {errors[0]['rule']}"
        return JsonResponse(error_body("Invalid", message, errors), status=400)


def _check(name: str, values: Sequence[Any], known: Parameters) -> LocatedError | None:
    if name not in known:
        # Clients send the cluster with every request, even if it is irrelevant.
        return None if name == "cluster" else _unknown(name, str(values[-1]), known)
    schema = known[name]
    if len(values) > 1 and schema.get("type") != "array":
        rule = f"Duplicate value: it was given {len(values)} times"
        return LocatedError(0, name, values, rule, "Give it once.", MistakeReason.DUPLICATE)
    mistake = _without_value(name, values, schema) or _beyond_bounds(name, str(values[-1]), schema)
    if mistake is not None:
        return mistake
    if name in _NAMES_OF_ONE and "," in str(values[-1]):
        rule = "must be one name: no name contains a comma"
        return LocatedError(0, name, values[-1], rule, "Ask for each by itself.", MistakeReason.INVALID)
    form = _FORMS.get(str(schema.get("format") or schema.get("type")))
    if form is None or all(form.reads(str(value)) for value in values):
        return None
    return LocatedError(0, name, values[-1], f"must be {form.asks_for}", form.remedy, MistakeReason.INVALID)


def _without_value(name: str, values: Sequence[Any], schema: Mapping[str, Any]) -> LocatedError | None:
    """`?status=` would list all; its filter refuses other values."""
    supported = schema.get("items", schema).get("enum")
    if not supported or all(values):
        return None
    rule = f"Required value: supported values are {', '.join(map(str, supported))}"
    return LocatedError(0, name, "", rule, "Use one of them, or omit the parameter.", MistakeReason.REQUIRED)


def _beyond_bounds(name: str, text: str, schema: Mapping[str, Any]) -> LocatedError | None:
    if schema.get("type") != "integer" or "maximum" not in schema:
        return None
    least, most = schema.get("minimum", 0), schema["maximum"]
    if text.isascii() and text.isdigit() and least <= int(text[:18]) <= most:
        return None
    rule = f"must be a whole number between {least} and {most}"
    return LocatedError(
        0, name, text, rule, f"Use a number between {least} and {most}, or omit the parameter.", MistakeReason.INVALID
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """How a value of a type is written."""

    reads: Callable[[str], bool]
    asks_for: str
    remedy: str


def _is_time(text: str) -> bool:
    try:
        return parse_datetime(text) is not None
    except ValueError:  # well-formed but not a date: 30 February
        return False


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


_FORMS: Final = {
    "boolean": _Form(lambda text: text.lower() in {"true", "false"}, "true or false", "Write true or false."),
    "date-time": _Form(_is_time, "an RFC 3339 time", "Write it like 2026-01-05T09:00:00Z."),
    "uuid": _Form(_is_uuid, "a UUID", "Use the one in the object's address."),
}


def _unknown(name: str, value: str, known: Parameters) -> LocatedError:
    close = difflib.get_close_matches(name, known, n=1)
    remedy = f'Did you mean "{close[0]}"?' if close else "Leave it out."
    rule = f"unknown query parameter; this address accepts {', '.join(sorted(known)) or 'none'}"
    return LocatedError(0, name, value, rule, remedy, MistakeReason.UNKNOWN_FIELD)


@cache
def known_parameters(view: View, method: str) -> Parameters | None:
    """Return an operation's query parameters and their schemas; None if it is not an operation of the API."""
    found = _operations().get((view, method))
    if found is None:
        return None
    path, pattern = found
    with _lock:  # one by one: drf-spectacular counts names globally
        generator = SchemaGenerator()  # type: ignore[no-untyped-call]
        described = generator.create_view(view, method)  # type: ignore[no-untyped-call]
        if described.schema.is_excluded():
            return None
        described.request = spectacular_settings.GET_MOCK_REQUEST(method, path, described, None)
        path = generator.coerce_path(path, method, described)  # type: ignore[no-untyped-call]  # untyped there
        prefix = f"^{spectacular_settings.SCHEMA_PATH_PREFIX}"
        operation = described.schema.get_operation(path, pattern, prefix, method, generator.registry)
    parameters = (operation or {}).get("parameters", [])
    return {parameter["name"]: parameter["schema"] for parameter in parameters if parameter["in"] == "query"}


@cache
def _operations() -> dict[tuple[View, str], tuple[str, str]]:
    """(view, method) -> (path, path as a regular expression)."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # untyped there
    inspector = generator.endpoint_inspector_cls(generator.patterns, generator.urlconf)
    endpoints = inspector.get_api_endpoints()  # type: ignore[no-untyped-call]
    return {(view, method): (path, pattern) for path, pattern, method, view in endpoints}
