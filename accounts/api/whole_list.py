"""Lists that are always given whole: they have the shape of every list, and no parameters for pages."""

from typing import Any

from rest_framework.pagination import BasePagination
from rest_framework.response import Response


class WholeList(BasePagination):
    """For a view whose list other parameters bound. The answer has the fields of a page: `limit`, which it could not
    honour, is refused.
    """

    def get_paginated_response(self, data: Any) -> Response:
        """The only page."""
        return Response({"results": data, "next": None})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The page in the OpenAPI document."""
        properties = {
            "results": schema,
            "next": {"type": "null", "description": "Always null: there is only one page."},
        }
        return {"type": "object", "required": ["results", "next"], "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """None."""
        return []
