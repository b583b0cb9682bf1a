"""The state after a batch of lists and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent


@dataclass(slots=True)
class Present:
    """Objects by key: the new or changed ones, and the deleted ones. `listed`: these are all objects of the kind."""

    objects: dict[str, JsonObject] = field(default_factory=dict)
    gone: dict[str, JsonObject] = field(default_factory=dict)
    listed: bool = False


def present(items: Sequence[Listing | WatchEvent], key: Callable[[JsonObject], str]) -> Present:
    """Applies lists and changes, in the order in which they came."""
    found = Present()
    for item in items:
        if isinstance(item, Listing):
            found = Present({key(each): each for each in item.items}, listed=True)
        elif item.type == "DELETED":
            found.objects.pop(key(item.object), None)
            found.gone[key(item.object)] = item.object
        else:
            found.objects[key(item.object)] = item.object
            found.gone.pop(key(item.object), None)
    return found


def uid_of(obj: JsonObject) -> str:
    return str(obj["metadata"]["uid"])


def name_key(obj: JsonObject) -> str:
    """`namespace/name`, or the name of an object without a namespace."""
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
