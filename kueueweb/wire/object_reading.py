"""Reads objects for a user: REST's rows, in the version that is asked for, page by page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import orjson
from django.db.models import F, Q, QuerySet, Value

from accounts.models import Cluster, ManagedFields
from accounts.services.access import Access
from accounts.services.managed_fields import managers_of, with_managers
from accounts.services.reach import Reach
from clusters.webhook.conversion import convert
from kueueweb.wire.object_selectors import equalities, selected
from kueueweb.wire.refusals import Refusal, expired
from kueueweb.wire.resources import JsonObject, Resource
from kueueweb.wire.versions import Horizon, computed_statuses, horizon, written_by
from queues.services.visibility import Reader

_MAX_ID: Final = 2**63
COMPUTED: Final = frozenset({"ClusterQueue", "Cohort", "LocalQueue"})
"""Their status is computed from many rows, so that no row's version shows a change of it."""


Key = tuple[str, str, str]
"""The uid, the namespace and the name of an object."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a request is about."""

    namespace: str = ""
    name: str = ""
    labels: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Objects of a list. `version` is that of its first page, so that a watch from it misses nothing."""

    items: list[JsonObject]
    version: int
    keys: list[Key]
    following: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """The objects that are new or have changed, in the order of their versions, and the keys of all."""

    cursor: int
    items: list[JsonObject]
    keys: list[Key]


def version_of(item: JsonObject) -> int:
    """Return the version of an object as a number."""
    return int(item["metadata"]["resourceVersion"])


class ObjectReader:
    """Reads the objects of a resource that a user may see in a cluster."""

    def __init__(self, reach: Reach, resource: Resource, version: str) -> None:
        self._reach = reach
        [self._cluster] = reach.clusters
        self._access = reach.access(self._cluster.pk)
        self._resource = resource
        self._version = version

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def access(self) -> Access:
        return self._access

    def rows(self, selection: Selection) -> QuerySet[Any]:
        """Return the visible rows that the selection names, each with `written_by`."""
        found = self._resource.rows(self._reach)
        if selection.namespace:
            found = found.filter(namespace=selection.namespace)
        if selection.name:
            found = found.filter(name=selection.name)
        found = selected(found, self._resource, selection.labels, selection.fields)
        if self._resource.narrowed is not None:
            named = {"metadata.namespace": selection.namespace, "metadata.name": selection.name}
            wanted = {**equalities(selection.fields), **{path: value for path, value in named.items() if value}}
            found = self._resource.narrowed(found, self._cluster, wanted)
        annotated: QuerySet[Any] = found.annotate(written_by=written_by(found.model))
        return annotated

    def page(self, selection: Selection, limit: int = 0, token: str = "") -> Page:
        """Return a page of objects in order of their names. Raises Refusal (410) for a token that kueueweb did not
        issue."""
        now = horizon()
        version = now.version
        rows = self.rows(selection)
        if token:
            version, after = _read_token(token)
            rows = rows.filter(self._behind(after))
        rows = rows.order_by(*self._resource.ordering)
        found = list(rows[: limit + 1] if limit else rows)
        following = ""
        if limit and len(found) > limit:
            del found[limit:]
            last = found[-1]
            following = _token(version, [getattr(last, column) for column in self._resource.ordering])
        return Page(self.objects(found, now), version, [self._key(row) for row in found], following)

    def known(self, selection: Selection, of: Iterable[Key] | None = None) -> list[Key]:
        """Return the keys of the objects that the selection names now; with `of`, only of these."""
        rows = self.rows(selection)
        return self._light(self._keys(rows if of is None else rows.filter(self._of(of))))

    def changes(self, selection: Selection, cursor: int) -> Changes:
        """Return the objects whose version is above the cursor, and the keys of all objects that the selection
        names."""
        now = horizon()
        rows = self.rows(selection)
        if self._resource.kind in COMPUTED:
            found = list(rows)
            keys = [self._key(row) for row in found]
            items = [item for item in self.objects(found, now) if version_of(item) > cursor]
        else:
            light = list(self._keys(rows))
            keys = self._light(light)
            changed = [row[0] for row in light if now.version_of(row[4]) > cursor]
            items = self.objects(list(rows.filter(pk__in=changed)), now) if changed else []
        return Changes(now.version, sorted(items, key=version_of), keys)

    def _keys(self, rows: QuerySet[Any]) -> QuerySet[Any, tuple[Any, ...]]:
        namespace = F("namespace") if self._resource.namespaced else Value("")
        found = rows.order_by().prefetch_related(None).annotate(where=namespace)
        keys: QuerySet[Any, tuple[Any, ...]] = found.values_list(
            "pk", self._resource.uid, "where", "name", "written_by"
        )
        return keys

    def _key(self, row: Any) -> Key:
        return str(getattr(row, self._resource.uid)), getattr(row, "namespace", ""), row.name

    @staticmethod
    def _light(rows: Iterable[tuple[Any, ...]]) -> list[Key]:
        return [(str(uid), namespace, name) for _, uid, namespace, name, _ in rows]

    def _of(self, keys: Iterable[Key]) -> Q:
        return Q(**{f"{self._resource.uid}__in": [key[0] for key in keys]})

    def written(self, of: Iterable[Key]) -> dict[str, int]:
        """Return the versions of the objects' rows alone, without computed statuses, by the uids that exist."""
        now = horizon()
        rows = self._keys(self.rows(Selection()).filter(self._of(of)))
        return {str(row[1]): now.version_of(row[4]) for row in rows}

    def exists(self, namespace: str, name: str) -> bool:
        """Return whether such an object exists, including one that waits for its deletion."""
        named = {"namespace": namespace, "name": name} if self._resource.namespaced else {"name": name}
        return bool(self._resource.all_rows(self._cluster).filter(**named).exists())

    def one(self, selection: Selection) -> JsonObject | None:
        """Return the object with a name; None if it does not exist, or the user may not see it."""
        now = horizon()
        found = list(self.rows(selection)[:1])
        return self.objects(found, now)[0] if found else None

    def objects(self, rows: Sequence[Any], now: Horizon) -> list[JsonObject]:
        """Return the objects of rows that were read after `now`."""
        if not rows:
            return []
        found = self._resource.objects(self._cluster, rows)
        versions = [now.version_of(row.written_by) for row in rows]
        if self._resource.kind in COMPUTED:
            versions = computed_statuses.versions(list(zip(found, versions, strict=True)))
        reader = Reader(self._access, self._cluster)
        managers = {} if self._resource.is_observed else managers_of(row.uid for row in rows)
        return [
            self._shown(_readable(item, reader), version, managers.get(row.uid, {}))
            for row, item, version in zip(rows, found, versions, strict=True)
        ]

    def _shown(self, item: JsonObject, version: int, managers: Mapping[str, ManagedFields]) -> JsonObject:
        metadata = {**with_managers(item["metadata"], managers), "resourceVersion": str(version)}
        wanted = self._resource.api_version(self._version)
        return convert({**item, "metadata": metadata}, wanted) if item["apiVersion"] != wanted else {
            **item, "metadata": metadata,
        }  # fmt: skip

    def _behind(self, after: Sequence[Any]) -> Q:
        """Return the rows behind a row with these values in the columns of the order. Raises Refusal (410) for values
        that these columns cannot have."""
        columns = self._resource.ordering
        if len(after) != len(columns):
            raise _foreign_token()
        found, equal = Q(), Q()
        for column, value in zip(columns, after, strict=True):
            kind = int if column == "id" else str
            if not isinstance(value, kind) or isinstance(value, bool) or "\0" in str(value):
                raise _foreign_token()
            if isinstance(value, int) and not 0 <= value < _MAX_ID:
                raise _foreign_token()
            found |= equal & Q(**{f"{column}__gt": value})
            equal &= Q(**{column: value})
        return found


def _readable(item: JsonObject, reader: Reader) -> JsonObject:
    """Return the object without names that the reader may not see."""
    if "message" in item:  # an event
        return {**item, "message": reader.message(item["message"])}
    return reader.manifest(item)


def _token(version: int, last: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, last])).decode()


def _read_token(token: str) -> tuple[int, list[Any]]:
    try:
        version, last = orjson.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (ValueError, TypeError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "continue key is not valid: list again without it") from None
    if not (isinstance(version, int) and isinstance(last, list)):
        raise _foreign_token()
    return version, last


def _foreign_token() -> Refusal:
    return expired("the continue key belongs to another server: list again without it")
