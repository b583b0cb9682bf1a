"""AdmissionReview (admission.k8s.io/v1): the API server's question, and our answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import orjson

from clusters.jobs.framework.errors import FieldErrors
from clusters.jobs.framework.manifest import JsonObject, dig

API_VERSION: Final = "admission.k8s.io/v1"
CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
_MAX_MESSAGE: Final = 4096


class BadReview(ValueError):
    """The body is no AdmissionReview that can be answered."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request to the API server to change an object.

    * username, groups: the caller.
    * object: as it would be stored; old: as it is stored, empty on creation.
    """

    uid: str
    operation: str
    api_version: str
    kind: str
    namespace: str
    name: str
    username: str
    object: JsonObject
    old: JsonObject
    groups: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


def read_review(body: bytes) -> AdmissionRequest:
    """Raises BadReview."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as mistake:
        raise BadReview(f"the body is not JSON: {mistake}") from mistake
    if not isinstance(review, dict) or review.get("apiVersion") != API_VERSION:
        raise BadReview(f"apiVersion: Unsupported value: supported is {API_VERSION}")
    request = review.get("request")
    if not isinstance(request, dict) or not request.get("uid"):
        raise BadReview("request.uid: Required value")
    group, version = (str(dig(request, "kind", key) or "") for key in ("group", "version"))
    namespace = str(request.get("namespace") or "")
    return AdmissionRequest(
        uid=str(request["uid"]),
        operation=str(request.get("operation") or ""),
        api_version=f"{group}/{version}" if group else version,
        kind=str(dig(request, "kind", "kind") or ""),
        namespace=namespace,
        name=str(request.get("name") or ""),
        username=str(dig(request, "userInfo", "username") or ""),
        object=_read_object(request, "object", namespace),
        old=_read_object(request, "oldObject", namespace),
        groups=frozenset(map(str, dig(request, "userInfo", "groups") or ())),
    )


def _read_object(request: Mapping[str, Any], key: str, namespace: str) -> JsonObject:
    """Read an object of the review, empty if there is none; the namespace of a new object may be only in the
    request."""
    found = request.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("metadata") or {}, dict):
        raise BadReview(f"request.{key}: Invalid value: must be an object with metadata")
    metadata = found.get("metadata") or {}
    if namespace and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": namespace}
    return {**found, "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: allowed, perhaps with a JSON Patch, or refused, with a metav1.Status that gives the reason."""

    patch: Sequence[JsonObject] = ()
    status: JsonObject | None = None
    warnings: Sequence[str] = ()

    @property
    def allowed(self) -> bool:
        return self.status is None


ALLOWED: Final = Verdict()


def refused(why: str) -> Verdict:
    """Refuse the request for a reason that concerns no single field."""
    return Verdict(status=_forbidden(why))


def refused_fields(request: AdmissionRequest, errors: FieldErrors, warnings: Sequence[str] = ()) -> Verdict:
    """Refuse the request for these fields: Forbidden, as Kueue's webhooks answer. Each field is a separate cause."""
    texts = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    status = _forbidden(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    causes = [{"reason": error.type.value, "message": error.message, "field": error.field} for error in errors]
    details = {"name": request.name, "group": request.group, "kind": request.kind, "causes": causes}
    return Verdict(status={**status, "details": details}, warnings=warnings)


def _forbidden(message: str) -> JsonObject:
    code = int(HTTPStatus.FORBIDDEN)
    return {"status": "Failure", "code": code, "reason": "Forbidden", "message": message[:_MAX_MESSAGE]}


def write_review(request: AdmissionRequest, verdict: Verdict) -> bytes:
    """Write the answer to a request."""
    response: JsonObject = {"uid": request.uid, "allowed": verdict.allowed}
    if verdict.status is not None:
        response["status"] = verdict.status
    if verdict.patch and verdict.allowed:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
