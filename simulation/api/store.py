"""The objects of the simulated cluster and the history that watches read, as etcd and the watch cache hold them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulation.api.errors import expired
from simulation.api.objects import JsonObject, name_of, namespace_of

ObjectKey = tuple[str, str]
"""(namespace, name); the namespace is "" for cluster-scoped objects."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write: what the object became, and what it was before."""

    resource_version: int
    type: str
    object: JsonObject
    previous: JsonObject | None


class ObjectStore:
    """Objects by plural and key; one resourceVersion counts all writes.

    A stored object is never changed in place: a write stores another. So readers need no copies, and the history keeps
    what was.

    * first_resource_version: where counting starts. A store that starts empty starts high (see SimulatedCluster), so
      that a resourceVersion of an earlier life is too old rather than wrongly current.
    * history_limit: changes kept per kind; a watch that requests older ones gets 410.
    """

    def __init__(self, first_resource_version: int = 1, history_limit: int = 5_000) -> None:
        self.resource_version = first_resource_version
        self.listeners: list[Callable[[str, Change], None]] = []
        self._objects: dict[str, dict[ObjectKey, JsonObject]] = defaultdict(dict)
        self._order: dict[str, list[ObjectKey]] = defaultdict(list)
        self._owned: dict[str, dict[tuple[str, ObjectKey], None]] = defaultdict(dict)
        self._history: dict[str, deque[Change]] = defaultdict(lambda: deque(maxlen=history_limit))
        self._forgotten: dict[str, int] = defaultdict(lambda: first_resource_version)

    def get(self, plural: str, namespace: str, name: str) -> JsonObject | None:
        return self._objects[plural].get((namespace, name))

    def items(self, plural: str, namespace: str = "", after: ObjectKey | None = None) -> Iterator[JsonObject]:
        """Return objects in order of (namespace, name); "" means all namespaces, `after` only those after that key."""
        objects, order = self._objects[plural], self._order[plural]
        start = bisect_left(order, (namespace, "")) if namespace else 0
        end = bisect_left(order, (namespace + "\0", "")) if namespace else len(order)
        if after is not None:
            start = max(start, bisect_right(order, after))
        for key in order[start:end]:
            yield objects[key]

    def count(self, plural: str) -> int:
        return len(self._objects[plural])

    def owned_by(self, uid: str, plural: str | None = None) -> list[tuple[str, JsonObject]]:
        """Return (plural, object) of all objects with an owner reference to that uid, of one kind or of all."""
        return [
            (kind, self._objects[kind][key])
            for kind, key in list(self._owned.get(uid, ()))
            if plural is None or kind == plural
        ]

    def put(self, plural: str, item: JsonObject) -> JsonObject:
        """Store an object under the next resourceVersion, and return it as stored."""
        key = (namespace_of(item), name_of(item))
        previous = self._objects[plural].get(key)
        stored = self._stamp(item)
        if previous is None:
            insort(self._order[plural], key)
        self._index(plural, key, previous, stored)
        self._objects[plural][key] = stored
        self._record(plural, Change(self.resource_version, "MODIFIED" if previous else "ADDED", stored, previous))
        return stored

    def remove(self, plural: str, namespace: str, name: str) -> JsonObject:
        """Remove an object; its last state gets its own resourceVersion. Raises KeyError if it is absent."""
        key = (namespace, name)
        previous = self._objects[plural].pop(key)
        self._order[plural].remove(key)
        last = self._stamp(previous)
        self._index(plural, key, previous, None)
        self._record(plural, Change(self.resource_version, "DELETED", last, previous))
        return last

    def changes_since(self, plural: str, resource_version: int) -> list[Change]:
        """Changes newer than that resourceVersion, oldest first. Raises ApiError (410) if some are forgotten."""
        if resource_version < self._forgotten[plural]:
            raise expired(f"too old resource version: {resource_version} ({self._forgotten[plural]})")
        newer = []
        for change in reversed(self._history[plural]):
            if change.resource_version <= resource_version:
                break
            newer.append(change)
        newer.reverse()
        return newer

    def compact(self) -> None:
        """Forget the history, like etcd's compaction: watches from before now get 410."""
        for plural in list(self._objects):
            self._history[plural].clear()
            self._forgotten[plural] = self.resource_version

    def dump(self) -> JsonObject:
        """Return all data that a restart needs."""
        objects = {plural: list(by_key.values()) for plural, by_key in self._objects.items() if by_key}
        return {"resource_version": self.resource_version, "objects": objects}

    def load(self, state: JsonObject) -> None:
        """Load a dump into an empty store; its history begins now."""
        self.resource_version = int(state["resource_version"])
        for plural, objects in state["objects"].items():
            for item in objects:
                key = (namespace_of(item), name_of(item))
                self._objects[plural][key] = item
                insort(self._order[plural], key)
                self._index(plural, key, None, item)
        self._forgotten = defaultdict(lambda: int(state["resource_version"]))

    def _stamp(self, item: JsonObject) -> JsonObject:
        self.resource_version += 1
        return {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.resource_version)}}

    def _index(self, plural: str, key: ObjectKey, previous: JsonObject | None, stored: JsonObject | None) -> None:
        old, new = _owner_uids(previous), _owner_uids(stored)
        for uid in old - new:
            self._owned[uid].pop((plural, key), None)
            if not self._owned[uid]:
                del self._owned[uid]
        for uid in new - old:
            self._owned[uid][plural, key] = None

    def _record(self, plural: str, change: Change) -> None:
        history = self._history[plural]
        if history.maxlen is not None and len(history) == history.maxlen:
            self._forgotten[plural] = history[0].resource_version
        history.append(change)
        for listener in list(self.listeners):
            listener(plural, change)


def _owner_uids(item: JsonObject | None) -> frozenset[str]:
    references = (item["metadata"].get("ownerReferences") or ()) if item else ()
    return frozenset(reference["uid"] for reference in references)
