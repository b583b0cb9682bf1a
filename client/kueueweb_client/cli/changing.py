"""Reads an object, changes it and writes it back, so that no edit of another user in between is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kueueweb_client import calls
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.nouns import Noun, Source
from kueueweb_client.types import Object

if TYPE_CHECKING:
    from kueueweb_client.client import Client

CONFLICT: Final = 409
_TRIES: Final = 5


def read_object(asked: Client, noun: Noun, namespace: str, name: str) -> Object:
    """Read an object with the version that a write compares. Raises `ClientError` for a kind that cannot be written."""
    if noun.source is Source.ROWS:
        raise ClientError(f"Forbidden: a {noun.kind} has no manifest to change")
    if noun.source is Source.WIRE:
        return asked.send(calls.objects(noun.address, noun.plural, namespace=namespace, name=name))
    return asked.send(calls.manifest_objects(noun.kind.lower(), *filter(None, (namespace, name))))


def write_object(asked: Client, noun: Noun, changed: Mapping[str, Any], *, dry_run: bool = False) -> Object:
    """Replace an object. Raises `ApiError` with status 409 if it has changed since it was read."""
    content = {key: value for key, value in changed.items() if key != "status"}
    metadata = content.get("metadata") or {}
    if noun.source is Source.WIRE:
        where = {"namespace": metadata.get("namespace", "") if noun.namespaced else "", "name": metadata["name"]}
        return asked.send(calls.replace_object(noun.address, noun.plural, content, dry_run=dry_run, **where))
    asked.apply(to_yaml(content), dry_run=dry_run or None)
    return dict(changed)


def change_object(
    asked: Client,
    noun: Noun,
    namespace: str,
    name: str,
    change: Callable[[Object], Object],
    *,
    dry_run: bool = False,
) -> bool:
    """Change an object, and retry if another user changes it meanwhile. Return whether it was changed."""
    for attempt in range(_TRIES):
        found = read_object(asked, noun, namespace, name)
        changed = change(found)
        if changed == found:
            return False
        try:
            write_object(asked, noun, changed, dry_run=dry_run)
        except ApiError as error:
            if error.status != CONFLICT or attempt == _TRIES - 1:
                raise
        else:
            return True
    raise AssertionError("the last try returns or raises")


def merged(found: Any, patch: Any) -> Any:
    """Merge a JSON merge patch (RFC 7396) into a value."""
    if not isinstance(patch, Mapping):
        return patch
    changed = dict(found) if isinstance(found, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            changed.pop(key, None)
        else:
            changed[key] = merged(changed.get(key), value)
    return changed
