"""Why a workload waited at a moment of the past, by the World of that moment: the work of a child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from accounts.models import Cluster
from foundation.shown_past import showing
from history.services.checkpoints.past_moments import cluster_at, find_moment, past_of, showing_moment
from queues.api.expected_start import EXPECTED_COLUMNS, take_expected_start
from queues.models import Pod, Workload
from scheduler.api.explanation_views import FINISHED
from scheduler.store.world_reading import read_whole_world

_UNREAD: Final = frozenset({Pod._meta.db_table})
"""The rules read no pods, of which a busy cluster has the most bytes."""


def explain_past(cluster: Cluster, namespace: str, name: str, at: datetime) -> Mapping[str, Any]:
    """Return the explanation and the estimate of that moment, with all names; the explanation is None if the workload
    did not exist. Opens its own connection to the database. Raises NoCheckpoint."""
    moment = find_moment(cluster, at)
    key = f"{namespace}/{name}"
    with showing_moment(moment, hidden=_UNREAD) as settings, showing(past_of(moment, settings)):
        rows = Workload.objects.filter(cluster=cluster, namespace=namespace, name=name)
        row = rows.values("status", "active", "quota_reserved_at", **EXPECTED_COLUMNS).first()
        if row is None:
            return {"explanation": None, "expected_start": None}
        world, _ = read_whole_world(cluster_at(moment, settings), moment.time.timestamp())
    explained = FINISHED if world.workload(key) is None else world.explain(key)
    return {"explanation": asdict(explained), "expected_start": take_expected_start(row, moment.time)}
