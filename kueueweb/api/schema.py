"""The OpenAPI document: the parts that all operations share."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS

from accounts.api.idempotency import HEADER, REPLAYED
from accounts.api.permissions import Scoped
from accounts.api.scope import AT, DRY_RUN
from kueueweb.api.examples import ERRORS, TAGS, examples
from kueueweb.api.problem_details import PROBLEM
from scheduler.live.shapes import FRAMES


class LocatedErrorSerializer(serializers.Serializer[Any]):
    """An error at a place in the request."""

    document = serializers.IntegerField(help_text="The index of the document in the request, from 0.")
    path = serializers.CharField(help_text="The field, as in `pod_sets[0].count`.")
    value = serializers.JSONField(help_text="The value in the request; null if there is none.")
    rule = serializers.CharField(help_text="The rule.")
    remedy = serializers.CharField(help_text="A valid value, or how to correct the request.")
    reason = serializers.CharField(help_text="The stable kind of the error.")


class ErrorSerializer(serializers.Serializer[Any]):
    """The body of every error."""

    reason = serializers.CharField(help_text="A stable identifier that clients may test for.")
    message = serializers.CharField(help_text="Human-readable text; it may change.")
    errors = LocatedErrorSerializer(many=True)  # type: ignore[assignment]  # a field of that name, as DRF allows
    error = serializers.CharField(
        required=False, help_text="For device logins: `authorization_pending`, `slow_down` ... (RFC 8628)."
    )


_ERRORS: Final = {
    400: "The request is malformed or breaks a rule; `errors` has the places.",
    401: "The request has no valid credentials.",
    403: "The account does not have permission for this request.",
    404: "The object does not exist, or the user may not see it.",
    405: "The address does not support this method.",
    409: "The state of the object does not allow the request.",
    413: "The body is too large.",
    415: "The media type of the body is not supported.",
    429: "Too many attempts, or more than a tenant may have; `Retry-After` has the seconds until the next attempt.",
    503: "The database or Redis does not answer. The request may have been carried out.",
}
_STALE: Final = "If-Match, or `generation` in the body, names an outdated version; `current` is the present one."
_UNREAD: Final = "The request could overwrite another user's changes: send If-Match with the ETag that you have read."
_ETAG: Final = {
    "description": "The object's version in quotes, to send as If-Match if the object can be written.",
    "schema": {"type": "string"},
}
_LATER: Final = (429, 503)
_REQUEST_ID, _WARNING, _LOCATION = "X-Request-ID", "Warning", "Location"
_HEADERS: Final = {
    "Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "integer"}},
    _REQUEST_ID: {
        "description": "The id that the request sent, or a new one; the audit has it.",
        "schema": {"type": "string"},
    },
    _WARNING: {
        "description": 'Effects that may not be wanted: `299 - "..."`, separated by commas.',
        "schema": {"type": "string"},
    },
    _LOCATION: {"description": "The address of the new object, if it is one.", "schema": {"type": "string"}},
    REPLAYED: {
        "description": "`true`: this is the first answer to the same Idempotency-Key, and nothing was done again.",
        "schema": {"type": "string", "enum": ["true"]},
    },
}
_ALWAYS: Final = (400, 401, 403, 404, 405, 503)
_WITH_BODY: Final = (409, 413, 415, 429)
_ONE_CLUSTER: Final = "The cluster's name."
_SEVERAL_CLUSTERS: Final = (
    "The name of a cluster, or several separated by commas; `*`: all clusters in which you have a role."
)
_DRY_RUN: Final = OpenApiParameter(
    DRY_RUN, bool, OpenApiParameter.QUERY, description="Dry run: answer as usual, but store nothing."
)
_AT: Final = OpenApiParameter(
    AT,
    datetime,
    OpenApiParameter.QUERY,
    description=(
        "Answer by the rows of this moment, reduced to the data that you may see now; if changes were not recorded, by "
        "those of the last checkpoint before it. The headers `Kueueweb-Checkpoint`, `Kueueweb-Exact` and "
        "`Kueueweb-Inexact-Reason` say which. 404 with the reason NoCheckpoint: none is kept."
    ),
)
_IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of the object as it was read: 412 if it has changed. `*`: any version of an existing object.",
)


class Schema(AutoSchema):
    """Adds the errors that any operation may answer with, the headers of answers, and the parameters `cluster`,
    `dry_run` and `at`.

    A view with `has_etag` answers with the header ETag, and takes If-Match where it writes; one with `reads_have_etag`
    answers so only when it is read. One with `takes_one_or_many` takes a list of objects, or one of them alone.
    """

    def get_operation(self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any) -> Any:
        """Return the operation, with the errors added to its own answers. A view's `also_answers` names further
        statuses that return its object: {method: {status: meaning}}."""
        operation = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation:
            for code, description in getattr(self.view, "also_answers", {}).get(method, {}).items():
                own = self.resolve_serializer(self._get_serializer(), "response").ref  # type: ignore[no-untyped-call]  # untyped there
                content = {"application/json": {"schema": own}}
                operation["responses"][str(code)] = {"description": description, "content": content}
            error = self.resolve_serializer(ErrorSerializer, "response").ref
            media_types = {renderer.media_type for renderer in self.view.get_renderers()}
            for code in self._errors(method):
                operation["responses"].setdefault(str(code), _error_answer(code, error, sorted(media_types)))
            self._add_headers(operation, method)
            if self._has_etag() or (method == "GET" and getattr(self.view, "reads_have_etag", False)):
                self._add_etag(operation, method, error)
            if method == "POST" and getattr(self.view, "takes_one_or_many", False):
                content = operation["requestBody"]["content"]["application/json"]
                content["schema"] = {"oneOf": [content["schema"]["items"], content["schema"]]}
        return operation

    def _add_headers(self, operation: Any, method: str) -> None:
        """Add the headers of successful answers."""
        keeps_answers = any(parameter["name"] == HEADER for parameter in operation.get("parameters", ()))
        for code, response in operation["responses"].items():
            if not code.startswith("2"):
                continue
            names = [_REQUEST_ID]
            if method not in SAFE_METHODS:
                names.append(_WARNING)
            if code == str(HTTPStatus.CREATED):
                names.append(_LOCATION)
            if keeps_answers:
                names.append(REPLAYED)
            response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}

    def get_summary(self) -> str | None:
        """Return the first sentence of the description."""
        said = " ".join(self.get_description().split())
        return re.split(r"(?<=[.!?]) ", said, maxsplit=1)[0].rstrip(".") or None

    def _has_etag(self) -> bool:
        return getattr(self.view, "has_etag", False)

    def _add_etag(self, operation: Any, method: str, error: Any) -> None:
        for code, response in operation["responses"].items():
            if code.startswith("2") and "content" in response:
                response["headers"] = {**response.get("headers", {}), "ETag": _ETAG}
        if method == "GET":
            return
        own = self.resolve_serializer(self._get_serializer(), "response").ref  # type: ignore[no-untyped-call]  # untyped there
        current = {"oneOf": [own, {"type": "null"}], "description": "The present object; null: it does not exist."}
        refusal = {"type": "object", "properties": {"current": current}, "required": ["current"]}
        content = {"application/json": {"schema": {"allOf": [error, refusal]}}}
        refusals = {"412": _STALE}
        if method in getattr(self.view, "asks_for_if_match", ()):
            refusals["428"] = _UNREAD
        for code, description in refusals.items():
            operation["responses"][code] = {
                "description": description, "headers": {"ETag": _ETAG}, "content": content,
            }  # fmt: skip

    def get_override_parameters(self) -> list[Any]:
        """Add the parameter `cluster` to operations that concern one cluster."""
        parameters = list(super().get_override_parameters())
        if any(isinstance(permission, Scoped) for permission in self.view.get_permissions()):
            parameters.append(self._cluster())
            if self.method not in SAFE_METHODS:
                parameters.append(_DRY_RUN)
            elif getattr(self.view, "looks_back", False):
                parameters.append(_AT)
        if self._has_etag() and self.method != "GET":
            parameters.append(_IF_MATCH)
        return parameters

    def _cluster(self) -> OpenApiParameter:
        several = self.method in SAFE_METHODS and getattr(self.view, "spans_clusters", False)
        return OpenApiParameter(
            "cluster",
            str,
            OpenApiParameter.QUERY,
            description=_SEVERAL_CLUSTERS if several else _ONE_CLUSTER,
            default=getattr(self.view, "default_cluster", "default"),
        )

    def _errors(self, method: str) -> Iterator[int]:
        yield from _ALWAYS
        if method in {"POST", "PUT", "PATCH", "DELETE"}:
            yield from _WITH_BODY
        if self.view.get_throttles() or (method == "GET" and getattr(self.view, "reads_have_limits", False)):
            yield 429


def _error_answer(code: int, error: Any, media_types: Sequence[str]) -> dict[str, Any]:
    example = {"error": {"$ref": f"#/components/examples/Error{code}"}}
    answer: dict[str, Any] = {
        "description": _ERRORS[code],
        "headers": {_REQUEST_ID: {"$ref": f"#/components/headers/{_REQUEST_ID}"}},
        "content": {kind: {"schema": error, "examples": example} for kind in media_types},
    }
    if code in _LATER:
        answer["headers"]["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    return answer


class KnoxTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # the library is not typed
    """`Authorization: Bearer ...`, or `Token ...`: generated clients only support the scheme name Bearer."""

    target_class = "accounts.api.authentication.TokenAuthentication"
    name = "token"
    priority = 1  # before drf-spectacular's own, which does not describe it

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme, by which generators write the header."""
        description = "A token of `auth/token/`. The word `Token` is accepted in place of `Bearer`."
        return {"type": "http", "scheme": "bearer", "description": description}


def add_examples(result: Any, generator: Any, request: Any, public: bool) -> Any:
    """Describe tags, and add an example to each error and each operation (a hook of drf-spectacular)."""
    components = result["components"]
    components["examples"] = {f"Error{code}": {"value": value} for code, value in ERRORS.items()}
    components["headers"] = _HEADERS
    used = {tag for item in result["paths"].values() for operation in item.values() for tag in operation["tags"]}
    result["tags"] = [{"name": tag, "description": TAGS[tag]} for tag in sorted(used)]
    for (method, path), example in examples().items():
        operation = result["paths"][path][method]
        if "request" in example:
            kind = "application/yaml" if isinstance(example["request"], str) else "application/json"
            operation["requestBody"]["content"][kind]["example"] = example["request"]
        if "answer" in example:
            success_of(operation)["example"] = example["answer"]
    return result


def share_refusals(result: Any, generator: Any, request: Any, public: bool) -> Any:
    """Turn answers of 400 and above into components that operations refer to (a hook of drf-spectacular)."""
    shared: dict[str, Any] = {}
    for item in result["paths"].values():
        for operation in item.values():
            for code, answer in operation["responses"].items():
                if int(code) >= HTTPStatus.BAD_REQUEST:
                    name = f"Error{code}{_variant(answer)}"
                    assert shared.setdefault(name, answer) == answer, f"two answers have the name {name}"
                    operation["responses"][code] = {"$ref": f"#/components/responses/{name}"}
    for answer in shared.values():
        answer["content"][PROBLEM] = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    result["components"]["schemas"]["ProblemDetails"] = _PROBLEM_DETAILS
    result["components"]["responses"] = dict(sorted(shared.items()))
    return result


_PROBLEM_DETAILS: Final[Mapping[str, Any]] = {
    "description": "An error with the members of RFC 9457, for clients that accept this media type.",
    "allOf": [
        {"$ref": "#/components/schemas/Error"},
        {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string", "description": "The phrase of the status."},
                "status": {"type": "integer"},
                "detail": {"type": "string", "description": "The same as `message`."},
                "instance": {"type": "string", "description": "Where the audit has the records of this request."},
            },
            "required": ["type", "title", "status", "detail"],
        },
    ],
}


def _variant(answer: Mapping[str, Any]) -> str:
    """Return the part of a refusal's name that distinguishes it from others with the same status: the object or the
    media types in it."""
    schema = answer["content"]["application/json"]["schema"]
    if "allOf" in schema:
        own: str = schema["allOf"][1]["properties"]["current"]["oneOf"][0]["$ref"]
        return own.rpartition("/")[2]
    return "".join(kind.rpartition("/")[2].title() for kind in answer["content"] if kind != "application/json")


def success_of(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the successful JSON answer in an operation's document."""
    responses = operation["responses"]
    code = min(code for code in responses if code.startswith("2") and "content" in responses[code])
    content: dict[str, Any] = responses[code]["content"]["application/json"]
    return content


def add_live_frames(result: Any, generator: Any, request: Any, public: bool) -> Any:
    """Add the frames of the websocket as components, for the types that clients generate (a hook of
    drf-spectacular)."""
    _, components = msgspec.json.schema_components(FRAMES, ref_template="#/components/schemas/{name}")
    result["components"]["schemas"] |= components
    result["components"]["schemas"] = dict(sorted(result["components"]["schemas"].items()))
    return result
