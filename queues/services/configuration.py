"""Every write of a configuration object: replaced by what is submitted, deleted when nothing holds it any more."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.events import wake_scheduler
from accounts.exceptions import InvalidRequest, ManifestErrors, NotFound, UnsupportedKind
from accounts.models import Cluster
from accounts.services.apply_result import Action, Applied, Submitted, refuse_mistakes
from accounts.services.namespaces import create_missing_namespaces
from queues.manifests.generated_name import generated_name
from queues.models import PriorityClass, Workload
from queues.services.kinds import KINDS, ConfigurationKind
from queues.services.quotas import groups_of, replace_groups
from queues.services.workloads import change_priority
from scheduling.manifest import Fields, MistakeReason, ObjectMeta, Report


def apply_object(
    cluster: Cluster, document: Mapping[str, Any], *, kind: str = "", actor: str, now: datetime | None = None
) -> Applied:
    """Store one configuration object from its manifest. Raises `ManifestErrors`, which locates every mistake."""
    report = Report()
    submitted = read_object(document, report)
    if kind and document.get("kind") != kind:
        report.error("kind", document.get("kind"), f"must be {kind} here")
        raise ManifestErrors(report.errors)
    now = now or timezone.now()
    with transaction.atomic():
        if submitted.spec.meta.namespace:
            create_missing_namespaces(cluster, [(submitted.spec.meta.namespace, submitted)], now=now)
        return apply_objects(cluster, KINDS[str(document["kind"])], [submitted], actor=actor, now=now)[0]


def read_object(document: Mapping[str, Any], report: Report, path: str = "") -> Submitted[Any]:
    """Read the manifest of a configuration object; raises `UnsupportedKind` and `ManifestErrors`."""
    kind, api_version = KINDS.get(str(document.get("kind"))), str(document.get("apiVersion"))
    if kind is None or api_version not in kind.api_versions:
        report.error("kind", document.get("kind"), f"is no configuration object of {api_version}")
        raise UnsupportedKind(report.errors)
    top = Fields(report, path, document)
    top.ignore("apiVersion", "kind")
    spec = kind.read(top, api_version.rpartition("/")[2])
    top.close()
    if report.errors:
        raise ManifestErrors(report.errors)
    return Submitted(spec, report, api_version, path)


def apply_objects(
    cluster: Cluster,
    kind: ConfigurationKind,
    submissions: Sequence[Submitted[Any]],
    *,
    actor: str,
    applied_set: str = "",
    now: datetime | None = None,
) -> list[Applied]:
    """Store objects of one kind, each replacing the one of its name; within the caller's transaction.

    Raises `ManifestErrors` where a field may not change any more or an object is being deleted: nothing is stored.
    """
    now = now or timezone.now()
    rows = _rows(cluster, kind, [submitted.spec.meta for submitted in submissions])
    writer = _Writer(cluster, kind, applied_set, now)
    for submitted in submissions:
        writer.take(submitted, rows.get(submitted.spec.meta.key))
    if kind.model is PriorityClass:
        _check_global_defaults(cluster, submissions)
    refuse_mistakes(submissions)
    writer.store()
    _after(cluster, kind, [submitted.spec for submitted in submissions], actor, now)
    if any(applied.action is not Action.UNCHANGED for applied in writer.applied):
        wake_scheduler(cluster.name)
    return writer.applied


def delete_object(
    cluster: Cluster, kind: str, name: str, namespace: str = "", *, actor: str, now: datetime | None = None
) -> str:
    """Delete a configuration object, now or, while something holds it, as soon as nothing does (Kueue's finalizer).

    Returns what holds it in words, empty when it is gone. Raises `NotFound`.
    """
    if kind not in KINDS:
        raise InvalidRequest(f"{kind} is no configuration kind: use one of {', '.join(KINDS)}.")
    key = f"{namespace}/{name}" if namespace else name
    with transaction.atomic():
        waiting = delete_objects(cluster, KINDS[kind], [key], actor=actor, now=now)
    if waiting is None:
        raise NotFound(f"There is no {kind} {key} in cluster {cluster.name}.")
    return waiting.get(key, "")


def delete_objects(
    cluster: Cluster, kind: ConfigurationKind, keys: Sequence[str], *, actor: str, now: datetime | None = None
) -> dict[str, str] | None:
    """Delete objects of a kind; the answer says what holds those that have to wait, and is None when none was there."""
    now = now or timezone.now()
    metas = [ObjectMeta(key.rpartition("/")[2], key.rpartition("/")[0]) for key in keys]
    rows = _rows(cluster, kind, metas)
    if not rows:
        return None
    kind.model.objects.filter(pk__in=[row.pk for row in rows.values()], deletion_requested_at__isnull=True).update(
        deletion_requested_at=now
    )
    waiting = {key: users for key, row in rows.items() if (users := kind.users(cluster, row.name))}
    finish_deletions(cluster)
    wake_scheduler(cluster.name)
    return waiting


def finish_deletions(cluster: Cluster) -> int:
    """Remove what is to be deleted and is held by nothing any more; returns how many rows that were.

    What holds an object may itself be waiting, so this goes on until nothing more can go.
    """
    gone = 0
    while removed := _remove_unused(cluster):
        gone += removed
    return gone


def _remove_unused(cluster: Cluster) -> int:
    removed = 0
    for kind in KINDS.values():
        for row in kind.model.objects.filter(cluster=cluster, deletion_requested_at__isnull=False):
            if not kind.users(cluster, row.name):
                row.delete()
                removed += 1
    return removed


def spec_of(kind: ConfigurationKind, row: Any) -> Any:
    """The spec of a row, equal to that of the manifest which would make it so."""
    meta = ObjectMeta(row.name, row.namespace if kind.namespaced else "", row.labels, row.annotations)
    values = {column: getattr(row, column) for column in kind.columns}
    if kind.has_quotas:
        values["resource_groups"] = groups_of(row)
    return kind.spec(meta=meta, **values)


def manifest_of(row: Any) -> dict[str, Any]:
    """The manifest of a configuration object's row, in v1beta2; applied again it changes nothing."""
    kind = KINDS[type(row).__name__]
    return kind.write(spec_of(kind, row))


def objects(cluster: Cluster, kind: ConfigurationKind) -> Any:
    """The rows of a kind with what their specs need, in order."""
    rows = kind.model.objects.filter(cluster=cluster)
    return rows.prefetch_related("resource_groups__quotas") if kind.has_quotas else rows


def _rows(cluster: Cluster, kind: ConfigurationKind, metas: Iterable[ObjectMeta]) -> dict[str, Any]:
    names = {meta.name for meta in metas}
    rows = objects(cluster, kind).filter(name__in=names).select_for_update()
    keys = {meta.key for meta in metas}
    found = {(row.key if kind.namespaced else row.name): row for row in rows}
    return {key: row for key, row in found.items() if key in keys}


class _Writer:
    """Sorts submissions into new, changed and unchanged, then writes new ones and quotas in one statement each."""

    def __init__(self, cluster: Cluster, kind: ConfigurationKind, applied_set: str, now: datetime) -> None:
        self._cluster = cluster
        self._kind = kind
        self._applied_set = applied_set
        self._now = now
        self._new: list[Any] = []
        self._changed: list[Any] = []
        self._grouped: list[tuple[Any, Any]] = []
        self.applied: list[Applied] = []

    def take(self, submitted: Submitted[Any], row: Any | None) -> None:
        spec = submitted.spec
        if row is None:
            row = self._new_row(submitted)
            self._new.append(row)
            if self._kind.has_quotas and spec.resource_groups:
                self._grouped.append((row, spec.resource_groups))
            self._note(submitted, Action.CREATED, row)
            return
        old = spec_of(self._kind, row)
        self._check(submitted, row, old)
        unchanged = old == spec
        self._note(submitted, Action.UNCHANGED if unchanged else Action.CONFIGURED, row)
        if not unchanged:
            self._assign(row, submitted)
            self._changed.append(row)
            if self._kind.has_quotas and old.resource_groups != spec.resource_groups:
                self._grouped.append((row, spec.resource_groups))
        elif self._applied_set and row.applied_set != self._applied_set:
            self._kind.model.objects.filter(pk=row.pk).update(applied_set=self._applied_set)

    def store(self) -> None:
        self._kind.model.objects.bulk_create(self._new)
        columns = ["labels", "annotations", "api_version", "applied_set", "updated_at", *self._kind.columns]
        for row in self._changed:
            row.save(update_fields=columns)
        if self._grouped:
            replace_groups(self._grouped)

    def _new_row(self, submitted: Submitted[Any]) -> Any:
        meta = submitted.spec.meta
        name = generated_name(meta.name) if meta.generate_name else meta.name
        row = self._kind.model(cluster=self._cluster, name=name, created_at=self._now)
        if self._kind.namespaced:
            row.namespace = meta.namespace
        self._assign(row, submitted)
        return row

    def _assign(self, row: Any, submitted: Submitted[Any]) -> None:
        row.labels = dict(submitted.spec.meta.labels)
        row.annotations = dict(submitted.spec.meta.annotations)
        row.api_version = submitted.api_version
        row.applied_set = self._applied_set or row.applied_set
        for column in self._kind.columns:
            setattr(row, column, getattr(submitted.spec, column))

    def _check(self, submitted: Submitted[Any], row: Any, old: Any) -> None:
        if row.deletion_requested_at is not None:
            submitted.report.error(
                submitted.at("metadata.name"),
                row.name,
                f"this {self._kind.kind} is being deleted: {self._kind.users(self._cluster, row.name)}",
                "Wait until it is gone, then apply it anew.",
                MistakeReason.IN_USE,
            )
        for path, broken in self._kind.frozen.items():
            if broken(old, submitted.spec):
                submitted.report.error(
                    submitted.at(path),
                    None,
                    f"can't be changed once it is set in a {self._kind.kind}",
                    f"Delete the {self._kind.kind} and create it anew, or use another name.",
                    MistakeReason.IMMUTABLE,
                )

    def _note(self, submitted: Submitted[Any], action: Action, row: Any) -> None:
        namespace = row.namespace if self._kind.namespaced else ""
        self.applied.append(Applied(self._kind.kind, namespace, row.name, action, tuple(submitted.report.warnings)))


def _after(cluster: Cluster, kind: ConfigurationKind, specs: Sequence[Any], actor: str, now: datetime) -> None:
    """What follows from a change: a class's value is that of every unfinished workload which names it (Kueue)."""
    if kind.kind != "WorkloadPriorityClass":
        return
    for spec in specs:
        workloads = Workload.objects.filter(
            cluster=cluster, priority_class_kind="WorkloadPriorityClass", priority_class_name=spec.meta.name
        ).exclude(priority=spec.value)
        keys = list(workloads.values_list("namespace", "name"))
        if keys:
            change_priority(cluster, keys, spec.value, actor=actor, priority_class_name=spec.meta.name, now=now)


def _check_global_defaults(cluster: Cluster, submissions: Sequence[Submitted[Any]]) -> None:
    """Kubernetes takes one PriorityClass at most as the global default."""
    named = {submitted.spec.meta.name for submitted in submissions}
    others = list(
        PriorityClass.objects.filter(cluster=cluster, global_default=True)
        .exclude(name__in=named)
        .values_list("name", flat=True)
    )
    for submitted in submissions:
        if not submitted.spec.global_default:
            continue
        if others:
            submitted.report.error(
                submitted.at("globalDefault"),
                True,
                f"PriorityClass {others[0]} is the global default already",
                "Set its globalDefault to false first.",
                MistakeReason.FORBIDDEN,
            )
        others.append(submitted.spec.meta.name)
