"""Writes: objects in Kubernetes' words, stored and deleted by the services of REST's manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

import orjson
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from accounts.services.audit import one_line
from accounts.services.managed_fields import (
    ANNOTATION,
    ManagedObject,
    forget_managers,
    keep_applied,
    keep_last_applied,
    managers_of,
)
from clusters.manifests import apply_manifests, delete_manifest, delete_manifests, kind_named, require_deletions
from clusters.manifests.apply import lock_applies
from kueueweb.wire.applying import KUBECTL, Apply, conflict
from kueueweb.wire.job_objects import without_generated_selector
from kueueweb.wire.object_reading import Key, ObjectReader, Page, Selection
from kueueweb.wire.patches import Change
from kueueweb.wire.refusals import Refusal, not_found
from kueueweb.wire.resources import JsonObject, Resource
from queues.api.workload_pieces import PIECE
from queues.models import Job
from scheduling.manifest.applied_fields import applied_part
from scheduling.manifest.metadata import LAST_APPLIED, MAX_ANNOTATIONS_BYTES

_OF_THE_SERVER: Final = ("managedFields", "resourceVersion", "uid")
"""Metadata that are a precondition here, or are written here; in manifests the version is the generation's."""
_PIECE_OF_OTHERS: Final = 50
"""How many objects are deleted in one transaction: each job takes statements of its own, all workloads take one."""


@dataclass(frozen=True, slots=True)
class Written:
    """The present object, None if it was deleted, and warnings for its author."""

    item: JsonObject | None
    warnings: Sequence[str] = ()
    created: bool = False


class ObjectWriter:
    """Writes objects of a resource with a user's rights. With `dry_run` nothing is stored."""

    def __init__(
        self,
        reader: ObjectReader,
        resource: Resource,
        version: str,
        user: AbstractBaseUser | AnonymousUser,
        *,
        dry_run: bool,
    ) -> None:
        self._reader = reader
        self._resource = resource
        self._api_version = resource.api_version(version)
        self._user = user
        self._dry_run = dry_run

    def create(self, body: Any, namespace: str) -> Written:
        """Create the object. Raises Refusal (409) if it exists."""
        manifest = self._manifest(body, namespace, "")
        name = str(manifest["metadata"].get("name") or "")

        def store() -> Written:
            if name and self._reader.exists(namespace, name):
                details = {"name": name, "group": self._resource.group, "kind": self._resource.plural}
                message = f'{self._resource.qualified} "{name}" already exists'
                raise Refusal(HTTPStatus.CONFLICT, message, details, "AlreadyExists")
            return self._apply(manifest, namespace)

        return self._within(store)

    def replace(self, body: Any, namespace: str, name: str) -> Written:
        """Replace the object. Raises Refusal: 404 if it does not exist, 409 if it has changed since its
        resourceVersion."""
        manifest = self._manifest(body, namespace, name)

        def store() -> Written:
            there = self._there(namespace, name)
            self._check(there, body["metadata"])
            return self._apply(manifest, namespace)

        return self._within(store)

    def patch(self, change: Change, namespace: str, name: str) -> Written:
        """Change the object by a patch. Raises Refusal: 404 if it does not exist, 409 if it has changed since the
        resourceVersion that the patch names."""

        def store() -> Written:
            there = self._there(namespace, name)
            wanted = change(there)
            self._check(there, wanted.get("metadata") or {})
            return self._apply(self._manifest(wanted, namespace, name), namespace)

        return self._within(store)

    def apply(self, body: Any, namespace: str, name: str, *, manager: str, force: bool) -> Written:
        """Apply the fields of a manifest as a manager, and create the object if it does not exist.

        Raises Refusal (409) that names the fields which other managers have applied with other values, unless `force`
        is given.
        """
        manifest = self._manifest(body, namespace, name)

        def store() -> Written:
            there = self._reader.one(Selection(namespace, name))
            if there is None and body["metadata"].get("uid"):
                raise self._changed(name)
            if there is not None:
                self._check(there, body["metadata"])
            rows = managers_of([UUID(there["metadata"]["uid"])] if there else [])
            applying = Apply(manager, manifest, next(iter(rows.values()), {}))
            applying.check_managers()
            wanted = applying.wanted(there) if there else manifest
            done = self._apply(self._manifest(wanted, namespace, name), namespace)
            if done.item is None:
                return done
            conflicts = applying.conflicts(there, done.item) if there else {}
            if conflicts and not force:
                raise conflict(conflicts)
            self._keep(applying, done.item, conflicts)
            found = self._reader.one(Selection(namespace, name))
            return Written(found, done.warnings, created=there is None)

        return self._within(store)

    def delete(self, options: Any, namespace: str, name: str) -> Written:
        """Delete the object, now or as soon as nothing holds it any more."""
        preconditions = options.get("preconditions") if isinstance(options, Mapping) else None

        def remove() -> Written:
            there = self._there(namespace, name)
            self._check(there, preconditions if isinstance(preconditions, Mapping) else {})
            access, kind = self._reader.access, kind_named(self._resource.kind)
            delete_manifest(self._reader.cluster, kind, namespace, name, access=access)
            left = self._reader.one(Selection(namespace, name))
            if left is None:
                forget_managers(UUID(there["metadata"]["uid"]))
            return Written(left)

        return self._within(remove)

    def delete_all(self, selection: Selection, page: Page, options: Any) -> None:
        """Delete the objects of a page in batches, as far as they still exist and the selection names them.

        Other writes and the scheduler's batches run in between. Raises Refusal (409) for an object that differs from
        the preconditions, and `NotPermitted` if the user may not delete one of them. Both are checked for all objects
        before anything is deleted, and again in each batch. If a later batch is refused, or the deletion is
        interrupted, the committed batches stay deleted, and the same request again deletes the rest.
        """
        preconditions = options.get("preconditions") if isinstance(options, Mapping) else None
        asked = preconditions if isinstance(preconditions, Mapping) else {}
        self._check_all(page.keys, asked)
        cluster, kind, access = self._reader.cluster, kind_named(self._resource.kind), self._reader.access
        require_deletions(cluster, kind, [key[1:] for key in page.keys], access=access)
        with one_line() if len(page.keys) > 1 else nullcontext():
            size = PIECE if self._resource.kind == "Workload" else _PIECE_OF_OTHERS
            for start in range(0, len(page.keys), size):
                piece = page.keys[start : start + size]
                with transaction.atomic():
                    lock_applies(cluster, against_decisions=True)
                    there = self._reader.known(selection, of=piece)
                    self._check_all(there, asked)
                    delete_manifests(cluster, kind, [key[1:] for key in there], access=access)
                    left = {uid for uid, _, _ in self._reader.known(selection, of=there)}
                    forget_managers(*(UUID(uid) for uid, _, _ in there if uid not in left))
                    transaction.set_rollback(self._dry_run)

    def _within(self, change: Callable[[], Written]) -> Written:
        """Perform a change without any other write or decision in between, and roll back a dry run."""
        with transaction.atomic():
            lock_applies(self._reader.cluster, against_decisions=True)
            done = change()
            transaction.set_rollback(self._dry_run)
        return done

    def _apply(self, manifest: JsonObject, namespace: str) -> Written:
        """Store a manifest, and separately `kubectl apply`'s annotation, which is not part of the desired state."""
        metadata = manifest["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        text = str(annotations.pop(LAST_APPLIED, ""))
        if len(text.encode("utf-8", "surrogatepass")) > MAX_ANNOTATIONS_BYTES:
            message = f"metadata.annotations: Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, message)
        stored = {**manifest, "metadata": {**metadata, "annotations": annotations}} if text else manifest
        [applied] = apply_manifests(self._reader.cluster, orjson.dumps(stored), user=self._user).objects
        item = self._reader.one(Selection(namespace, applied.name))
        if item is not None and text != item["metadata"].get("annotations", {}).get(LAST_APPLIED, ""):
            keep_last_applied(self._managed(item), self._api_version, text)
            item = self._reader.one(Selection(namespace, applied.name))
        return Written(item, applied.warnings)

    def _keep(self, applying: Apply, item: JsonObject, conflicts: Mapping[str, Sequence[Any]]) -> None:
        """Store the present managers of the fields."""
        managed = self._managed(item)
        for manager, paths in conflicts.items():
            if manager in applying.rows:
                row = applying.rows[manager]
                keep_applied(managed, manager, self._api_version, applying.left_to(row, list(paths)), row.seen)
        applied = applied_part(applying.manifest)
        keep_applied(managed, applying.manager, self._api_version, applied, applying.seen(item))
        if applying.manager == KUBECTL and ANNOTATION in applying.rows:
            text = orjson.dumps(applying.manifest).decode()
            keep_last_applied(managed, self._api_version, text)

    def _managed(self, item: JsonObject) -> ManagedObject:
        metadata = item["metadata"]
        uid, namespace = UUID(metadata["uid"]), metadata.get("namespace", "")
        return ManagedObject(self._reader.cluster, self._resource.kind, namespace, metadata["name"], uid)

    def _there(self, namespace: str, name: str) -> JsonObject:
        found = self._reader.one(Selection(namespace, name))
        if found is None:
            raise not_found(self._resource.qualified, self._resource.group, self._resource.plural, name)
        return found

    def _check(self, there: JsonObject, asked: Mapping[str, Any]) -> None:
        """Raise Refusal (409) if the object or its rows have changed since they were read."""
        metadata = there["metadata"]
        self._check_all([(metadata["uid"], metadata.get("namespace", ""), metadata["name"])], asked)

    def _check_all(self, keys: Sequence[Key], asked: Mapping[str, Any]) -> None:
        """Raise Refusal (409) as `_check` does, for the first of many objects, with one query for all."""
        uid, version = asked.get("uid"), str(asked.get("resourceVersion") or "")
        if version and not version.isdecimal():
            raise Refusal(HTTPStatus.BAD_REQUEST, f'metadata.resourceVersion: Invalid value: "{version}"')
        written = self._reader.written(keys) if version else {}
        for key in keys:
            if (uid and uid != key[0]) or (version and written.get(key[0], 0) > int(version)):
                raise self._changed(key[2])

    def _changed(self, name: str) -> Refusal:
        why = "the object has been modified; please apply your changes to the latest version and try again"
        details = {"name": name, "group": self._resource.group, "kind": self._resource.plural}
        message = f'Operation cannot be fulfilled on {self._resource.qualified} "{name}": {why}'
        return Refusal(HTTPStatus.CONFLICT, message, details)

    def _manifest(self, body: Any, namespace: str, name: str) -> JsonObject:
        """Return the body as a manifest. Raises Refusal (400) for an object of another address."""
        metadata = body.get("metadata") if isinstance(body, Mapping) else None
        if not isinstance(metadata, Mapping):
            raise Refusal(HTTPStatus.BAD_REQUEST, "metadata: Required value: the body must be an object")
        for key, expected in (("apiVersion", self._api_version), ("kind", self._resource.kind)):
            if body.get(key) != expected:
                rule = f'{key}: Invalid value: "{body.get(key)}": this address expects "{expected}"'
                raise Refusal(HTTPStatus.BAD_REQUEST, rule)
        for key, expected in (("namespace", namespace), ("name", name)):
            if expected and metadata.get(key, expected) != expected:
                rule = f'metadata.{key}: Invalid value: "{metadata[key]}": does not match the address, {expected}'
                raise Refusal(HTTPStatus.BAD_REQUEST, rule)
        kept = {key: value for key, value in metadata.items() if key not in _OF_THE_SERVER}
        given = {key: value for key, value in (("namespace", namespace), ("name", name)) if value}
        found = {**{key: value for key, value in body.items() if key != "status"}, "metadata": {**kept, **given}}
        return without_generated_selector(found, metadata.get("uid", "")) if self._resource.model is Job else found
