"""Creates the variants of workloads whose ClusterQueue has a concurrentAdmissionPolicy, one for each flavor, and ends
and deletes variants whose parent or flavor was deleted. `scheduling.lifecycle.variants` decides which of them may be
admitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from django.db import connection, transaction

from accounts.models import Cluster
from foundation.exceptions import Conflict, ManifestErrors
from queues.manifests.job import variant_name
from queues.manifests.kueue_keys import ALLOWED_FLAVORS, PARENT
from queues.manifests.workload import WorkloadSpec
from queues.models import Workload
from queues.services.job_changes import pod_set_specs
from queues.services.submission import CreatedWorkload, create_workloads
from queues.services.workload_events import log_event
from queues.services.workload_objects import workload_spec
from queues.services.workloads import change_priority, delete_workloads, record_finished
from scheduler.store.row_index import RowIndex
from scheduling.lifecycle.conditions import VARIANT_GATE
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_ACTOR: Final = "scheduler"
_AT_ONCE: Final = 200
"""The maximum of families at a time, so that the next cycle is not delayed for long; the others follow after it."""
_IN_A_TRANSACTION: Final = 50
_RETRY_SECONDS: Final = 60.0
_FOLLOW: Final = """
    UPDATE queues_workload AS variant SET parent_name = parent.name, submitted_by = parent.submitted_by,
        user_groups = parent.user_groups, created_at = parent.created_at + %s * interval '1 microsecond'
    FROM unnest(%s::bigint[], %s::bigint[]) AS made (variant, parent) JOIN queues_workload AS parent
        ON parent.id = made.parent
    WHERE variant.id = made.variant
"""
"""Variants have their parent's place in the queue, and a microsecond between them: the preferred one comes first."""

Wanted = Mapping[str, Sequence[str]]
"""Keys of workloads -> the flavors that need a variant each."""


class Families:
    """Keeps the variants of one cluster's workloads up to date while this process leads."""

    def __init__(self) -> None:
        self._retry_at: dict[str, float] = {}

    def unkept(self, rows: RowIndex, now: float) -> Wanted:
        """Return the workloads whose variants are missing or outdated. Costs nothing without a policy."""
        due = [key for key, at in self._retry_at.items() if at <= now]
        for key in due:
            del self._retry_at[key]
        rows.variants.changed.update(dict.fromkeys(due))
        found: dict[str, Sequence[str]] = dict.fromkeys(rows.variants.take_gone(_AT_ONCE), ())
        for key in list(rows.variants.changed):
            if len(found) >= _AT_ONCE:
                break
            del rows.variants.changed[key]
            flavors = rows.variants.unkept(key) if key not in self._retry_at else None
            if flavors is not None:
                found[key] = flavors
        return found

    def keep(self, cluster: Cluster, wanted: Wanted, now: float) -> None:
        """Create and remove variants. A family whose variants can't be stored gets an event and a retry."""
        at = datetime.fromtimestamp(now, UTC)
        every = list(wanted)
        for start in range(0, len(every), _IN_A_TRANSACTION):
            keys = every[start : start + _IN_A_TRANSACTION]
            try:
                _keep(cluster, {key: wanted[key] for key in keys}, at)
            except (ManifestErrors, Conflict):
                for key in keys:
                    self._keep_one(cluster, key, wanted[key], at)

    def _keep_one(self, cluster: Cluster, key: str, flavors: Sequence[str], at: datetime) -> None:
        try:
            _keep(cluster, {key: flavors}, at)
        except (ManifestErrors, Conflict) as refusal:
            self._retry_at[key] = at.timestamp() + _RETRY_SECONDS
            namespace, _, name = key.partition("/")
            parent = Workload.objects.filter(cluster=cluster, namespace=namespace, name=name).first()
            if parent is not None:
                text = f"Its variants can't be stored: {refusal}"
                log_event(parent, "VariantNotCreated", text, actor=_ACTOR, now=at, warning=True)


@dataclass(frozen=True, slots=True)
class _Family:
    """The row of a workload (None if it was deleted) with the rows of its variants."""

    key: str
    parent: Workload | None
    variants: Sequence[Workload]
    flavors: Sequence[str]

    @property
    def over(self) -> bool:
        """Whether the workload has ended or was deleted."""
        return self.parent is None or self.parent.status == WorkloadStatus.FINISHED

    def stale(self) -> list[Workload]:
        """Return the variants to delete. Variants of a finished workload finish with it and stay, as does a variant
        whose quota running pods use."""
        parent = self.parent
        if parent is None:
            return list(self.variants)
        gone = [] if self.over else [row for row in self.variants if not self._fits(row, parent)]
        return [row for row in gone if row.quota_reserved_at is None or not _runs_as(parent, row)]

    def _fits(self, row: Workload, parent: Workload) -> bool:
        return (
            flavor_of(row) in self.flavors
            and row.queue_name == parent.queue_name
            and row.status != WorkloadStatus.FINISHED
            and pod_set_specs(row) == pod_set_specs(parent)
        )

    def missing(self) -> list[str]:
        """Return the flavors that no variant pursues yet."""
        if self.over or self.parent is None:
            return []
        stale = {row.pk for row in self.stale()}
        have = {flavor_of(row) for row in self.variants if row.pk not in stale}
        return [flavor for flavor in self.flavors if flavor not in have]


def _runs_as(parent: Workload, variant: Workload) -> bool:
    """Return whether the quota of the variant is that of its parent's pods."""
    flavors = {flavor for pod_set in parent.pod_sets.all() for flavor in pod_set.flavors.values()}
    runs = parent.has_variants and parent.quota_reserved_at is not None
    return runs and (not flavors or flavor_of(variant) in flavors)


def flavor_of(variant: Workload) -> str:
    """Return the flavor that a variant pursues."""
    return str(variant.annotations.get(ALLOWED_FLAVORS, ""))


def _keep(cluster: Cluster, wanted: Wanted, now: datetime) -> None:
    with transaction.atomic():
        families = _read(cluster, wanted)
        for family in families:
            _end(cluster, family, now)
        _create(cluster, families, now)
        for family in families:
            _follow(cluster, family, now)


def _read(cluster: Cluster, wanted: Wanted) -> list[_Family]:
    """Read the families. The parents are locked, so that none ends while its variants are created."""
    namespaces, names = {key.partition("/")[0] for key in wanted}, {key.partition("/")[2] for key in wanted}
    there = Workload.objects.filter(cluster=cluster, namespace__in=namespaces).order_by("pk")
    rows = there.filter(name__in=names, parent_name="")
    locked = rows.select_for_update(no_key=True).prefetch_related("pod_sets")
    parents = {row.key: row for row in locked if row.key in wanted}
    variants: dict[str, list[Workload]] = defaultdict(list)
    for row in there.exclude(parent_name="").filter(parent_name__in=names).prefetch_related("pod_sets"):
        variants[f"{row.namespace}/{row.parent_name}"].append(row)
    return [_Family(key, parents.get(key), variants[key], flavors) for key, flavors in wanted.items()]


def _end(cluster: Cluster, family: _Family, now: datetime) -> None:
    """Finish the variants of a finished workload, and delete outdated ones."""
    parent = family.parent
    if parent is not None and family.over:
        reason = FinishedReason(parent.reason) if parent.reason in set(FinishedReason) else FinishedReason.SUCCEEDED
        record_finished(cluster, _keys(family.variants), reason, parent.message, actor=_ACTOR, now=now)
        return
    stale = family.stale()
    if not stale:
        return
    why = "Its parent no longer exists" if parent is None else "Its parent does not pursue its flavor any more"
    # Without pods of their own they hold quota alone, which is free at once.
    record_finished(cluster, _keys(stale), FinishedReason.OUT_OF_SYNC, why, actor=_ACTOR, now=now)
    delete_workloads(cluster, _keys(stale), actor=_ACTOR, now=now)
    if parent is None:
        return
    for row in stale:
        gone = "" if flavor_of(row) in family.flavors else f'; flavor "{flavor_of(row)}" no longer in ClusterQueue'
        text = f'Variant Workload "{row.key}" deleted{gone}'
        log_event(parent, "DeletedVariant", text, actor=_ACTOR, now=now)


def _keys(rows: Iterable[Workload]) -> list[tuple[str, str]]:
    return [(row.namespace, row.name) for row in rows]


def _create(cluster: Cluster, families: Sequence[_Family], now: datetime) -> None:
    """Create the missing variants, flavor by flavor in the order of the queue."""
    places: dict[int, list[tuple[Workload, str]]] = defaultdict(list)
    for family in families:
        if family.parent is None:
            continue
        for flavor in family.missing():
            places[family.flavors.index(flavor)].append((family.parent, flavor))
    for place in sorted(places):
        specs = [_variant(parent, flavor) for parent, flavor in places[place]]
        made = create_workloads(cluster, specs, actor=_ACTOR, now=now, limited=False)
        _note_made(made, [parent for parent, _ in places[place]], place, now)


def _variant(parent: Workload, flavor: str) -> WorkloadSpec:
    spec = workload_spec(parent)
    return replace(
        spec,
        name=variant_name(parent.name, str(parent.uid), flavor),
        labels={key: value for key, value in parent.labels.items() if key != PARENT},
        annotations={**parent.annotations, ALLOWED_FLAVORS: flavor},
        preemption_gates=tuple(dict.fromkeys((*spec.preemption_gates, VARIANT_GATE))),
    )


def _note_made(made: Sequence[CreatedWorkload], parents: Sequence[Workload], place: int, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_FOLLOW, [place, [each.id for each in made], [parent.pk for parent in parents]])
    for each, parent in zip(made, parents, strict=True):
        text = f'Variant Workload "{each.key}" created'
        log_event(parent, "CreatedVariant", text, actor=_ACTOR, now=now)


def _follow(cluster: Cluster, family: _Family, now: datetime) -> None:
    """Mark the parent, and give its variants its priority and its owner."""
    parent = family.parent
    if parent is None or family.over:
        return
    if parent.has_variants != bool(family.flavors):
        labels = {key: value for key, value in parent.labels.items() if key != PARENT}
        labels |= {PARENT: "true"} if family.flavors else {}
        changes = {"labels": labels, "has_variants": bool(family.flavors), "updated_at": now}
        Workload.objects.filter(pk=parent.pk).update(**changes)
    stale = {row.pk for row in family.stale()}
    kept = [row for row in family.variants if row.pk not in stale]
    for row in kept:
        if row.submitted_by != parent.submitted_by:
            of_user = {"submitted_by": parent.submitted_by, "user_groups": parent.user_groups}
            Workload.objects.filter(pk=row.pk).update(**of_user)
    others = [row for row in kept if row.priority != parent.priority]
    if others:
        change_priority(
            cluster, _keys(others), parent.priority, priority_class_name=_class_of(parent), actor=_ACTOR, now=now
        )


def _class_of(parent: Workload) -> str:
    return parent.priority_class_name if parent.priority_class_kind == "WorkloadPriorityClass" else ""
