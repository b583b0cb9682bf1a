"""Label and field selectors of lists and watches, as conditions of a query."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import ValidationError as InvalidValue
from django.db.models import Q, QuerySet
from rest_framework.exceptions import ValidationError

from kueueweb.wire.refusals import Refusal
from kueueweb.wire.resources import Resource
from queues.api.label_selector import with_labels

_OPERATORS: Final = ("!=", "==", "=")


def selected(rows: QuerySet[Any], resource: Resource, labels: str, fields: str) -> QuerySet[Any]:
    """Return the rows that match both selectors. Raises Refusal (400) for a selector that cannot be read."""
    if labels.strip():
        try:
            rows = with_labels(rows, "labelSelector", labels)
        except ValidationError as mistake:
            detail: Any = mistake.detail
            raise Refusal(
                HTTPStatus.BAD_REQUEST, f"unable to parse requirement: {detail['labelSelector'][0]}"
            ) from None
    for path, operator, value in _requirements(fields):
        try:
            rows = rows.filter(_field(resource, path, operator, value))
        except InvalidValue:  # not a UUID, for example: no object has this value
            rows = rows if operator == "!=" else rows.none()
    return rows


def equalities(fields: str) -> dict[str, str]:
    """Return the values that a field selector requires, by the paths of their fields. Raises Refusal (400)."""
    return {path: value for path, operator, value in _requirements(fields) if operator != "!="}


def _requirements(fields: str) -> Iterator[tuple[str, str, str]]:
    """Yield the path, operator and value of each requirement."""
    for requirement in filter(None, (part.strip() for part in fields.split(","))):
        operator = next((found for found in _OPERATORS if found in requirement), None)
        if operator is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"invalid selector: {requirement!r}; can't understand it")
        path, _, value = (part.strip() for part in requirement.partition(operator))
        yield path, operator, value


def _field(resource: Resource, path: str, operator: str, value: str) -> Q:
    known = {"metadata.name": "name", **resource.fields}
    if resource.namespaced:
        known["metadata.namespace"] = "namespace"
    if path not in known:
        raise Refusal(HTTPStatus.BAD_REQUEST, f'field label not supported: "{path}": use one of {", ".join(known)}')
    if path == "status.admission.clusterQueue":
        holds = Q(quota_reserved_at__isnull=False, cluster_queue_name=value)
        found = Q(quota_reserved_at__isnull=True) if not value else holds
    else:
        found = Q(**{known[path]: value})
    return ~found if operator == "!=" else found
