"""The objects of a cluster, in memory: the source of the rules' look-ups, and the target of a controller's writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.manifest import JsonObject, copied, name_of, namespace_of

Key = tuple[str, str, str]
"""Kind, namespace, name."""


class Objects(Protocol):
    """The other objects of the cluster, for rules that only read."""

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Return the object; None if it does not exist. The namespace is empty for kinds without namespaces."""

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        """Return all objects of a kind in a namespace (all namespaces without one), by name."""


class ObjectStore:
    """Objects by kind, namespace and name, with the API server's finalizers. Those handed out are copies.

    * objects: stored without a copy. The store does not change them, and neither may the caller.
    """

    def __init__(self, objects: Iterable[JsonObject] = ()) -> None:
        self._objects: dict[Key, JsonObject] = {_key(obj): obj for obj in objects if not _is_gone(obj)}
        self.writes = 0

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        found = self._objects.get((kind, namespace, name))
        return copied(found) if found is not None else None

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        keys = sorted(key for key in self._objects if key[0] == kind and namespace in ("", key[1]))
        return [copied(self._objects[key]) for key in keys]

    def present(self, kind: str) -> Sequence[JsonObject]:
        """Return all objects of a kind, by name. These are the objects themselves: the caller may read them and must
        not change them."""
        return [self._objects[key] for key in sorted(key for key in self._objects if key[0] == kind)]

    def kinds(self) -> Iterator[Key]:
        yield from sorted(self._objects)

    def create(self, obj: JsonObject) -> None:
        """Create an object. Raises JobError if the name is taken."""
        if _key(obj) in self._objects:
            raise JobError(f"{obj['kind']} {name_of(obj)} already exists")
        self.write(obj)

    def write(self, obj: JsonObject) -> None:
        """Create or replace an object; an object that is being deleted disappears with its last finalizer."""
        if _is_gone(obj):
            self._remove(_key(obj))
        elif self._objects.get(_key(obj)) != obj:
            self._objects[_key(obj)] = copied(obj)
            self.writes += 1

    def delete(self, obj: JsonObject, now: str) -> None:
        """Deletes an object, or marks it for deletion if it has a finalizer."""
        found = self._objects.get(_key(obj))
        if found is None:
            return
        if not found["metadata"].get("finalizers"):
            self._remove(_key(obj))
        elif not found["metadata"].get("deletionTimestamp"):
            self._objects[_key(obj)] = {**found, "metadata": {**found["metadata"], "deletionTimestamp": now}}
            self.writes += 1

    def _remove(self, key: Key) -> None:
        if self._objects.pop(key, None) is not None:
            self.writes += 1


def _is_gone(obj: JsonObject) -> bool:
    """Return whether the object is being deleted and no finalizer keeps it."""
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")


def _key(obj: JsonObject) -> Key:
    return str(obj["kind"]), namespace_of(obj), name_of(obj)


def by_name(objects: Iterable[JsonObject]) -> dict[str, Any]:
    return {name_of(obj): obj for obj in objects}
