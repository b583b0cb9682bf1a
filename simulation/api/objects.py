"""The common fields of Kubernetes objects, read from their JSON form."""

from __future__ import annotations

import hashlib
from typing import Any

from scheduling.model.times import rfc3339

JsonObject = dict[str, Any]

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def timestamp(seconds: float) -> str:
    """Seconds since the epoch as a metav1.Time ("2026-11-20T05:36:00Z"), whole seconds as Kubernetes keeps them."""
    return rfc3339(int(seconds))


def name_of(item: JsonObject) -> str:
    return str(item["metadata"]["name"])


def namespace_of(item: JsonObject) -> str:
    """Return the namespace, or "" for cluster-scoped objects."""
    return str(item["metadata"].get("namespace", ""))


def uid_of(item: JsonObject) -> str:
    return str(item["metadata"].get("uid", ""))


def labels_of(item: JsonObject) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations_of(item: JsonObject) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def is_deleting(item: JsonObject) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def controller_of(item: JsonObject) -> JsonObject | None:
    """Return the owner reference whose `controller` is true, if any."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def owner_reference(owner: JsonObject) -> JsonObject:
    """Return the controller reference that a controller puts on what it creates."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(item: JsonObject, kind: str) -> JsonObject | None:
    """Return the status condition of that type, if present."""
    for entry in (item.get("status") or {}).get("conditions") or ():
        if entry.get("type") == kind:
            return dict(entry)
    return None


def condition_is_true(item: JsonObject, kind: str) -> bool:
    entry = condition(item, kind)
    return entry is not None and entry.get("status") == "True"


def with_condition(conditions: list[JsonObject], entry: JsonObject) -> list[JsonObject]:
    """Return the list with this condition set; `lastTransitionTime` changes only with the status."""
    result = []
    found = False
    for old in conditions:
        if old.get("type") != entry["type"]:
            result.append(old)
            continue
        found = True
        kept = entry
        if old.get("status") == entry["status"] and "lastTransitionTime" in old:
            kept = {**entry, "lastTransitionTime": old["lastTransitionTime"]}
        result.append(kept)
    return result if found else [*result, entry]


def draw(seed: str, *parts: str) -> float:
    """Return a number in [0, 1) that depends only on its arguments, so that a restart draws the same number again."""
    digest = hashlib.sha256("\0".join((seed, *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def random_suffix(seed: str, *parts: str) -> str:
    """Five characters as Kubernetes appends to generated names, drawn from the arguments."""
    digest = hashlib.sha256("\0".join((seed, *parts)).encode()).digest()
    return "".join(_NAME_ALPHABET[byte % len(_NAME_ALPHABET)] for byte in digest[:5])
