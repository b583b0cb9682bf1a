"""The errors of Kubernetes' API: each is a Status object with a code and a reason."""

from __future__ import annotations

from simulation.api.objects import JsonObject


class ApiError(Exception):
    """A request that the API server refuses.

    * code: the HTTP status.
    * reason: Kubernetes' machine reason ("NotFound", "AlreadyExists", "Conflict", ...).
    * details: the Status' details, such as the causes of a conflict of field managers.
    """

    def __init__(self, code: int, reason: str, message: str, details: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> JsonObject:
        """Return the Status object that the server sends."""
        body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def _details(plural: str, name: str, causes: list[JsonObject] | None = None) -> JsonObject:
    details: JsonObject = {"name": name, "kind": plural}
    if causes:
        details["causes"] = causes
    return details


REFUSALS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
"""Statuses with which an API server in trouble answers every request."""


def refusal(code: int) -> ApiError:
    """Return the answer of an API server in trouble."""
    return ApiError(code, REFUSALS[code], "the simulated cluster was told to refuse every request")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(plural: str, name: str, why: str) -> ApiError:
    """Return the error for a refusal by an admission plugin."""
    return ApiError(403, "Forbidden", f'{plural} "{name}" is forbidden: {why}', _details(plural, name))


def not_found(plural: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{plural} "{name}" not found', _details(plural, name))


def no_such_path(path: str) -> ApiError:
    return ApiError(404, "NotFound", f"the server could not find the requested resource: {path}")


def method_not_allowed(method: str, path: str) -> ApiError:
    return ApiError(405, "MethodNotAllowed", f"{method} is not supported on {path}")


def already_exists(plural: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{plural} "{name}" already exists', _details(plural, name))


def conflict(plural: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {plural} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(plural, name))


def apply_conflict(plural: str, name: str, fields_by_manager: dict[str, list[str]]) -> ApiError:
    """Return the conflict of fields that another manager owns with another value; `force` would take them over."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": field}
        for manager, fields in sorted(fields_by_manager.items())
        for field in sorted(fields)
    ]
    described = "; ".join(
        f'conflict with "{manager}": {", ".join(sorted(fields))}'
        for manager, fields in sorted(fields_by_manager.items())
    )
    noun = "conflict" if len(causes) == 1 else "conflicts"
    message = f"Apply failed with {len(causes)} {noun}: {described}"
    return ApiError(409, "Conflict", message, _details(plural, name, causes))


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def unsupported_media_type(content_type: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {content_type!r}")


def invalid(kind: str, name: str, field: str, why: str) -> ApiError:
    """Return the error of one field that breaks a rule; `field` is a path such as "spec.template"."""
    message = f'{kind} "{name}" is invalid: {field}: {why}'
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiError(422, "Invalid", message, _details(kind, name, causes))
