"""Query parameters that are true or false."""

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request


def flag(request: Request, name: str) -> bool:
    """Return a query parameter that is true or false; raises ValidationError for anything else."""
    value = request.query_params.get(name, "")
    if value not in {"", "true", "false"}:
        raise ValidationError({name: "must be true or false"})
    return value == "true"
