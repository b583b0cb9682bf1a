"""One shape for every error: `{"reason": "StableToken", "message": "...", "errors": [...]}`.

`errors` locates each mistake: document, path, value, rule and remedy. `reason` is stable; `message` is for people.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from django.urls import Resolver404, resolve
from redis import RedisError
from rest_framework import exceptions as drf
from rest_framework import status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from accounts.services import device_login
from accounts.services.precondition import etag
from foundation import exceptions
from kueueweb.api.exceptions import TooLarge
from kueueweb.api.field_mistakes import field_mistakes
from kueueweb.logs import in_one_line
from scheduling.manifest import LocatedError

_STATUS: Final[Mapping[type[exceptions.KueuewebError], int]] = {
    exceptions.NotPermitted: status.HTTP_403_FORBIDDEN,
    exceptions.NotFound: status.HTTP_404_NOT_FOUND,
    exceptions.Conflict: status.HTTP_409_CONFLICT,
    exceptions.ManifestTooLarge: status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
    exceptions.InvalidRequest: status.HTTP_400_BAD_REQUEST,
    exceptions.PreconditionFailed: status.HTTP_412_PRECONDITION_FAILED,
    exceptions.PreconditionRequired: status.HTTP_428_PRECONDITION_REQUIRED,
    device_login.DeviceLoginError: status.HTTP_400_BAD_REQUEST,
    exceptions.LimitReached: status.HTTP_429_TOO_MANY_REQUESTS,
    exceptions.Unavailable: status.HTTP_503_SERVICE_UNAVAILABLE,
}
_SECRET: Final = frozenset({"password", "token", "device_code", "user_code"})
"""Fields that no error repeats."""
_REASON: Final[Mapping[str, str]] = {
    "authentication_failed": "AuthenticationFailed",
    "error": "Invalid",
    "invalid": "Invalid",
    "method_not_allowed": "MethodNotAllowed",
    "not_acceptable": "NotAcceptable",
    "not_authenticated": "NotAuthenticated",
    "not_found": "NotFound",
    "parse_error": "Malformed",
    "permission_denied": "NotPermitted",
    "throttled": "Throttled",
    "unsupported_media_type": "UnsupportedMediaType",
}
_UNAVAILABLE: Final = (
    "The database or Redis does not answer. Try again in a moment, after checking whether the change was made."
)

_BEYOND_COLUMNS: Final = "A value of this request cannot be stored, such as a number with too many digits."

NOWHERE: Final = "nowhere"
"""The name of the URL pattern that catches unknown addresses of the API."""
_log = logging.getLogger(__name__)


def error_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Handle DRF's exceptions: return every error that a request may cause in our format; None for our own bugs
    (500)."""
    if isinstance(error, exceptions.KueuewebError):
        set_rollback()
        return _refusal(error)
    if isinstance(error, OperationalError | InterfaceError | RedisError):
        _log.error("A request failed: %s", in_one_line(str(error)))
        set_rollback()
        return Response(
            error_body("Unavailable", _UNAVAILABLE), status.HTTP_503_SERVICE_UNAVAILABLE, headers={"Retry-After": "1"}
        )
    if isinstance(error, DataError):
        # A value that passed every check but fits no column: invalid input, and a missing check.
        _log.warning("The database rejects a value: %s", error)
        set_rollback()
        return Response(error_body("Invalid", _BEYOND_COLUMNS), status.HTTP_400_BAD_REQUEST)
    problem = _as_api_exception(error)
    if problem is None:
        return None
    set_rollback()
    body = _api_exception_body(problem, context.get("request"))
    return Response(body, problem.status_code, headers=_headers(problem))


def _refusal(error: exceptions.KueuewebError) -> Response:
    body = error_body(error.reason, error.message, map(located, error.errors))
    headers: dict[str, str] = {}
    if isinstance(error, device_login.DeviceLoginError):
        body["error"] = error.oauth_error
    if isinstance(error, exceptions.LimitReached | exceptions.Unavailable):
        if error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
    elif isinstance(error, exceptions.PreconditionFailed | exceptions.PreconditionRequired):
        body["current"] = error.current
        if error.current is not None:
            headers["ETag"] = etag(_version_of(error.current))
    return Response(body, _status(error), headers=headers)


def _version_of(current: Mapping[str, Any]) -> int | str:
    """Return the generation of a row, or the resourceVersion of a manifest, which is the same."""
    version: int | str = current["metadata"]["resourceVersion"] if "metadata" in current else current["generation"]
    return version


def located(error: LocatedError) -> dict[str, Any]:
    """Return a located mistake as JSON."""
    return {
        "document": error.document,
        "path": error.path,
        "value": error.value if _fits_json(error.value) else str(error.value),
        "rule": error.rule,
        "remedy": error.remedy,
        "reason": str(error.reason),
    }


def _fits_json(value: Any) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, str | float | None)


def _status(error: exceptions.KueuewebError) -> int:
    return next(code for kind, code in _STATUS.items() if isinstance(error, kind))


def _as_api_exception(error: Exception) -> drf.APIException | None:
    if isinstance(error, drf.APIException):
        return error
    if isinstance(error, Http404):
        return drf.NotFound(str(error) or None)
    if isinstance(error, PermissionDenied):
        return drf.PermissionDenied(str(error) or None)
    if isinstance(error, RequestDataTooBig):
        return TooLarge()
    if isinstance(error, BadRequest | SuspiciousOperation):
        return drf.ParseError(str(error) or None)
    return None


def _sent(request: Any) -> Mapping[str, Any]:
    """Return the query parameters and the fields of the body."""
    if request is None:
        return {}
    try:
        body = request.data
    except (drf.APIException, exceptions.KueuewebError):  # the body cannot be read
        body = None
    return {**(body if isinstance(body, Mapping) else {}), **request.query_params.dict()}


def _without_secret(mistake: LocatedError) -> dict[str, Any]:
    shown = located(mistake)
    if mistake.path in _SECRET or not _fits_json(mistake.value):
        shown["value"] = None
    return shown


def _api_exception_body(error: drf.APIException, request: Any) -> dict[str, Any]:
    codes: Any = error.get_codes()
    code = codes if isinstance(codes, str) else "invalid"
    if isinstance(error, drf.ValidationError):
        mistakes = list(field_mistakes(error.detail, _sent(request)))
        message = ": ".join(filter(None, (mistakes[0].path, mistakes[0].rule))) if mistakes else "Invalid."
        return error_body("Invalid", message, map(_without_secret, mistakes))
    return error_body(_REASON.get(code, code), str(error.detail))


def _headers(error: drf.APIException) -> dict[str, str]:
    headers: dict[str, str] = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


def error_body(reason: str, message: str, errors: Any = ()) -> dict[str, Any]:
    """Build the body of every error."""
    return {"reason": reason, "message": message, "errors": list(errors)}


def bad_request(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Handle 400 outside of DRF, for Django."""
    return JsonResponse(error_body("Malformed", "This request cannot be understood."), status=400)


def forbidden(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Handle 403 outside of DRF, for Django."""
    return JsonResponse(error_body("NotPermitted", str(exception) or "This is not allowed."), status=403)


def csrf_failed(request: HttpRequest, reason: str = "") -> JsonResponse:
    """Refuse a form or a script of another site, or one without its token."""
    message = "The CSRF token is missing or wrong. Read the cookie csrftoken and send it as the header X-CSRFToken."
    return JsonResponse(error_body("CsrfFailed", message), status=403)


def not_found(request: HttpRequest, exception: Exception | None = None, **_: Any) -> JsonResponse:
    """Handle 404 outside of DRF, and an address of the API that does not exist. A REST address without its final slash
    is redirected to the one with it, keeping method and body (308)."""
    if _lacks_its_slash(request):
        there = request.get_full_path(force_append_slash=True)
        body = error_body("NotFound", f"There is nothing at {request.path}. REST addresses end in a slash.")
        return JsonResponse(body, status=308, headers={"Location": there})
    return JsonResponse(error_body("NotFound", f"There is nothing at {request.path}."), status=404)


def _lacks_its_slash(request: HttpRequest) -> bool:
    path = request.path_info
    if not path.startswith("/api/v1/") or path.endswith("/"):
        return False
    try:
        return resolve(f"{path}/").url_name != NOWHERE
    except Resolver404:
        return False


def server_error(request: HttpRequest) -> JsonResponse:
    """Answer after a bug of our own; the log has the traceback."""
    return JsonResponse(
        error_body("InternalError", "This is an error in kueueweb; its log has the details."), status=500
    )
