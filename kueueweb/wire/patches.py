"""Kubernetes' patches, as functions from the present object to the patched one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import jsonpatch
import jsonpointer
import orjson
from django.conf import settings
from rest_framework.request import Request

from kueueweb.api.content import BodyParser, JSONParser
from kueueweb.wire.refusals import Refusal
from kueueweb.wire.resources import JsonObject, Resource
from queues.manifests.documents import read_documents
from scheduling.manifest.merge_patch import merge_patch
from scheduling.manifest.strategic_patch import strategic_patch

_MAX_OPERATIONS: Final = 10_000
"""Operations of one JSON patch, as many as Kubernetes takes."""
_BUILT_IN: Final = frozenset({"", "batch"})
"""Groups whose kinds take strategic merge patches with lists; those of a definition do not, as in Kubernetes."""

_FAILURES: Final = (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError)

Change = Callable[[JsonObject], JsonObject]


class _MergePatchParser(JSONParser):
    media_type = "application/merge-patch+json"


class _StrategicPatchParser(JSONParser):
    media_type = "application/strategic-merge-patch+json"


class _JsonPatchParser(JSONParser):
    media_type = "application/json-patch+json"


class ApplyParser(BodyParser):
    """The manifest of a server-side apply, as YAML or JSON."""

    media_type = "application/apply-patch+yaml"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Read the manifest. Raises ManifestErrors for text that is not YAML, and Refusal (400) for several
        documents."""
        documents = read_documents(super().parse(stream, media_type, parser_context))
        if len(documents) != 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"the body must be one manifest; it has {len(documents)} documents")
        return documents[0].content


PARSERS: Final = (JSONParser, _MergePatchParser, _StrategicPatchParser, _JsonPatchParser, ApplyParser)


def is_apply(request: Request) -> bool:
    """Return whether the request is a server-side apply."""
    return _media_type(request) == ApplyParser.media_type


def change_of(request: Request, resource: Resource) -> Change:
    """Read the change in a patch request. Raises Refusal: 400 for a body of another form, 415 for another media
    type."""
    media_type, patch = _media_type(request), request.data
    if media_type == _JsonPatchParser.media_type:
        return _json_patch(patch)
    if media_type not in (_MergePatchParser.media_type, _StrategicPatchParser.media_type):
        taken = ", ".join(parser.media_type for parser in PARSERS[1:])
        message = f"the body of the request was in an unknown format - accepted media types include: {taken}"
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message)
    if not isinstance(patch, Mapping):
        raise Refusal(HTTPStatus.BAD_REQUEST, "the patch must be an object")
    if media_type == _MergePatchParser.media_type or _is_merge_patch(patch):
        return lambda there: merge_patch(there, patch)
    if resource.group not in _BUILT_IN:
        message = "a strategic merge patch with lists is not supported for this kind: send a merge patch (--type merge)"
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message)
    return lambda there: _strategic(there, patch)


def _media_type(request: Request) -> str:
    return (request.content_type or "").partition(";")[0].strip().lower()


def _is_merge_patch(patch: Any) -> bool:
    """Return whether a strategic merge patch means the same as a merge patch: without lists and directives."""
    if isinstance(patch, Mapping):
        return all(not key.startswith("$") and _is_merge_patch(value) for key, value in patch.items())
    return not isinstance(patch, list)


def _strategic(there: JsonObject, patch: Mapping[str, Any]) -> JsonObject:
    try:
        return dict(strategic_patch(there, patch))
    except ValueError as mistake:
        raise Refusal(HTTPStatus.BAD_REQUEST, str(mistake)) from None


def _json_patch(operations: Any) -> Change:
    if not isinstance(operations, list) or not all(isinstance(found, Mapping) for found in operations):
        raise Refusal(HTTPStatus.BAD_REQUEST, "the patch must be a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        message = f"a JSON patch has at most {_MAX_OPERATIONS} operations; this one has {len(operations)}"
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)

    def change(there: JsonObject) -> JsonObject:
        wanted, copied = orjson.loads(orjson.dumps(there)), 0
        try:
            for operation in operations:
                copied += _copied_bytes(wanted, operation)
                if copied > settings.MAXIMUM_BODY_BYTES:
                    message = f"a JSON patch copies at most {settings.MAXIMUM_BODY_BYTES} bytes"
                    raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
                wanted = jsonpatch.apply_patch(wanted, [operation], in_place=True)
            orjson.dumps(wanted)  # it may have become too deep to be stored
        except (*_FAILURES, orjson.JSONEncodeError, RecursionError) as mistake:
            message = f"the JSON patch cannot be carried out: {mistake}"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, message) from None
        if not isinstance(wanted, dict):
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "the JSON patch removes the object itself")
        return wanted

    return change


def _copied_bytes(there: Any, operation: Mapping[str, Any]) -> int:
    """Return the bytes by which a copy lets the object grow: copies of copies would grow without bound."""
    if operation.get("op") != "copy":
        return 0
    return len(orjson.dumps(jsonpointer.resolve_pointer(there, operation.get("from", ""))))
