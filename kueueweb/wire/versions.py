"""Resource versions: numbers of PostgreSQL's transactions, so that every web process gives and understands the same.

An object's version is 2x + 1, x being the transaction that wrote its rows last. A list's is 2n, where every transaction
before n was complete when the list was read: objects newer than the list have a higher version, and so do writes of
transactions that have not ended. Statuses that are computed from the rows of many objects get the number of a
transaction when a process sees them change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

from clusters.served.contents import digest
from queues.models import Job, Workload

_WRAP: Final = 2**32
_MAX_KNOWN: Final = 100_000
"""Maximum number of computed statuses that one process caches."""
_OF_WORKLOADS: Final = """
    greatest(queues_workload.xmin::text::bigint,
        (SELECT max(xmin::text::bigint) FROM queues_podset WHERE workload_id = queues_workload.id))
"""
_OF_JOBS: Final = """
    greatest(queues_job.xmin::text::bigint,
        (SELECT max(greatest(w.xmin::text::bigint, (SELECT max(p.xmin::text::bigint) FROM queues_pod p
            WHERE p.workload_id = w.id))) FROM queues_workload w WHERE w.job_id = queues_job.id))
"""
_SEVERAL_ROWS: Final[Mapping[type[Any], str]] = {Workload: _OF_WORKLOADS, Job: _OF_JOBS}
"""Objects that are made of several rows."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The transactions of one moment: all before `complete` are complete, and none from `following` on has begun."""

    complete: int
    following: int

    @property
    def version(self) -> int:
        """The version of a list that is read now."""
        return 2 * self.complete

    def version_of(self, written_by: int) -> int:
        """Return the version of an object, from the 32 bits that a row keeps of its transaction."""
        # Rows are read after the horizon, so their transaction may be a later one: take the nearest.
        ahead = (written_by - self.following + _WRAP // 2) % _WRAP - _WRAP // 2
        return 2 * (self.following + ahead) + 1


def horizon() -> Horizon:
    """Return the horizon of now. Read it before the rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(now_)::text::bigint, pg_snapshot_xmax(now_)::text::bigint "
            "FROM pg_current_snapshot() AS now_"
        )
        complete, following = cursor.fetchone()
    return Horizon(complete, following)


def written_by(model: type[Any]) -> RawSQL:
    """Return the transaction that wrote an object's rows last, in 32 bits."""
    sql = _SEVERAL_ROWS.get(model, f'"{model._meta.db_table}".xmin::text::bigint')
    return RawSQL(sql, [], output_field=BigIntegerField())  # noqa: S611 (our own constants)


class ComputedStatuses:
    """Versions of objects whose status is computed when it is read. One for each process."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._lock = threading.Lock()

    def versions(self, items: Sequence[tuple[Mapping[str, Any], int]]) -> list[int]:
        """Return the versions of objects, each given with that of its row: a later one if its status has changed since
        this process last read it."""
        found = [(item["metadata"]["uid"], digest(item.get("status") or {}), version) for item, version in items]
        with self._lock:
            changed = [self._known.get(uid, (seen, 0))[0] != seen for uid, seen, _ in found]
            now = 2 * _new_transaction() + 1 if any(changed) else 0
            versions = []
            for (uid, seen, version), differs in zip(found, changed, strict=True):
                kept = now if differs else max(version, self._known.get(uid, ("", 0))[1])
                self._known[uid] = (seen, max(kept, version))
                self._known.move_to_end(uid)
                versions.append(max(kept, version))
            while len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
        return versions


def _new_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        return int(cursor.fetchone()[0])


computed_statuses: Final = ComputedStatuses()
