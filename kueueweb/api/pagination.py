"""Lists by keyset: a page starts after the last row of the one before, so page 1,000 costs what page 1 costs.

Rows are counted only with `total=true`, and new or deleted rows do not shift the pages.
"""

import base64
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import orjson
from django.core.exceptions import ValidationError as ModelValidationError
from django.db.models import Q, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.flags import flag

DEFAULT_LIMIT: Final = 100
MAXIMUM_LIMIT: Final = 1000


class KeysetPagination(BasePagination):
    """`?limit=` rows `?after=` a cursor. The view's `keyset`: columns that order its rows and identify them."""

    def __init__(self) -> None:
        self.next_cursor: str | None = None
        self.total: int | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        """Return one page of rows, dicts or instances; raises ValidationError for an invalid limit or cursor."""
        keyset = _keyset(view)
        limit = read_limit(request)
        if flag(request, "total"):
            self.total = queryset.count()
        if cursor := request.query_params.get("after"):
            queryset = _after(queryset, keyset, cursor)
        rows = list(queryset.order_by(*keyset)[: limit + 1])
        if len(rows) > limit:
            rows.pop()
            self.next_cursor = encode_cursor([_value(rows[-1], column.lstrip("-")) for column in keyset])
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        """`next` is the cursor of the next page, null on the last."""
        total = {} if self.total is None else {"total": self.total}
        return Response({"results": data, "next": self.next_cursor, **total})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the page in the OpenAPI document."""
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {"type": ["string", "null"], "description": "The cursor for `after`; null on the last page."},
                "total": {
                    "type": "integer",
                    "description": "The number of rows, if `total=true`.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Return the parameters in the OpenAPI document."""
        limit = {"type": "integer", "minimum": 1, "maximum": MAXIMUM_LIMIT, "default": DEFAULT_LIMIT}
        return [
            {
                "name": "after",
                "in": "query",
                "schema": {"type": "string"},
                "description": "The page cursor: `next` of the previous page.",
            },
            {"name": "limit", "in": "query", "schema": limit, "description": "The maximum number of rows."},
            {"name": "total", "in": "query", "schema": {"type": "boolean"}, "description": "Count all rows, too."},
        ]


def _keyset(view: APIView | None) -> Sequence[str]:
    """Return the view's; of several clusters with the row's key, since a name identifies a row only within its
    cluster."""
    keyset: Sequence[str] = getattr(view, "keyset", ("id",))
    reach = getattr(view, "reach", None)
    if reach is None or not reach.is_of_several or {"id", "-id"} & set(keyset):
        return keyset
    return (*keyset, "id")


def read_limit(request: Request) -> int:
    """Read the page's length; raises ValidationError unless it is between 1 and `MAXIMUM_LIMIT`."""
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAXIMUM_LIMIT):
        raise ValidationError({"limit": f"{text!r} is not a whole number between 1 and {MAXIMUM_LIMIT}."})
    return int(text)


def encode_cursor(values: Sequence[Any]) -> str:
    """Encode the values of a row's keyset as one opaque word."""
    return base64.urlsafe_b64encode(orjson.dumps(values, default=str)).decode().rstrip("=")


def decode_cursor(cursor: str, length: int) -> list[Any]:
    """Decode the values. Raises ValidationError for any text that `encode_cursor` did not create."""
    try:
        values = orjson.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except ValueError:
        values = None
    if (
        not isinstance(values, list)
        or len(values) != length
        or not all(isinstance(v, str | int | float) for v in values)
        or any(isinstance(v, str) and "\0" in v for v in values)
    ):
        raise _bad_cursor(cursor)
    return values


def _after(queryset: QuerySet[Any], keyset: Sequence[str], cursor: str) -> QuerySet[Any]:
    """Rows behind the cursor: the first differing column decides, each in its own direction."""
    values = decode_cursor(cursor, len(keyset))
    behind, equal = Q(), Q()
    for column, value in zip(keyset, values, strict=True):
        name = column.lstrip("-")
        behind |= equal & Q(**{f"{name}__{'lt' if column.startswith('-') else 'gt'}": value})
        equal &= Q(**{name: value})
    try:
        return queryset.filter(behind)
    except (ValueError, TypeError, ModelValidationError):
        raise _bad_cursor(cursor) from None


def _bad_cursor(cursor: str) -> ValidationError:
    return ValidationError({"after": f"{cursor!r} is not a cursor of this list; use `next` of the previous page."})


def _value(row: Any, column: str) -> str | int | float:
    value = row[column] if isinstance(row, Mapping) else getattr(row, column)
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value
