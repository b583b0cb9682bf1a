"""Admission webhooks as the API server calls them: their matching, the patches that they may make, their failure
policies.

They are called for creations and edits of whole objects. A webhook is reached by its `url`; no Service is resolved
here.
"""

from __future__ import annotations

import base64
import ssl
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import orjson
import urllib3

from scheduling.model.selectors import LabelSelector
from simulation.api.errors import ApiError
from simulation.api.json_patch import BadPatch, apply_json_patch
from simulation.api.objects import JsonObject, labels_of, name_of, namespace_of
from simulation.api.resources import MUTATING, VALIDATING, Resource
from simulation.api.store import ObjectStore

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
_DEFAULT_TIMEOUT_SECONDS: Final = 10


class RefusedByWebhook(ApiError):
    """A webhook said no, or did not answer and fails closed: the client may repeat the request."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request to change an object. `old` is None on creation."""

    operation: str
    resource: Resource
    new: JsonObject
    old: JsonObject | None
    user: str
    dry_run: bool


class AdmissionWebhooks:
    """The webhooks that the cluster's configurations name.

    * outside: what is entered while one is being asked. It may ask the API server something itself meanwhile.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.outside: Callable[[], AbstractContextManager[None]] = nullcontext
        self._store = store
        self._pools: dict[str, urllib3.PoolManager] = {}

    def mutated(self, attempt: Attempt) -> JsonObject:
        """Return the object after all mutating webhooks. Raises RefusedByWebhook."""
        item = attempt.new
        for webhook in self._registered(MUTATING):
            now = Attempt(attempt.operation, attempt.resource, item, attempt.old, attempt.user, attempt.dry_run)
            if not self._is_asked(webhook, now):
                continue
            response = self._ask(webhook, now)
            if response is not None and response.get("patch"):
                item = _patched(webhook, item, response)
        return item

    def validate(self, attempt: Attempt) -> None:
        """Ask all validating webhooks. Raises RefusedByWebhook."""
        for webhook in self._registered(VALIDATING):
            if self._is_asked(webhook, attempt):
                self._ask(webhook, attempt)

    def _registered(self, plural: str) -> Iterator[JsonObject]:
        """In the order of the names of their configurations."""
        for configuration in list(self._store.items(plural)):
            yield from configuration.get("webhooks") or ()

    def _is_asked(self, webhook: JsonObject, attempt: Attempt) -> bool:
        if not any(_covers(rule, attempt) for rule in webhook.get("rules") or ()):
            return False
        namespace = self._store.get("namespaces", "", namespace_of(attempt.new))
        of_namespace = LabelSelector.from_manifest(webhook.get("namespaceSelector") or {})
        if namespace is not None and not of_namespace.matches(labels_of(namespace)):
            return False
        of_object = LabelSelector.from_manifest(webhook.get("objectSelector") or {})
        return any(of_object.matches(labels_of(item)) for item in (attempt.new, attempt.old) if item is not None)

    def _ask(self, webhook: JsonObject, attempt: Attempt) -> JsonObject | None:
        """Return the response of a webhook that allows it, None of one that fails open. Raises RefusedByWebhook."""
        asked = _review(attempt)
        try:
            with self.outside():
                response = self._send(webhook, asked)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as failure:
            if webhook.get("failurePolicy") == "Ignore":
                return None
            why = f'failed calling webhook "{webhook["name"]}": failed to call webhook: {failure}'
            raise RefusedByWebhook(500, "InternalError", f"Internal error occurred: {why}") from failure
        if response.get("allowed") is not True:
            raise _refusal(webhook, response.get("status") or {})
        return response

    def _send(self, webhook: JsonObject, review: JsonObject) -> JsonObject:
        """Raises HTTPError, OSError or ValueError for anything but an answer to just this review."""
        where = webhook["clientConfig"]
        if not where.get("url"):
            service = where.get("service") or {}
            raise OSError(f'no endpoints available for service "{service.get("name")}"')
        seconds = webhook.get("timeoutSeconds") or _DEFAULT_TIMEOUT_SECONDS
        answer = self._pool(where.get("caBundle") or "").request(
            "POST", where["url"], body=orjson.dumps(review), headers={"Content-Type": "application/json"},
            timeout=seconds,
        )  # fmt: skip
        if answer.status != 200:
            raise ValueError(f"the server answered with {answer.status}")
        found = orjson.loads(answer.data)
        response = found.get("response") or {}
        if response.get("uid") != review["request"]["uid"] or found.get("kind") != "AdmissionReview":
            raise ValueError("the answer is to another review")
        return dict(response)

    def _pool(self, bundle: str) -> urllib3.PoolManager:
        """Return connections to servers whose certificates the bundle verifies."""
        if bundle not in self._pools:
            authorities = base64.b64decode(bundle).decode() or None
            context = ssl.create_default_context(cadata=authorities)
            self._pools[bundle] = urllib3.PoolManager(ssl_context=context, retries=False)
        return self._pools[bundle]


def _covers(rule: JsonObject, attempt: Attempt) -> bool:
    """Return whether a rule is about this. Subresources are never asked about here."""
    resource = attempt.resource
    wanted = (
        ("operations", attempt.operation),
        ("apiGroups", resource.group),
        ("apiVersions", resource.version),
        ("resources", resource.plural),
    )
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return rule.get("scope", "*") in ("*", scope) and all(
        value in (rule.get(key) or ()) or "*" in (rule.get(key) or ()) for key, value in wanted
    )


def _review(attempt: Attempt) -> JsonObject:
    resource, item = attempt.resource, attempt.new
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    place = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request: dict[str, Any] = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "requestKind": kind,
        "resource": place,
        "requestResource": place,
        "name": name_of(item),
        "namespace": namespace_of(item),
        "operation": attempt.operation,
        "userInfo": {"username": attempt.user, "groups": ["system:authenticated"]},
        "object": item,
        "oldObject": attempt.old,
        "dryRun": attempt.dry_run,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _patched(webhook: JsonObject, item: JsonObject, response: JsonObject) -> JsonObject:
    try:
        return apply_json_patch(item, orjson.loads(base64.b64decode(response["patch"])))
    except (BadPatch, ValueError) as mistake:
        why = f'the patch of webhook "{webhook["name"]}" can\'t be applied: {mistake}'
        raise RefusedByWebhook(500, "InternalError", f"Internal error occurred: {why}") from mistake


def _refusal(webhook: JsonObject, status: JsonObject) -> RefusedByWebhook:
    denied = f'admission webhook "{webhook["name"]}" denied the request'
    said = status.get("message") or status.get("reason") or "without explanation"
    code = max(int(status.get("code") or 0), 400)
    return RefusedByWebhook(code, status.get("reason") or "", f"{denied}: {said}", status.get("details"))
