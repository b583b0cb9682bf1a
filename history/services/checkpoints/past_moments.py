"""Shows the rows of a moment: of the next checkpoint or the current ones, with the recorded changes since it undone.

Without recorded changes, the last checkpoint at or before the moment is shown, which is not exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from accounts.models import Cluster, Namespace
from foundation.shown_past import Past, showing
from history.models import Checkpoint
from history.services.checkpoints.change_recording import recorded_since
from history.services.checkpoints.change_undoing import (
    take_kept_changes,
    take_recorded_changes,
    undo_changes,
    undone_settings,
)
from history.services.checkpoints.checkpoint_tables import FORMAT, oldest_at
from history.services.checkpoints.past_rows import (
    EXACT,
    NoCheckpoint,
    content_of,
    damaged,
    fill_estimates,
    fill_with_checkpoint,
    fill_with_present_rows,
    find_checkpoint,
    refuse_future,
    showing_rows,
    showing_tables,
)

NOT_RECORDED: Final = "ChangesNotRecorded"
"""Changes between checkpoints were not recorded at that moment, or are not kept any more."""
_SETTINGS: Final = ("configuration", "device_plugin_configuration", "placement", "mode")
_RIGHTS: Final = frozenset({Namespace._meta.db_table})
"""Tables that rights are read from stay present, except where rules decide."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a cluster and the rows from which it is shown.

    * before: the last checkpoint at or before it. It is shown, unless changes are undone.
    * after: the next checkpoint; None: changes since the moment are undone in the current rows.
    """

    cluster: Cluster
    at: datetime
    before: Checkpoint | None
    after: Checkpoint | None = None
    undone: bool = False

    @property
    def time(self) -> datetime:
        """The time of the rows that are shown."""
        if self.undone:
            return self.at
        assert self.before is not None
        return self.before.taken_at

    @property
    def exact(self) -> bool:
        return self.undone or self.at - self.time < EXACT


def find_moment(cluster: Cluster, at: datetime) -> Moment:
    """Return how that moment is shown. Raises NoCheckpoint, and InvalidRequest for a future moment."""
    refuse_future(at)
    now = timezone.now()
    at = min(at, now)
    kept = Checkpoint.objects.filter(cluster=cluster, format=FORMAT).defer("content", "devices", "changes")
    before = kept.filter(taken_at__lte=at).order_by("-taken_at").first()
    if before is not None and at - before.taken_at < EXACT:
        return Moment(cluster, at, before)
    # One from the future, before the clock was set back, has earlier rows than its time says.
    after = kept.filter(taken_at__gt=at, taken_at__lte=now).order_by("taken_at").first()
    since = recorded_since() if after is None else after.changes_since
    if since is not None and since <= at:
        return Moment(cluster, at, before, after, undone=True)
    return Moment(cluster, at, find_checkpoint(cluster, at))


@contextmanager
def open_moment(cluster_id: int, at: datetime) -> Iterator[Past]:
    """Show the rows of that moment for readers, by the rights of now. Raises NoCheckpoint, TooManyPastReads and
    InvalidRequest."""
    moment = find_moment(Cluster.objects.get(pk=cluster_id), at)
    with showing_moment(moment, hidden=_RIGHTS) as settings, showing(past_of(moment, settings)) as past:
        yield past


def past_of(moment: Moment, settings: Mapping[str, Any] | None = None) -> Past:
    """Return the moment as readers know it, with the cluster's settings then."""
    figures = None if moment.undone or moment.before is None else moment.before.figures
    reason = "" if moment.exact else NOT_RECORDED
    return Past(moment.cluster.pk, moment.at, moment.time, moment.exact, figures, settings or {}, reason)


def cluster_at(moment: Moment, settings: Mapping[str, Any]) -> Cluster:
    """Return the cluster's row with the settings of the moment, by which the rules decided. It must not be saved."""
    cluster = copy(moment.cluster)
    for name, value in settings.items():
        setattr(cluster, name, value)
    return cluster


@contextmanager
def showing_moment(moment: Moment, *, hidden: Collection[str] = ()) -> Iterator[Mapping[str, Any]]:
    """Show the rows of the moment instead of the current ones; `hidden` tables keep showing the current rows. Yields
    the cluster's settings then. Raises NoCheckpoint and TooManyPastReads."""
    if not moment.undone:
        assert moment.before is not None
        with showing_rows(moment.before, hidden=hidden):
            yield moment.before.settings
        return
    settings = _settings_after(moment)
    with showing_tables(partial(_fill, moment, settings), hidden, damage=partial(_damaged, moment)):
        yield settings


def _settings_after(moment: Moment) -> dict[str, Any]:
    if moment.after is not None:
        return dict(moment.after.settings)
    return {name: getattr(moment.cluster, name) for name in _SETTINGS}


def _fill(moment: Moment, settings: dict[str, Any], cursor: CursorWrapper, shown: Sequence[str]) -> None:
    if moment.after is None:
        take_recorded_changes(cursor, moment.at)
        fill_with_present_rows(cursor, moment.cluster.pk, moment.at, shown)
    else:
        take_kept_changes(cursor, changes_of(moment.after), moment.at)
        fill_with_checkpoint(cursor, content_of(moment.after), shown)
    undo_changes(cursor, moment.cluster.pk, shown, oldest_at(moment.at))
    fill_estimates(cursor, None if moment.before is None else content_of(moment.before), shown)
    settings.update(
        {name: value for name, value in undone_settings(cursor, moment.cluster.pk).items() if name in settings}
    )


def changes_of(found: Checkpoint) -> bytes:
    """Return the compressed changes. Raises NoCheckpoint if the checkpoint is gone since it was found."""
    changes = Checkpoint.objects.filter(pk=found.pk).values_list("changes", flat=True).first()
    if changes is None:
        raise NoCheckpoint("The next checkpoint has just been deleted: send the request again.")
    return bytes(changes)


def _damaged(moment: Moment, error: Exception) -> Exception:
    if moment.after is not None:
        return damaged(moment.after, error)
    return NoCheckpoint(f"The changes since {moment.at.isoformat()} cannot be undone ({type(error).__name__}).")
