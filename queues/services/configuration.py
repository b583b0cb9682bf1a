"""All writes of configuration objects: replacement by the submitted object, and deletion once nothing uses it."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Value
from django.utils import timezone

from accounts.models import Cluster, Namespace
from accounts.services.apply_result import Action, Applied, Submitted, refuse_mistakes
from accounts.services.cluster_settings import require_not_mirrored
from accounts.services.namespaces import create_missing_namespaces
from accounts.services.object_status import server_metadata
from accounts.services.precondition import Precondition, require_precondition
from foundation.exceptions import Conflict, InvalidRequest, ManifestErrors, NotFound
from foundation.wake_ups import wake_scheduler
from kinds.declaration import Kind, KindSpec
from queues.kinds import KINDS
from queues.kinds.node_quotas import keep_followed
from queues.manifests.generated_name import generated_name
from queues.models import AdmissionCheck, PriorityClass, Workload
from queues.services.quotas import replace_groups
from queues.services.workloads import change_priority
from scheduling.manifest import LocatedError, MistakeReason, ObjectMeta, ValidationReport
from scheduling.manifest.merge_patch import merge_patch

_GROUPS: Final = "resource_groups"


def apply_json(
    cluster: Cluster,
    kind: Kind,
    body: Mapping[str, Any],
    *,
    name: str,
    namespace: str = "",
    actor: str,
    merge: bool = False,
    precondition: Precondition | None = None,
    unread_is_refused: bool = False,
) -> Applied:
    """Store one configuration object from our JSON; with `merge` the body is a merge patch.

    Raises `ManifestErrors` with every mistake; `PreconditionFailed` if the locked row's generation differs from the
    precondition or from `generation` in the body; `PreconditionRequired` if `unread_is_refused` and the write
    replaces quotas, or the whole object, without a precondition; `MirroredFromCluster` if only the cluster itself
    may change its objects.
    """
    require_not_mirrored(cluster)
    now = timezone.now()
    report = ValidationReport()
    key = ObjectMeta(name, namespace).key
    with transaction.atomic():
        lock_configuration(cluster)
        row = _rows(cluster, kind, [ObjectMeta(name, namespace)]).get(key)
        conditions = [found for found in (precondition, _generation_in(body)) if found is not None]
        for condition in conditions:
            condition.check(kind.name, key, *((None,) if row is None else (row.generation, row.changed_by)))
        if unread_is_refused and row is not None and not conditions and (not merge or _GROUPS in body):
            require_precondition(kind.name, key, row.generation)
        if merge:
            if row is None:
                raise NotFound(f"There is no {kind.name} {key} in cluster {cluster.name}.")
            body = merge_patch(kind.to_json(row), body)
        spec = kind.read_json(report, name, namespace, body, kind.spec_of(row) if row is not None else None)
        if report.errors:
            raise ManifestErrors(report.errors)
        submitted = Submitted(spec, report, kind.versions[0], in_json=True)
        if namespace:
            create_missing_namespaces(cluster, [(namespace, submitted)], now=now)
        return apply_objects(cluster, kind, [submitted], actor=actor, now=now)[0]


def _generation_in(body: Mapping[str, Any]) -> Precondition | None:
    """Return the precondition of `generation` in a body, which is present if a client sends back an object that it
    read."""
    generation = body.get("generation")
    if generation is None:
        return None
    if isinstance(generation, bool) or not isinstance(generation, int):
        rule, remedy = "must be an integer", "Send the value that you read, or omit it."
        raise ManifestErrors([LocatedError(0, "generation", generation, rule, remedy, MistakeReason.WRONG_TYPE)])
    return Precondition(frozenset({str(generation)}), "generation")


def apply_objects(
    cluster: Cluster,
    kind: Kind,
    submissions: Sequence[Submitted[Any]],
    *,
    actor: str,
    applied_set: str = "",
    from_cluster: bool = False,
    now: datetime | None = None,
) -> list[Applied]:
    """Store objects of one kind within the caller's transaction; each replaces the object of its name.

    With `from_cluster`, the objects are read from the cluster, which is the only writer of the namespaces that it has.
    Raises `ManifestErrors`, and stores nothing, if a field is immutable or an object is being deleted.
    """
    now = now or timezone.now()
    lock_configuration(cluster)
    rows = _rows(cluster, kind, [submitted.spec.meta for submitted in submissions])
    if kind.model is Namespace and not from_cluster:
        submissions = [_unless_in_cluster(kind, submitted, rows) for submitted in submissions]
    writer = _Writer(cluster, kind, applied_set, actor, now)
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
    cluster: Cluster,
    kind: str,
    name: str,
    namespace: str = "",
    *,
    actor: str,
    precondition: Precondition | None = None,
) -> str:
    """Delete a configuration object at once or, if it is in use, once it is unused (Kueue's finalizer).

    Returns a message that names its users; empty if it was deleted. Raises `NotFound`, `PreconditionFailed`,
    `MirroredFromCluster`, and `InvalidRequest` for another kind.
    """
    require_not_mirrored(cluster)
    if kind not in KINDS:
        raise InvalidRequest(f"Unsupported value: {kind} is not a configuration kind: use one of {', '.join(KINDS)}.")
    key = f"{namespace}/{name}" if namespace else name
    with transaction.atomic():
        if precondition is not None:
            lock_configuration(cluster)
            row = _rows(cluster, KINDS[kind], [ObjectMeta(name, namespace)]).get(key)
            if row is not None:
                precondition.check(kind, key, row.generation, row.changed_by)
        waiting = delete_objects(cluster, KINDS[kind], [key], actor=actor)
    if waiting is None:
        raise NotFound(f"There is no {kind} {key} in cluster {cluster.name}.")
    return waiting.get(key, "")


def delete_objects(
    cluster: Cluster,
    kind: Kind,
    keys: Sequence[str],
    *,
    actor: str,
    from_cluster: bool = False,
    now: datetime | None = None,
) -> dict[str, str] | None:
    """Delete objects of a kind. Returns why some have to wait; None if none exists.

    Raises `Conflict` for a namespace that the cluster has, unless the cluster itself deleted it (`from_cluster`).
    """
    now = now or timezone.now()
    metas = [ObjectMeta(key.rpartition("/")[2], key.rpartition("/")[0]) for key in keys]
    lock_configuration(cluster)
    rows = _rows(cluster, kind, metas)
    if not rows:
        return None
    if kind.model is Namespace and not from_cluster:
        _refuse_deletion(rows.values())
    kind.model.objects.filter(pk__in=[row.pk for row in rows.values()], deletion_requested_at__isnull=True).update(
        deletion_requested_at=now
    )
    waiting = {key: users for key, row in rows.items() if (users := kind.users(cluster, row.name))}
    finish_deletions(cluster)
    wake_scheduler(cluster.name)
    return waiting


_IN_CLUSTER: Final = "the cluster has this namespace, and its labels and annotations there apply"


def _unless_in_cluster(
    kind: Kind, submitted: Submitted[KindSpec], rows: Mapping[str, Namespace]
) -> Submitted[KindSpec]:
    """Report an error if a namespace that the cluster has would change: its row follows the cluster's object.

    A manifest written by hand (without uid) that names only labels and annotations that the namespace has changes
    nothing, as with `kubectl apply`. An object that was read and changed is compared as a whole.
    """
    meta = submitted.spec.meta
    is_whole = submitted.in_json or bool(meta.uid or meta.resource_version)
    row = rows.get(meta.key)
    if row is None or not row.in_cluster:
        return submitted
    for field, verb, there in (("labels", "label", row.labels), ("annotations", "annotate", row.annotations)):
        asked = dict(getattr(meta, field))
        if not is_whole:
            asked = {**there, **asked}
        differing = sorted(key for key in asked.keys() | there.keys() if asked.get(key) != there.get(key))
        if differing:
            submitted.report.error(
                field if submitted.in_json else submitted.at(f"metadata.{field}"),
                asked.get(differing[0]),
                f"{differing[0]} may not be changed here: {_IN_CLUSTER}",
                f"Change it in the cluster: {_command(verb, meta.name, differing[0], asked.get(differing[0]))}",
                MistakeReason.FORBIDDEN,
            )
    return replace(submitted, spec=kind.spec_of(row))


def _command(verb: str, name: str, key: str, value: str | None) -> str:
    """Return the command of kubectl that makes the change; without a value, that removes the key."""
    change = f"{key}-" if value is None else shlex.quote(f"{key}={value}")
    return f"kubectl {verb} namespace {name} {change}{'' if value is None else ' --overwrite'}"


def _refuse_deletion(rows: Iterable[Namespace]) -> None:
    found = next((row for row in rows if row.in_cluster), None)
    if found is not None:
        rule, remedy = "the cluster has this namespace", f"Delete it there: kubectl delete namespace {found.name}"
        error = LocatedError(0, "name", found.name, rule, remedy, MistakeReason.FORBIDDEN)
        raise Conflict(f"Namespace {found.name}: {rule}. {remedy}", [error])


def forget_objects(cluster: Cluster, kind: Kind, keys: Sequence[str]) -> int:
    """Remove rows whose objects no longer exist in the cluster, whatever refers to them; return their number."""
    metas = [ObjectMeta(key.rpartition("/")[2], key.rpartition("/")[0]) for key in keys]
    with transaction.atomic():
        lock_configuration(cluster)
        rows = _rows(cluster, kind, metas)
        for row in rows.values():
            row.delete()
        if rows:
            wake_scheduler(cluster.name)
    return len(rows)


def set_check_active(cluster: Cluster, name: str, *, active: bool) -> bool:
    """Record whether the controller of an admission check is active; False if there is no such check."""
    rows = AdmissionCheck.objects.filter(cluster=cluster, name=name)
    if rows.exclude(active=active).update(active=active):
        wake_scheduler(cluster.name)
    return rows.exists()


def finish_deletions(cluster: Cluster) -> int:
    """Delete rows that wait for deletion and are no longer used; return their number.

    The user of an object may itself be waiting for deletion, so this repeats until no row can be deleted. It takes one
    query if no row waits, and two if none can be deleted.
    """
    gone = 0
    while _any_waits(cluster) and (kinds := _with_unused(cluster)):
        removed = _remove_unused(cluster, kinds)
        if not removed:
            break  # another process was faster, or the object is in use again
        gone += removed
    return gone


def _any_waits(cluster: Cluster) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_waiting_rows(), {"cluster": cluster.pk})
        return bool(cursor.fetchone()[0])


@cache
def _waiting_rows() -> str:
    """Return whether any row of a cluster waits. The leader calls this every two seconds: composing and planning the
    query of the unused rows took a quarter of its time at rest."""
    tables = (kind.model._meta.db_table for kind in KINDS.values())
    waiting = (
        f"SELECT FROM {table} WHERE cluster_id = %(cluster)s AND deletion_requested_at IS NOT NULL" for table in tables
    )
    return f"SELECT EXISTS ({' UNION ALL '.join(waiting)})"


def _with_unused(cluster: Cluster) -> list[Kind]:
    """Return the kinds that have rows to delete, by one query."""
    first, *others = [
        _unused(cluster, kind).order_by().values_list(Value(name), flat=True) for name, kind in KINDS.items()
    ]
    found = set(first.union(*others))
    return [kind for name, kind in KINDS.items() if name in found]


def _unused(cluster: Cluster, kind: Kind) -> Any:
    waiting = kind.model.objects.filter(cluster=cluster, deletion_requested_at__isnull=False)
    return waiting if kind.is_used is None else waiting.exclude(kind.is_used())


def _remove_unused(cluster: Cluster, kinds: Iterable[Kind]) -> int:
    with transaction.atomic():
        lock_configuration(cluster)
        removed = 0
        for kind in kinds:
            rows = list(_unused(cluster, kind))
            kind.model.objects.filter(pk__in=[row.pk for row in rows]).delete()
            removed += len(rows)
        return removed


def lock_configuration(cluster: Cluster) -> None:
    """Take the lock that every writer of a cluster's configuration takes first, within the caller's transaction.

    Each of their statements increments the cluster's configuration generation, so they wait for each other anyway. A
    writer that locked rows of quotas first could deadlock with another one.
    """
    Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).values_list("pk").first()


def manifest_of(row: Any) -> dict[str, Any]:
    """Return the manifest of a configuration object's row, in the newest version. Applying it again changes nothing."""
    kind = KINDS[type(row).__name__]
    manifest = kind.write(kind.spec_of(row))
    manifest["metadata"] |= server_metadata(row)
    return manifest


def objects(cluster: Cluster, kind: Kind) -> Any:
    """Return the rows of a kind, in order, with all data that their specs need."""
    return kind.model.objects.filter(cluster=cluster).prefetch_related(*kind.prefetch)


def _rows(cluster: Cluster, kind: Kind, metas: Iterable[ObjectMeta]) -> dict[str, Any]:
    names = {meta.name for meta in metas}
    rows = objects(cluster, kind).filter(name__in=names).select_for_update()
    keys = {meta.key for meta in metas}
    found = {(row.key if kind.namespaced else row.name): row for row in rows}
    return {key: row for key, row in found.items() if key in keys}


class _Writer:
    """Sorts submissions into new, changed and unchanged ones, then writes new ones and quotas in one statement each."""

    def __init__(self, cluster: Cluster, kind: Kind, applied_set: str, actor: str, now: datetime) -> None:
        self._cluster = cluster
        self._kind = kind
        self._applied_set = applied_set
        self._actor = actor
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
            if spec.values.get(_GROUPS):
                self._grouped.append((row, spec.values[_GROUPS]))
            self._note(submitted, Action.CREATED, row)
            return
        old = self._kind.spec_of(row)
        spec = keep_followed(old, spec)
        submitted = replace(submitted, spec=spec)
        self._check(submitted, row, old)
        unchanged = old == spec
        self._note(submitted, Action.UNCHANGED if unchanged else Action.CONFIGURED, row)
        if not unchanged:
            self._check_version(submitted, row)
            self._assign(row, submitted)
            self._changed.append(row)
            if old.values.get(_GROUPS) != spec.values.get(_GROUPS):
                self._grouped.append((row, spec.values[_GROUPS]))
        elif self._applied_set and row.applied_set != self._applied_set:
            self._kind.model.objects.filter(pk=row.pk).update(applied_set=self._applied_set)

    def store(self) -> None:
        self._kind.model.objects.bulk_create(self._new)
        columns = [
            "labels",
            "annotations",
            "api_version",
            "applied_set",
            "changed_by",
            "updated_at",
            *self._kind.columns,
        ]
        for row in self._changed:
            row.save(update_fields=[*columns, *self._kind.columns])
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
        row.changed_by = self._actor
        row.applied_set = self._applied_set or row.applied_set
        for column in self._kind.columns:
            setattr(row, column, submitted.spec.values[column])

    def _check_version(self, submitted: Submitted[KindSpec], row: Any) -> None:
        """Raise `Conflict` in Kubernetes' words for a manifest with an old resourceVersion.

        Not checked: an export of another cluster, which has other uids, and a manifest that changes nothing, such as
        a file applied twice.
        """
        meta = submitted.spec.meta
        if not meta.resource_version or meta.uid not in ("", str(row.uid)):
            return
        if meta.resource_version != str(row.generation):
            by_whom = f" by {row.changed_by}" if row.changed_by else ""
            rule = f"the object has been modified{by_whom}; its resourceVersion is {row.generation} now"
            remedy = "Please apply your changes to the latest version and try again, or omit resourceVersion."
            path = submitted.at("metadata.resourceVersion")
            error = LocatedError(submitted.report.document, path, meta.resource_version, rule, remedy, Conflict.reason)
            name = f'{self._kind.plural} "{meta.key}"'
            raise Conflict(f"Operation cannot be fulfilled on {name}: {rule}. Nothing was stored. {remedy}", [error])

    def _check(self, submitted: Submitted[KindSpec], row: Any, old: KindSpec) -> None:
        if row.deletion_requested_at is not None:
            submitted.report.error(
                submitted.at("metadata.name") if not submitted.in_json else "name",
                row.name,
                f"this {self._kind.name} is being deleted: {self._kind.users(self._cluster, row.name)}",
                "Wait until it is deleted, then apply it again.",
                MistakeReason.IN_USE,
            )
        for field in self._kind.stored:
            if field.refuses(old.values[field.name], submitted.spec.values[field.name]):
                submitted.report.error(
                    field.json_path if submitted.in_json else submitted.at(field.path),
                    None,
                    "field is immutable",
                    f"Delete the {self._kind.name} and create it again, or use another name.",
                    MistakeReason.IMMUTABLE,
                )

    def _note(self, submitted: Submitted[Any], action: Action, row: Any) -> None:
        namespace = row.namespace if self._kind.namespaced else ""
        self.applied.append(Applied(self._kind.name, namespace, row.name, action, tuple(submitted.report.warnings)))


def _after(cluster: Cluster, kind: Kind, specs: Sequence[Any], actor: str, now: datetime) -> None:
    """Apply the consequences of a change: a class's new value goes to every unfinished workload that names it
    (Kueue)."""
    if kind.name != "WorkloadPriorityClass":
        return
    for spec in specs:
        workloads = Workload.objects.filter(
            cluster=cluster, priority_class_kind="WorkloadPriorityClass", priority_class_name=spec.meta.name
        ).exclude(priority=spec.values["value"])
        keys = list(workloads.values_list("namespace", "name"))
        if keys:
            change_priority(
                cluster, keys, spec.values["value"], actor=actor, priority_class_name=spec.meta.name, now=now
            )


def _check_global_defaults(cluster: Cluster, submissions: Sequence[Submitted[Any]]) -> None:
    """Refuse a second PriorityClass that is the global default, as Kubernetes does."""
    named = {submitted.spec.meta.name for submitted in submissions}
    others = list(
        PriorityClass.objects.filter(cluster=cluster, global_default=True)
        .exclude(name__in=named)
        .values_list("name", flat=True)
    )
    for submitted in submissions:
        if not submitted.spec.values["global_default"]:
            continue
        if others:
            submitted.report.error(
                submitted.at("globalDefault"),
                True,
                f"PriorityClass {others[0]} is already the global default",
                "Set its globalDefault to false first.",
                MistakeReason.FORBIDDEN,
            )
        others.append(submitted.spec.meta.name)
