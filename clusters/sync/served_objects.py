"""Stores edits of Kueue's configuration objects in rows, in a cluster where kueueweb serves them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from django.db import DataError, transaction

from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from clusters.api_objects import JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.served.agreement import ABSENT, Side, Step, settle
from clusters.served.contents import Read, note, note_absence, read_object
from clusters.served.served_rows import Row, read_rows
from clusters.sync.present import name_key, present
from clusters.sync.served_entries import gone_keys, locked_entries, new_entry, news_of, tell_loser, writer_of
from foundation.exceptions import ManifestErrors
from foundation.wake_ups import request_push
from kinds.declaration import KindSpec
from queues.kinds import KINDS
from queues.models import ServedObject
from queues.services.configuration import apply_objects, delete_objects, set_check_active
from scheduling.manifest import ValidationReport

_log = logging.getLogger(__name__)

_MAX_PROBLEM = 1024


class ServedObjectSync:
    """Makes the rows of one kind follow edits of others in the cluster.

    Our own writes come back as the content that both sides agreed on, and change nothing. The push handles the other
    direction.
    """

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        self._cluster = cluster
        self._kind = KINDS[kind.kind]
        self._api_version = kind.api_version

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        found = present(items, name_key)
        at = datetime.fromtimestamp(now, UTC)
        with transaction.atomic():
            known = locked_entries(self._cluster, self._kind.name, found)
            gone = gone_keys(known, found, items)
            news = {key: self._read(obj) for key, obj in news_of(known, found).items()}
            if news or gone:
                self._settle(known, news, gone, at)

    def _read(self, obj: JsonObject) -> Read:
        return read_object(self._kind, obj, self._api_version.rpartition("/")[2])

    def _settle(self, known: dict[str, ServedObject], news: Mapping[str, Read], gone: set[str], at: datetime) -> None:
        for key in gone:
            if known[key].uid:
                note_absence(known[key], at)
        for key, read in news.items():
            entry = known.setdefault(key, new_entry(self._cluster, self._kind.name, key))
            note(entry, read)
            _complain_of_mistakes(entry, read, self._cluster)
        touched = {*news, *gone}
        rows = read_rows(self._cluster, self._kind, touched)
        self._follow(known, news, touched, rows, at)
        rows = read_rows(self._cluster, self._kind, touched)
        for key in touched:
            self._agree(known[key], rows.get(key))
        self._note_activity(news)
        request_push(self._cluster.name)

    def _follow(
        self,
        known: Mapping[str, ServedObject],
        news: Mapping[str, Read],
        touched: set[str],
        rows: Mapping[str, Row],
        at: datetime,
    ) -> None:
        """Update the rows from objects of which only the cluster's version was edited, or that was edited last."""
        submitted: dict[str, Submitted[KindSpec]] = {}
        deleted: list[str] = []
        for key in sorted(touched):
            entry = known[key]
            row = rows[key].side if key in rows else Side(ABSENT, at)
            settled = settle(entry.agreed, row, Side(entry.content, entry.edited_at or at))
            if settled.step is not Step.FOLLOW:
                continue
            if settled.overwrites:
                self._tell_loser(entry, rows.get(key))
            spec = news[key].spec if key in news else None
            if entry.content == ABSENT:
                deleted.append(key)
            elif spec is not None:
                submitted[key] = Submitted(spec, ValidationReport(), self._api_version)
        self._store(known, submitted, at)
        if deleted:
            delete_objects(self._cluster, self._kind, deleted, actor=writer_of(None), now=at)

    def _store(
        self, known: Mapping[str, ServedObject], submitted: Mapping[str, Submitted[KindSpec]], at: datetime
    ) -> None:
        """Store the objects of one writer together or, if one of them is refused, each on its own."""
        by_writer: dict[str, dict[str, Submitted[KindSpec]]] = {}
        for key, each in submitted.items():
            by_writer.setdefault(writer_of(known[key]), {})[key] = each
        for writer, group in by_writer.items():
            try:
                self._apply(list(group.values()), writer, at)
            except (ManifestErrors, DataError):
                for key, each in group.items():
                    try:
                        self._apply([Submitted(each.spec, ValidationReport(), each.api_version)], writer, at)
                    except (ManifestErrors, DataError) as refused:
                        self._complain(known[key], str(refused))

    def _apply(self, submitted: Sequence[Submitted[KindSpec]], writer: str, at: datetime) -> None:
        with transaction.atomic():
            apply_objects(self._cluster, self._kind, submitted, actor=writer, now=at)

    def _agree(self, entry: ServedObject, row: Row | None) -> None:
        """Record whether both sides are equal now. Entries without an object on either side are deleted."""
        content = row.side.content if row is not None else ABSENT
        if content == entry.content:
            entry.agreed, entry.problem = content, ""
            entry.failures, entry.retry_at = 0, None
            entry.row_version = row.version if row is not None else 0
        if row is None and not entry.uid:
            if entry.pk is not None:
                entry.delete()
            return
        entry.keep_seen()

    def _note_activity(self, news: Mapping[str, Read]) -> None:
        """An admission check's Active condition, which its controller sets."""
        for key, read in news.items() if self._kind.name == "AdmissionCheck" else ():
            for each in read.status.get("conditions") or ():
                if each.get("type") == "Active":
                    set_check_active(self._cluster, key, active=each.get("status") == "True")

    def _tell_loser(self, entry: ServedObject, row: Row | None) -> None:
        """Note in the audit log, for the user whose edit of the row is lost, which edit replaced it."""
        who = getattr(row.row, "changed_by", "") if row is not None else ""
        when = f" of {row.side.edited_at:%Y-%m-%d %H:%M:%S}" if row is not None else ""
        what = "deleted" if entry.content == ABSENT else "edited"
        by = f" by {entry.edited_by}" if entry.edited_by else ""
        message = (
            f"The edit{f' by {who}' if who else ''}{when} is overwritten: the object was {what} in the cluster{by} "
            "later. Read it again, and repeat the edit if it is still wanted."
        )
        tell_loser(self._cluster, entry, message)

    def _complain(self, entry: ServedObject, problem: str) -> None:
        entry.problem = problem[:_MAX_PROBLEM]
        _log.error("%s of cluster %s can't be followed: %s", entry, self._cluster.name, problem)


def _complain_of_mistakes(entry: ServedObject, read: Read, cluster: Cluster) -> None:
    if read.errors:
        entry.problem = "; ".join(f"{error.path}: {error.rule}" for error in read.errors)[:_MAX_PROBLEM]
        _log.error("%s of cluster %s can't be read: %s", entry, cluster.name, entry.problem)
