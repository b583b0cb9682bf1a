"""Mode shadow: when the other scheduler has come to rest, ours decides what that one did, and both are compared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import F

from accounts.models import Cluster
from gpus.manifests import configured_policies, configured_vendors
from gpus.vendors import VENDORS
from scheduler.models import ShadowCount, ShadowDifference
from scheduler.store.changes import Changes
from scheduler.store.configuration import cluster_configuration
from scheduler.store.row_index import RowIndex
from scheduling.model.workload import Workload
from scheduling.shadow import Act, Choice, Comparison, Shadow, ShadowResult, Verdict
from scheduling.world import World

REST_SECONDS: Final = 3.0
"""Without a change for so long, the other scheduler has decided all that it could."""
MAX_WAIT_SECONDS: Final = 30.0
"""A cluster that never rests is compared so often."""
_MAX_SECONDS: Final = 1.0
"""Our cycles take no longer: other clusters wait for this process."""


class ShadowFollower:
    """Our own World beside the mirrored one, what has changed since the last comparison, and the next one.

    Make it where the mirrored World has just caught up with the rows: both begin alike.
    """

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._cluster_id = cluster.pk
        self._world = World()
        self._rows = RowIndex(cluster.pk, self._world)
        self._shadow = Shadow(self._world)
        self._before: dict[str, Workload | None] = {}
        self._first_at: float | None = now
        self._last_at = now
        self._told: dict[str, tuple[object, ...]] = {}
        """Workloads that we would start and the other scheduler leaves, and how: told once."""
        self.configure(cluster, now)
        self._rows.load(now)
        self._world.advance(now)

    def configure(self, cluster: Cluster, now: float) -> None:
        """The cluster's own settings, which decide how all else is read."""
        settings = cluster.device_plugin_configuration.get("settings", {})
        self._rows.vendors = configured_vendors(settings, VENDORS)
        configuration = cluster_configuration(cluster)
        self._world.set_configuration(configuration)
        self._rows.set_features(configuration.features, now)
        self._world.set_vendors(self._rows.vendors)
        self._world.set_placement_policies(*configured_policies(settings))

    def note(self, changes: Changes, before: Mapping[str, Workload | None], now: float) -> None:
        """Something has changed; `before` is how the workloads that changed were."""
        others = {kind: rows for kind, rows in changes.by_kind.items() if kind not in ("workload", "cluster")}
        self._rows.apply(Changes(changes.configuration_generation, (), others), now)
        for key, workload in before.items():
            self._before.setdefault(key, workload)
        self._first_at = now if self._first_at is None else self._first_at
        self._last_at = now

    def compare_if_due(self, mirrored: World, now: float) -> ShadowResult | None:
        """Compare and store, if the other scheduler rests or has been busy for long."""
        if self._first_at is None:
            return None
        if now - self._last_at < REST_SECONDS and now - self._first_at < MAX_WAIT_SECONDS:
            return None
        deadline = time.monotonic() + _MAX_SECONDS
        self._world.advance(now)
        result = self._shadow.compare(mirrored, self._before, now, lambda: time.monotonic() < deadline)
        self._before, self._first_at = {}, None
        self._store(result, datetime.fromtimestamp(now, UTC))
        return result

    def _store(self, result: ShadowResult, at: datetime) -> None:
        news = [found for found in result.comparisons if self._is_news(found)]
        ours = {found.workload: found.ours.what for found in result.comparisons if found.verdict is Verdict.ONLY_OURS}
        self._told = ours if result.complete else self._told | ours
        ShadowDifference.objects.bulk_create(
            _row(self._cluster_id, found, at) for found in news if found.verdict is not Verdict.AGREE
        )
        if news or not result.complete:
            self._count(news, at, complete=result.complete)

    def _is_news(self, found: Comparison) -> bool:
        return found.verdict is not Verdict.ONLY_OURS or self._told.get(found.workload) != found.ours.what

    def _count(self, news: Sequence[Comparison], at: datetime, *, complete: bool) -> None:
        # Where one preempts what the other keeps, keeping is no reservation.
        started = [found for found in news if Act.PREEMPT not in (found.theirs.act, found.ours.act)]
        agreed = sum(found.verdict is Verdict.AGREE for found in news)
        counts = {
            "agreed": agreed,
            "differed": len(news) - agreed,
            "their_reservations": sum(found.theirs.act is Act.RESERVE for found in started),
            "our_reservations": sum(found.ours.act is Act.RESERVE for found in started),
            "their_preemptions": sum(found.theirs.act is Act.PREEMPT for found in news),
            "our_preemptions": sum(found.ours.act is Act.PREEMPT for found in news),
            "unfinished": int(not complete),
        }
        minute = at.replace(second=0, microsecond=0)
        row, _ = ShadowCount.objects.get_or_create(cluster_id=self._cluster_id, at=minute)
        ShadowCount.objects.filter(pk=row.pk).update(**{name: F(name) + count for name, count in counts.items()})


def _row(cluster_id: int, found: Comparison, at: datetime) -> ShadowDifference:
    namespace, _, name = found.workload.partition("/")
    return ShadowDifference(
        cluster_id=cluster_id,
        at=at,
        namespace=namespace,
        workload_name=name,
        workload_uid=found.uid,
        verdict=found.verdict.value,
        theirs=_written(found.theirs),
        ours=_written(found.ours),
    )


def _written(choice: Choice) -> dict[str, Any]:
    pod_sets = [{"name": name, "count": count, "flavors": dict(flavors)} for name, count, flavors in choice.flavors]
    return asdict(choice) | {"act": choice.act.value, "flavors": pod_sets}
