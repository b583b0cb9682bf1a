"""Errors as Kubernetes answers them: metav1.Status."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from rest_framework.response import Response
from rest_framework.views import set_rollback

from kueueweb.api.errors import error_response

_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}
_OURS: Final[Mapping[str, int]] = {"InvalidManifest": 422, "UnsupportedKind": 422, "PreconditionFailed": 409}
"""Our reasons that Kubernetes answers with another status."""


class Refusal(Exception):
    """A request that is refused in Kubernetes' words."""

    def __init__(self, code: int, message: str, details: Mapping[str, Any] | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.body = status(code, message, details, reason)


def status(code: int, message: str, details: Mapping[str, Any] | None = None, reason: str = "") -> dict[str, Any]:
    """Return the Status of a failure."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason or _REASONS.get(code, "InternalError"),
        "code": code,
    }
    return {**body, "details": dict(details)} if details else body


def refusal_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Handle DRF's exceptions at these addresses: the statuses follow REST's rules, and the words are ours."""
    if isinstance(error, Refusal):
        set_rollback()
        return Response(error.body, error.code)
    found = error_response(error, context)
    if found is None:
        return None
    body = found.data
    code = _OURS.get(body["reason"], found.status_code)
    details: dict[str, Any] = {}
    if body.get("errors"):
        details["causes"] = [_cause(each) for each in body["errors"]]
    if "Retry-After" in found.headers:
        details["retryAfterSeconds"] = int(found.headers["Retry-After"])
    reason = "AlreadyExists" if body["reason"] == "AlreadyExists" else ""
    return Response(status(code, body["message"], details, reason), code, headers=dict(found.headers))


def _cause(error: Mapping[str, Any]) -> dict[str, Any]:
    remedy = f" {error['remedy']}" if error.get("remedy") else ""
    return {"reason": "FieldValueInvalid", "message": f"{error['rule']}{remedy}", "field": error["path"]}


def not_found(qualified: str, group: str, plural: str, name: str) -> Refusal:
    """Refuse: there is no such object, or none that the user may see."""
    details = {"name": name, "group": group, "kind": plural}
    return Refusal(HTTPStatus.NOT_FOUND, f'{qualified} "{name}" not found', details)


def forbidden(qualified: str, verb: str, group: str, plural: str, username: str, namespace: str, name: str) -> Refusal:
    """Refuse a verb that the user's roles do not allow in this namespace."""
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    what = f'{qualified} "{name}"' if name else qualified
    message = f'{what} is forbidden: User "{username}" cannot {verb} resource "{plural}" in API group "{group}"{where}'
    return Refusal(HTTPStatus.FORBIDDEN, message, {"name": name, "group": group, "kind": plural})


def expired(message: str) -> Refusal:
    """Refuse a version or a page that has expired."""
    return Refusal(HTTPStatus.GONE, message)
