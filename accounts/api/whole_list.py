"""Lists without pages: one answer has all rows, in the form that every list has."""

from typing import Any

from rest_framework.pagination import BasePagination
from rest_framework.response import Response


class WholeList(BasePagination):
    """For a view whose other parameters bound the list. The answer has the fields of a page; the parameter `limit` is
    refused.
    """

    def get_paginated_response(self, data: Any) -> Response:
        """Answer with the only page."""
        return Response({"results": data, "next": None})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the page in the OpenAPI document."""
        properties = {
            "results": schema,
            "next": {"type": "null", "description": "Always null: there is only one page."},
        }
        return {"type": "object", "required": ["results", "next"], "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return no parameters."""
        return []
