"""Watches in Kubernetes' wire format, as far as Django answers them; kueueweb.web.wire_watching waits.

A watch begins at the version of a list. Redis keeps the keys of the list under that version, so that any web process
finds the objects that were deleted since; after five minutes the version is too old (410), and clients list again. When
a watch ends, its reported keys are stored under the last version that it has sent.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

import orjson
from django.core.cache import cache
from django.db import close_old_connections, connection
from django.db.models import Count, Max
from django.http import HttpResponse
from django.utils import timezone

from foundation.serving.replaced import ReplacedResponse
from kueueweb.wire import tables
from kueueweb.wire.object_reading import COMPUTED, Changes, Key, ObjectReader, Selection
from kueueweb.wire.refusals import Refusal, expired, status
from kueueweb.wire.resources import RESOURCES, JsonObject, Resource
from kueueweb.wire.versions import written_by
from queues.models import Workload, WorkloadEvent

WATCH_HEADER: Final = "X-Kueueweb-Wire-Watch"
"""The header of an answer that the web process replaces by a stream."""
CURSOR_HEADER: Final = "X-Kueueweb-Wire-Cursor"
"""The header of the web process's own requests: the changes since then are asked for."""
START: Final = "start"
MAX_WATCH_SECONDS: Final = 3600
_WATCH_SECONDS: Final = 1800
_REMEMBERED_SECONDS: Final = 300
_MAX_LISTS: Final = 100
_MAX_BYTES: Final = 8 << 20
"""The most that is remembered for one user, but for a longer list, which is remembered alone."""
_BY_KIND: Final[Mapping[str, Resource]] = {resource.kind: resource for resource in RESOURCES}


@dataclass(frozen=True, slots=True)
class WireWatch:
    """A watch that Django has permitted. `asked` identifies the user and the question."""

    user: int
    asked: str
    cluster: int
    kind: str
    api_version: str
    version: str
    seconds: int
    bookmarks: bool
    initial_events: bool
    form: str
    """Table, PartialObjectMetadata ... or empty."""

    def encoded(self) -> str:
        """Return the watch as text for a header."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def decoded(cls, text: str | bytes) -> Self:
        """Parse the text of `encoded`."""
        return cls(**orjson.loads(text))

    @property
    def is_computed(self) -> bool:
        """Whether statuses follow from numbers that are published a moment after the rows have changed."""
        return self.kind in COMPUTED

    @property
    def starts_empty(self) -> bool:
        """Whether it begins with all existing objects."""
        return self.initial_events or self.version in ("", "0")


def question(user: int, reader: ObjectReader, resource: Resource, selection: Selection) -> str:
    """Return a key that is the same for a list and a watch of a user if both are about the same objects."""
    parts = (user, reader.cluster.pk, resource.kind, *asdict(selection).values())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def remember(user: int, asked: str, version: str, cursor: int, keys: Iterable[Key]) -> None:
    """Store the keys that a client has at a version, and the position from which changes are missing. The oldest
    entries of a user are dropped first."""
    content = base64.b64encode(zlib.compress(orjson.dumps([cursor, list(keys)]), 1)).decode()
    name, of_user = f"wire-{asked}-{version}", f"wire-of-{user}"
    kept: dict[str, int] = {each: size for each, size in (cache.get(of_user) or {}).items() if each != name}
    surplus = []
    while kept and (len(kept) >= _MAX_LISTS or sum(kept.values()) + len(content) > _MAX_BYTES):
        surplus.append(next(iter(kept)))
        del kept[surplus[-1]]
    cache.delete_many(surplus)
    cache.set(name, content, _REMEMBERED_SECONDS)
    cache.set(of_user, {**kept, name: len(content)}, _REMEMBERED_SECONDS)


def recall(asked: str, version: str) -> tuple[int, list[Key]]:
    """Return the stored position and keys. Raises Refusal (410) for a version that is too old, or that belongs to
    another list."""
    content = cache.get(f"wire-{asked}-{version}")
    if content is None:
        raise expired(f"too old resource version: {version}: list again")
    cursor, keys = orjson.loads(zlib.decompress(base64.b64decode(content)))
    return cursor, [(uid, namespace, name) for uid, namespace, name in keys]


def wait_for(watch: WireWatch) -> HttpResponse:
    """Return an answer that the web process replaces; without it, one that says so."""
    body = orjson.dumps(status(503, "This process answers at once and never waits: list instead of watching."))
    headers = {WATCH_HEADER: watch.encoded()}
    return ReplacedResponse(body, status=503, content_type="application/json", headers=headers)


def seconds_of(text: str) -> int:
    """Return the length of a watch, from the parameter timeoutSeconds. Raises Refusal (400)."""
    if not text:
        return _WATCH_SECONDS
    if not (text.isascii() and text.isdigit()):
        raise Refusal(400, f'timeoutSeconds: Invalid value: "{text}": must be a whole number')
    return min(int(text[:9]) or _WATCH_SECONDS, MAX_WATCH_SECONDS)


def changes_since(reader: ObjectReader, selection: Selection, watch: WireWatch, cursor: str) -> dict[str, Any]:
    """Answer the web process: the changes since a cursor, and at the start the keys that the client knows."""
    before: Sequence[Key] = ()
    if cursor != START:
        since = int(cursor)
    elif watch.starts_empty:
        since = -1
    else:
        since, before = recall(watch.asked, watch.version)
    found: Changes = reader.changes(selection, since)
    resource = _BY_KIND[watch.kind]
    version = watch.api_version.rpartition("/")[2]
    objects = [
        {
            "uid": item["metadata"]["uid"],
            "version": item["metadata"]["resourceVersion"],
            "object": _formed(resource, version, item, watch.form),
        }
        for item in found.items
    ]
    return {"cursor": found.cursor, "before": before, "keys": found.keys, "objects": objects}


def _formed(resource: Resource, version: str, item: JsonObject, form: str) -> JsonObject:
    if form != "Table":
        return tables.partial(item) if form else item
    metadata = {"resourceVersion": item["metadata"]["resourceVersion"]}
    return tables.table(resource.columns(version), [item], metadata, timezone.now())


def read_markers(watched: list[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """Return a text for each cluster and kind that differs after every change of the kind's rows. The thread that
    calls it keeps its connection while watches last."""
    close_old_connections()
    if not watched:
        connection.close()
    return {(cluster, kind): _marker(cluster, kind) for cluster, kind in watched}


def _marker(cluster: int, kind: str) -> str:
    """Computed statuses follow from workloads."""
    models: list[type[Any]] = [_BY_KIND[kind].model, *([Workload] if kind in COMPUTED else [])]
    found = []
    for model in models:
        rows = model.objects.filter(**{_BY_KIND[kind].cluster_path if model is not Workload else "cluster": cluster})
        if model is WorkloadEvent:  # events are only added, and an index has the newest
            found.append({"last": rows.order_by("-id").values_list("id", flat=True).first()})
            continue
        found.append(rows.aggregate(count=Count("pk"), last=Max(written_by(model))))
    return repr([sorted(each.items()) for each in found])
