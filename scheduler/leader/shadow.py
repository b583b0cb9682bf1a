"""Mode shadow: evaluates kueueweb's rules at each decision of the other scheduler, in the order in which they were
made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import F, Max

from accounts.models import Cluster
from gpus.manifests import configured_policies, configured_vendors
from gpus.vendors import VENDORS
from queues.models import MirroredChange
from scheduler.models import ShadowCount, ShadowDifference
from scheduler.store.changes import Changes
from scheduler.store.configuration import cluster_configuration
from scheduler.store.row_index import RowIndex, as_the_world_sees_it
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Workload
from scheduling.shadow.choices import Act, Choice
from scheduling.shadow.comparisons import Comparison, Shadow, Verdict
from scheduling.simulator.workload_manifest import read_workload
from scheduling.world import World

_MAX_SECONDS: Final = 1.0
"""The maximum duration of kueueweb's cycles and of one comparison: other clusters wait for this process."""
_REST_SECONDS: Final = 1.0
"""How often an idle cluster is checked for decisions that the other scheduler does not make."""
_BATCH: Final = 500


class ShadowFollower:
    """kueueweb's own World, which follows the other scheduler change by change.

    Create it while the rows match the cluster: later changes are in `MirroredChange`.
    """

    def __init__(self, cluster: Cluster, now: float, steady: Callable[[], float] = time.monotonic) -> None:
        self._cluster_id = cluster.pk
        self._steady = steady
        self._deadline = 0.0
        self._world = World()
        self._rows = RowIndex(cluster.pk, self._world)
        self._shadow = Shadow(self._world, lambda: self._steady() < self._deadline)
        self._placed: dict[str, None] = {}
        """Workloads whose pods may have moved to other nodes."""
        self._rested_at = self._heard_at = now
        self.configure(cluster, now)
        self._read = self._changes().aggregate(last=Max("id"))["last"] or 0
        self._rows.load(now)
        self._world.advance(now)
        self.forget()

    def configure(self, cluster: Cluster, now: float) -> None:
        """Apply the cluster's own settings, which decide how everything else is read."""
        settings = cluster.device_plugin_configuration.get("settings", {})
        self._rows.vendors = configured_vendors(settings, VENDORS)
        configuration = cluster_configuration(cluster)
        self._world.set_configuration(configuration)
        self._rows.set_features(configuration.features, now)
        self._world.set_vendors(self._rows.vendors)
        self._world.set_placement_policies(*configured_policies(settings))

    def note(self, changes: Changes, workloads: Iterable[str], now: float) -> None:
        """Take in changed rows. Queues, nodes and settings take effect at once. The nodes of these workloads' pods are
        read later, once all changes that the cluster reported have been processed."""
        others = {kind: rows for kind, rows in changes.by_kind.items() if kind not in ("workload", "cluster")}
        self._rows.apply(Changes(changes.configuration_generation, (), others), now)
        self._placed.update(dict.fromkeys(workloads))

    def follow(self, mirrored: World, now: float) -> list[Comparison]:
        """Compare the decisions made since, store the results, and return them."""
        end = self._steady() + _MAX_SECONDS
        before = self._shadow.unfinished
        found: list[Comparison] = []
        changes = list(self._changes().filter(id__gt=self._read).order_by("id")[:_BATCH])
        for change in changes:
            if self._steady() >= end:
                break
            self._deadline = self._steady() + _MAX_SECONDS
            key = f"{change.namespace}/{change.name}"
            # The time of the change: other schedulers did not wait for this process to read it.
            self._heard_at = max(self._heard_at, min(change.at.timestamp(), now))
            found += self._shadow.hear(key, self._workload(key, change.manifest), self._heard_at)
            self._read = change.pk
        if changes:
            self.forget()
        else:
            self._place(mirrored, now)
            if now - self._rested_at >= _REST_SECONDS:
                self._rested_at = self._heard_at = now
                self._deadline = self._steady() + _MAX_SECONDS
                found += self._shadow.rest(now)
        self._store(found, self._shadow.unfinished - before, datetime.fromtimestamp(now, UTC))
        return found

    def forget(self) -> None:
        """Delete the changes that have been read."""
        self._changes().filter(id__lte=self._read).delete()

    def _changes(self) -> Any:
        return MirroredChange.objects.filter(cluster_id=self._cluster_id)

    def _workload(self, key: str, manifest: Mapping[str, Any] | None) -> Workload | None:
        """Read a workload from its object; only the rows have the places of its pods."""
        if manifest is None:
            return None
        read = self._world.configuration.features.counted(read_workload(manifest))
        if read.is_true(ConditionType.FINISHED):
            return None
        known = self._world.workload(key)
        if known is not None and known.holds_quota and read.holds_quota:
            read = replace(read, placement=known.placement)
        return as_the_world_sees_it(read)

    def _place(self, mirrored: World, now: float) -> None:
        for key in self._placed:
            known, found = self._world.workload(key), mirrored.workload(key)
            if known is None or found is None or not (known.holds_quota and found.holds_quota):
                continue
            if known.placement != found.placement:
                self._shadow.take(key, replace(known, placement=found.placement), now)
        self._placed.clear()

    def _store(self, found: Sequence[Comparison], unfinished: int, at: datetime) -> None:
        ShadowDifference.objects.bulk_create(
            _row(self._cluster_id, each, at) for each in found if each.verdict is not Verdict.AGREE
        )
        if found or unfinished:
            self._count(found, unfinished, at)

    def _count(self, found: Sequence[Comparison], unfinished: int, at: datetime) -> None:
        # If one scheduler preempts a workload that the other keeps, keeping it is not a reservation.
        started = [each for each in found if Act.PREEMPT not in (each.theirs.act, each.ours.act)]
        agreed = sum(each.verdict is Verdict.AGREE for each in found)
        counts = {
            "agreed": agreed,
            "differed": len(found) - agreed,
            "their_reservations": sum(each.theirs.act is Act.RESERVE for each in started),
            "our_reservations": sum(each.ours.act is Act.RESERVE for each in started),
            "their_preemptions": sum(each.theirs.act is Act.PREEMPT for each in found),
            "our_preemptions": sum(each.ours.act is Act.PREEMPT for each in found),
            "unfinished": unfinished,
            "out_of_turn": sum(each.aside > 0 for each in found),
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
