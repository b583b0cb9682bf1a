"""The fields of an object that each client manages, stored for server-side apply and for `kubectl apply`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from accounts.models import Cluster, ManagedFields
from accounts.services.object_status import timestamp
from scheduling.manifest.applied_fields import fields_of
from scheduling.manifest.metadata import LAST_APPLIED

ANNOTATION: Final = ""
"""The manager of the row that keeps the annotation of `kubectl apply`: no client has this name."""


@dataclass(frozen=True, slots=True)
class ManagedObject:
    """The object whose fields are managed."""

    cluster: Cluster
    kind: str
    namespace: str
    name: str
    uid: UUID


def managers_of(uids: Iterable[UUID]) -> dict[UUID, dict[str, ManagedFields]]:
    """Return the rows of objects: uid -> manager -> row. One query."""
    found: dict[UUID, dict[str, ManagedFields]] = defaultdict(dict)
    for row in ManagedFields.objects.filter(uid__in=list(uids)).order_by("applied_at", "pk"):
        found[row.uid][row.manager] = row
    return found


def keep_applied(
    managed: ManagedObject, manager: str, api_version: str, applied: Mapping[str, Any], seen: Mapping[str, Any]
) -> None:
    """Replace the fields that a manager has applied. With no fields the manager is forgotten.

    `seen` are the fields that the object showed afterwards.
    """
    rows = ManagedFields.objects.filter(uid=managed.uid, manager=manager)
    if not applied:
        rows.delete()
        return
    _keep(managed, manager, {"api_version": api_version, "applied": dict(applied), "seen": dict(seen)})


def keep_last_applied(managed: ManagedObject, api_version: str, text: str) -> None:
    """Store kubectl's annotation, or delete it if it is empty."""
    if text:
        _keep(managed, ANNOTATION, {"api_version": api_version, "last_applied": text})
    else:
        ManagedFields.objects.filter(uid=managed.uid, manager=ANNOTATION).delete()


def forget_managers(*uids: UUID) -> None:
    """Delete the managers of deleted objects."""
    ManagedFields.objects.filter(uid__in=uids).delete()


def with_managers(metadata: Mapping[str, Any], rows: Mapping[str, ManagedFields]) -> dict[str, Any]:
    """Return an object's metadata with `managedFields` and with kubectl's annotation."""
    found = dict(metadata)
    kubectl = rows.get(ANNOTATION)
    if kubectl is not None:
        found["annotations"] = {**found.get("annotations", {}), LAST_APPLIED: kubectl.last_applied}
    entries = [_entry(row) for row in rows.values() if row.applied]
    return {**found, "managedFields": entries} if entries else found


def _keep(managed: ManagedObject, manager: str, values: dict[str, Any]) -> None:
    identity = {"cluster": managed.cluster, "kind": managed.kind, "namespace": managed.namespace, "name": managed.name}
    ManagedFields.objects.update_or_create(
        uid=managed.uid, manager=manager, defaults={**identity, **values, "applied_at": timezone.now()}
    )


def _entry(row: ManagedFields) -> dict[str, Any]:
    return {
        "manager": row.manager,
        "operation": "Apply",
        "apiVersion": row.api_version,
        "time": timestamp(row.applied_at),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields_of(row.applied),
    }
