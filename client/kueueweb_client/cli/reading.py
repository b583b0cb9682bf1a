"""Reads the objects of a kind page by page. The server selects them; if it returns whole lists, the client does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kueueweb_client import calls
from kueueweb_client.cells import Row, find
from kueueweb_client.cli.printing import row_object, sorted_by
from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.nouns import EVENTS, PODS, WORKLOADS, Noun, Source
from kueueweb_client.selectors import fields_match, labels_match
from kueueweb_client.types import Object

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_CHUNK: Final = 500
_MAX_NAMES: Final = 100
"""The most names that `workloads/?names=` takes."""
_EXPIRED: Final = 410
_NOT_FOUND: Final = 404
_POLL_SECONDS: Final = 2.0
STATUSES: Final = ("Pending", "QuotaReserved", "Admitted", "Evicted", "Finished")
_WITH_PODS: Final = "QuotaReserved,Admitted,Evicted"
_WIRE_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "Workload": {
        "local_queue": "spec.queueName",
        "cluster_queue": "kueueweb.io/cluster-queue",
        "submitted_by": "kueueweb.io/submitted-by",
        "status": "kueueweb.io/status",
    },
    "LocalQueue": {"cluster_queue": "spec.clusterQueue"},
}
"""REST's filters as field selectors."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a kind that are wanted."""

    namespace: str = ""
    """Empty: all that the user may see."""
    names: Sequence[str] = ()
    labels: str = ""
    fields: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    """REST's filters of workloads: status, cluster_queue, local_queue, submitted_by."""
    of: str = ""
    """For pods and events: workload/NAME, job/NAME or node/NAME."""
    sort_by: str = ""
    chunk: int = _CHUNK
    limit: int = 0

    def fields_of(self, noun: Noun) -> str:
        """Translate REST's filters to the field selector of the wire format."""
        parts = [self.fields] if self.fields else []
        for key, value in self.filters.items():
            if key == "status":  # for several names, print none of them
                parts += [f"kueueweb.io/status!={each}" for each in STATUSES if each not in value.split(",")]
            else:
                parts.append(f"{_WIRE_FIELDS[noun.kind][key]}={value}")
        return ",".join(parts)


class Reader:
    """Reads objects of a kind, as rows for its table or as manifests."""

    def __init__(self, client: Client, noun: Noun, selection: Selection, *, for_table: bool) -> None:
        self._client = client
        self._noun = noun
        self._selection = selection
        self._as_rows = for_table and noun.of_rows
        self.version = ""
        """The version of the list that was read, from which it can be watched."""

    def pages(self) -> Iterator[list[Row]]:
        """Yield the pages of the list as they are read, up to the limit."""
        left = self._selection.limit
        for page in self._named() if self._selection.names else self._sorted():
            found = page[:left] if left else page
            yield found
            if left:
                left -= len(found)
                if not left:
                    return

    def _named(self) -> Iterator[list[Row]]:
        for name in self._selection.names:
            yield [self._one(name)]

    def _one(self, name: str) -> Row:
        noun, where = self._noun, (self._selection.namespace,) if self._noun.namespaced else ()
        if noun in (PODS, EVENTS):
            found = [row for page in self._rows() for row in page if row.get("name") == name]
            if not found:
                raise ApiError(_NOT_FOUND, "NotFound", f'{noun.plural} "{name}" not found')
            return found[0] if self._as_rows else row_object(noun, found[0])
        if self._as_rows or noun.source is Source.ROWS:
            row = self._client.read(noun.path, *where, name)
            return row if self._as_rows else row_object(noun, row)
        if noun.source is Source.MANIFESTS:
            return self._client.send(calls.manifest_objects(noun.kind.lower(), *where, name))
        namespace = where[0] if where else ""
        call = calls.objects(noun.address, noun.plural, namespace=namespace, name=name)
        return _applicable(self._client.send(call))

    def _sorted(self) -> Iterator[list[Row]]:
        """Yield the pages, or one of all in the order of a field: the server has no such order."""
        if not self._selection.sort_by:
            yield from self._rows() if self._as_rows else self._objects()
            return
        found = sorted_by(self._selection.sort_by, (item for page in self._objects() for item in page))
        if not self._as_rows:
            yield found
        elif self._noun is WORKLOADS:
            yield from self._rows_of(found)
        else:
            places = {find(item, "metadata.name"): place for place, item in enumerate(found)}
            rows = [row for page in self._rows() for row in page]
            yield sorted(rows, key=lambda row: places.get(row.get("name") or row.get("uuid"), len(places)))

    def _objects(self) -> Iterator[list[Row]]:
        """Yield the manifests, page by page."""
        noun, selection = self._noun, self._selection
        if noun.source is Source.WIRE:
            yield from self._wire_pages()
            return
        if noun.source is Source.ROWS:
            chosen = ([row for row in page if self._is_chosen(row)] for page in self._listed())
            found: Iterable[list[Row]] = ([row_object(noun, row) for row in page] for page in chosen)
        else:
            found = [self._client.send(calls.manifest_objects(noun.kind.lower()))["items"]]
        has_labels, has_fields = labels_match(selection.labels), fields_match(selection.fields)
        for page in found:
            yield [item for item in page if self._is_here(item) and has_labels(item) and has_fields(item)]

    def _is_here(self, item: Row) -> bool:
        return self._selection.namespace in ("", find(item, "metadata.namespace"))

    def _wire_pages(self) -> Iterator[list[Row]]:
        asked = {**self.wire_selection, "limit": self._size or None}
        for page in self._client.object_pages(self._noun.address, self._noun.plural, **asked):
            self.version = self.version or page["metadata"]["resourceVersion"]
            yield [_applicable(item) for item in page["items"]]

    @property
    def _size(self) -> int:
        """The size of a page: no larger than the limit."""
        chunk, limit = self._selection.chunk, self._selection.limit
        return min(chunk, limit) if limit and chunk else limit or chunk

    @property
    def wire_selection(self) -> dict[str, Any]:
        """The selection in the parameters of the wire format."""
        return {
            "namespace": self._selection.namespace if self._noun.namespaced else "",
            "labelSelector": self._selection.labels or None,
            "fieldSelector": self._selection.fields_of(self._noun) or None,
        }

    def _rows(self) -> Iterator[list[Row]]:
        """REST's rows, page by page."""
        selection = self._selection
        if self._noun is WORKLOADS and selection.fields and not self._client.is_past:
            for page in self._wire_pages():
                yield from self._rows_of(page)
            return
        if self._noun is WORKLOADS:
            given = {"namespace": selection.namespace, "label": selection.labels, **selection.filters}
            found = {key: value for key, value in given.items() if value}
            has_fields = fields_match(selection.fields)
            size = min(self._size or calls.MAX_PAGE, calls.MAX_PAGE)
            for page in self._client.pages("workloads", limit=size, **found):
                yield [row for row in page if has_fields(row_object(self._noun, row))] if selection.fields else page
            return
        has_labels, has_fields = labels_match(selection.labels), fields_match(selection.fields)
        for page in self._listed():
            yield [
                row
                for row in page
                if self._is_chosen(row) and has_labels(found := row_object(self._noun, row)) and has_fields(found)
            ]

    def _is_chosen(self, row: Row) -> bool:
        """Return whether a row is of the namespace, and matches REST's filters: a list without selectors has all."""
        where = self._selection.namespace if self._noun.namespaced else ""
        return where in ("", row.get("namespace")) and all(
            row.get(key) == value for key, value in self._selection.filters.items()
        )

    def _listed(self) -> Iterator[list[Row]]:
        """REST's rows of a kind without selectors."""
        if self._noun is PODS:
            yield from self._pods()
        elif self._noun is EVENTS:
            yield from self._events()
        else:
            yield from self._client.pages(self._noun.path, limit=min(self._size or calls.MAX_PAGE, calls.MAX_PAGE))

    def _rows_of(self, items: Iterable[Row]) -> Iterator[list[Row]]:
        """REST's rows of workloads in the order of their manifests."""
        for some in _batches(items, _MAX_NAMES):
            yield self.rows_named(
                [f"{find(item, 'metadata.namespace')}/{find(item, 'metadata.name')}" for item in some]
            )

    def rows_named(self, keys: Sequence[str]) -> list[Row]:
        """Return REST's rows of workloads, named as namespace/name, in this order; without workloads that no longer
        exist."""
        found = {
            f"{row['namespace']}/{row['name']}": row for row in self._client.rows("workloads", names=",".join(keys))
        }
        return [found[key] for key in keys if key in found]

    def _pods(self) -> Iterator[list[Row]]:
        kind, _, name = self._selection.of.partition("/")
        if kind == "node":
            for page in self._client.pages("nodes", name, "pods"):
                found = [row for row in page if self._selection.namespace in ("", row["namespace"])]
                yield [{"restarts": None, "message": "", "node": name, **row} for row in found]
            return
        for workload in self._workloads(kind, name):
            keys = {"namespace": workload["namespace"], "workload": workload["name"]}
            yield [{**row, **keys} for row in self._client.pods(workload["namespace"], workload["name"])]

    def _workloads(self, kind: str, name: str) -> Iterator[Row]:
        """Yield the workloads of `--for`; without it all that may have pods."""
        namespace = self._selection.namespace
        if kind == "workload":
            yield self._client.workload(namespace, name)
        elif kind:
            yield self._client.workload(namespace, workload_of_job(self._client, namespace, kind, name))
        else:
            where = {"namespace": namespace} if namespace else {}
            yield from self._client.rows("workloads", status=_WITH_PODS, **where)

    def _events(self) -> Iterator[list[Row]]:
        kind, _, name = self._selection.of.partition("/")
        if not kind:
            where = {"namespace": self._selection.namespace} if self._selection.namespace else {}
            for page in self._client.pages("decisions", limit=self._size or calls.MAX_PAGE, **where):
                yield [_decision_event(row) for row in page]
            return
        for workload in self._workloads(kind, name):
            rows = self._client.events(workload["namespace"], workload["name"])
            keys = {"namespace": workload["namespace"], "object": f"workload/{workload['name']}"}
            yield [{**row, **keys} for row in rows]


def _decision_event(row: Row) -> Row:
    """Return a decision of the scheduler as an event."""
    return {
        "id": row["id"],
        "namespace": row["namespace"],
        "at": row["decided_at"],
        "type": "Normal",
        "reason": row["action"],
        "object": f"workload/{row['workload_name']}",
        "message": ": ".join(part for part in (row["reason"], row["message"]) if part),
        "actor": "scheduler",
    }


def _applicable(item: Object) -> Object:
    """Return the object with REST's version, which an apply compares: the wire format numbers by transactions."""
    metadata = item["metadata"]
    return {**item, "metadata": {**metadata, "resourceVersion": str(metadata["generation"])}}


def workload_of_job(client: Client, namespace: str, kind: str, job: str) -> str:
    """Return the name of the workload of a job. Raises `ApiError` (404) if there is none."""
    for row in client.workloads(namespace=namespace, search=job):
        owner = row.get("owner") or {}
        if owner.get("name") == job and (not kind or owner.get("kind", "").lower() == kind.lower()):
            return row["name"]
    raise ApiError(_NOT_FOUND, "NotFound", f'{kind or "job"}/{job} has no workload in namespace "{namespace}"')


def changes(client: Client, noun: Noun, selection: Selection, *, for_table: bool) -> Iterator[list[Row]]:
    """Yield the list, and then the objects as they change, without end."""
    if noun.source is not Source.WIRE:
        yield from _polled(client, noun, selection, for_table=for_table)
        return
    shown: dict[str, str] = {}
    while True:
        reader = Reader(client, noun, selection, for_table=False)
        seen: dict[str, str] = {}
        for page in reader.pages():
            changed = [item for item in page if shown.get(_key(item)) != repr(item)]
            seen |= {_key(item): repr(item) for item in page}
            yield from _formed(reader, noun, changed, for_table=for_table)
        shown = seen
        try:
            for kind, item in client.watch_objects(noun.address, noun.plural, reader.version, **reader.wire_selection):
                if kind == "DELETED":
                    shown.pop(_key(item), None)
                    yield [_deleted(noun, item, for_table=for_table)]
                else:
                    shown[_key(item)] = repr(_applicable(item))
                    yield from _formed(reader, noun, [_applicable(item)], for_table=for_table)
        except ApiError as error:
            if error.status != _EXPIRED:
                raise


def _batches(items: Iterable[Row], size: int) -> Iterator[list[Row]]:
    rest = iter(items)
    while found := list(islice(rest, size)):
        yield found


def _formed(reader: Reader, noun: Noun, items: list[Row], *, for_table: bool) -> Iterator[list[Row]]:
    if not (for_table and noun.of_rows):
        yield items
        return
    for some in _batches(items, _MAX_NAMES):
        yield reader.rows_named([_key(item) for item in some])


def _key(item: Row) -> str:
    return f"{find(item, 'metadata.namespace') or ''}/{find(item, 'metadata.name')}".lstrip("/")


def _deleted(noun: Noun, item: Object, *, for_table: bool) -> Row:
    if not (for_table and noun.of_rows):
        return item
    metadata = item["metadata"]
    made = metadata.get("creationTimestamp") or ""
    return {"name": metadata["name"], "namespace": metadata.get("namespace", ""), "status": "Deleted",
            "created_at": made, "pod_sets": []}  # fmt: skip


def _polled(client: Client, noun: Noun, selection: Selection, *, for_table: bool) -> Iterator[list[Row]]:
    """Yield the objects of a kind that cannot be watched: asked for again every two seconds."""
    seen: dict[str, str] = {}
    while True:
        found = [item for page in Reader(client, noun, selection, for_table=for_table).pages() for item in page]
        said = {_identity(item): repr(item) for item in found}
        yield [item for item in found if seen.get(_identity(item)) != said[_identity(item)]]
        seen = said
        time.sleep(_POLL_SECONDS)


def _identity(item: Row) -> str:
    named = item.get("metadata") or item
    return f"{named.get('namespace', '')}/{named.get('name') or item.get('uuid') or item.get('id')}"


def check_filters(noun: Noun, filters: Mapping[str, str], of: str) -> None:
    """Raise `ClientError` for a filter that the kind does not have."""
    if unknown := filters.keys() - _WIRE_FIELDS.get(noun.kind, {}).keys():
        words = ", ".join(sorted(f"--{name.replace('_', '')}" for name in unknown))
        raise ClientError(f"Forbidden: {words} does not filter {noun.plural}")
    if of and noun not in (PODS, EVENTS):
        raise ClientError(f"Forbidden: --for does not filter {noun.plural}, only pods and events")
