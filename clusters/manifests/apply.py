"""Apply: documents of any kinds, stored whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.models import Cluster
from accounts.services import cluster_settings
from accounts.services.access import Access, Verb, access_of
from accounts.services.apply_result import Action, Applied, refuse_mistakes
from accounts.services.cluster_settings import require_not_mirrored
from accounts.services.namespaces import create_missing_namespaces
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests.kinds import KINDS
from clusters.manifests.prune import prune_set
from clusters.manifests.read import Object, read_objects
from foundation.exceptions import Conflict, InvalidRequest, NotPermitted
from foundation.wake_ups import wake_scheduler
from gpus.manifests import configured_vendors, write_config_map
from gpus.services.node_manifests import apply_nodes
from gpus.vendors import VENDORS
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.manifests.documents import Document, read_documents
from queues.manifests.kueue_keys import QUEUE_NAME
from queues.services.cluster_objects import StoredObjects
from queues.services.configuration import apply_objects, finish_deletions
from queues.services.jobs import apply_jobs
from queues.services.owners import require_below, require_owner_of_submitted
from queues.services.pod_policy import check_jobs, check_priorities, check_workloads
from queues.services.submission import missing_queues
from queues.services.workload_objects import apply_workloads
from scheduling.manifest import LocatedError, MistakeReason

User = AbstractBaseUser | AnonymousUser | None
"""The user who applies; None for the local command line, which may do everything."""

LOCAL_ACTOR = "manage.py"
_MAX_SET_NAME = 253
OURS: Final = ("Configuration", "ConfigMap", "RoleBinding")
"""Kinds that determine how a cluster is read, even one whose objects only the cluster itself changes."""
_FIRST_JOB_KIND = next(iter(JOB_KINDS))
_LOCK = 0x6B756575
"""Namespace of the advisory locks that let only one apply at a time change a cluster."""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The result for each object, in the order of the call; the pruned ones follow."""

    objects: tuple[Applied, ...]
    dry_run: bool = False
    skipped: tuple[LocatedError, ...] = ()
    """The documents of unsupported kinds that were passed by."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings, each with its object."""
        return tuple(
            f"{applied.kind} {_key(applied)}: {warning}" for applied in self.objects for warning in applied.warnings
        )


def apply_manifests(
    cluster: Cluster,
    text: str | bytes,
    *,
    user: User,
    dry_run: bool = False,
    applied_set: str = "",
    prune: bool = False,
    force: bool = False,
    skip_unsupported: bool = False,
) -> ApplyResult:
    """Store the documents of a YAML text, all or none; each replaces the object of its name.

    `applied_set` names the documents that are applied together; `prune` then removes objects that this set applied
    earlier and no longer contains, except workloads with quota unless `force` is given. `dry_run` reports the changes
    and stores nothing. With `skip_unsupported`, documents of unsupported kinds are skipped. Raises `ManifestErrors`
    (with every mistake located), `HostileManifest`, `UnsupportedKind`, `NotPermitted` and `MirroredFromCluster`.
    """
    documents = read_documents(text)
    return apply_documents(
        cluster,
        documents,
        user=user,
        dry_run=dry_run,
        applied_set=applied_set,
        prune=prune,
        force=force,
        skip_unsupported=skip_unsupported,
    )


def apply_documents(
    cluster: Cluster,
    documents: Sequence[Document],
    *,
    user: User,
    dry_run: bool = False,
    applied_set: str = "",
    prune: bool = False,
    force: bool = False,
    skip_unsupported: bool = False,
    as_cluster: bool = False,
) -> ApplyResult:
    """Apply documents that were read already, perhaps from several files; see `apply_manifests`.

    `as_cluster` also changes the namespaces that the cluster has: for trials, which the caller rolls back.
    """
    if prune and not applied_set:
        raise InvalidRequest("prune requires the name of a set, whose earlier objects it removes.")
    if len(applied_set) > _MAX_SET_NAME:
        raise InvalidRequest(
            f"The name of a set has at most {_MAX_SET_NAME} characters; this one has {len(applied_set)}."
        )
    objects, skipped = read_objects(documents, StoredObjects(cluster), skip_unsupported=skip_unsupported)
    objects, left = _without_existing(cluster, objects)
    access = access_of(user, cluster) if user is not None else None
    _authorise(access, objects, prune)
    if prune or any(found.kind.name not in OURS for found in objects):
        require_not_mirrored(cluster)
    _check_policies(cluster, access, objects)
    actor = user.get_username() if user is not None else LOCAL_ACTOR
    now = timezone.now()
    try:
        with transaction.atomic():
            lock_applies(cluster, against_decisions=prune)
            objects, came = _without_existing(cluster, objects)
            _check_tree(access, cluster, objects)
            applied = _Call(cluster, actor, applied_set, now, as_cluster=as_cluster).store(objects)
            _check_tree(access, cluster, objects)
            if prune:
                kept = {(done.kind, _key(done)) for done in applied} | left | came
                applied += prune_set(cluster, applied_set, kept, actor=actor, force=force, now=now)
            finish_deletions(cluster)
            transaction.set_rollback(dry_run)
    except IntegrityError as error:
        raise Conflict(
            f"Another request stored one of these objects at the same time. Nothing was stored; apply again. {error}"
        ) from error
    return ApplyResult(tuple(applied), dry_run, tuple(skipped))


def _without_existing(cluster: Cluster, objects: list[Object]) -> tuple[list[Object], set[tuple[str, str]]]:
    """Return the objects without shared ones of a translation that exist already, and the kinds and keys of these."""
    left: set[tuple[str, str]] = set()
    for found in objects:
        if (
            found.shared
            and CONFIGURATION_KINDS[found.kind.name]
            .model.objects.filter(cluster=cluster, name=found.meta.name)
            .exists()
        ):
            left.add(found.identity)
    return [found for found in objects if not (found.shared and found.identity in left)], left


def _key(done: Applied) -> str:
    return f"{done.namespace}/{done.name}" if done.namespace else done.name


def lock_applies(cluster: Cluster, *, against_decisions: bool) -> None:
    """Make two applies to one cluster take turns, so that each sees all changes of the other.

    With `against_decisions`, the scheduler saves no decision meanwhile, so that no workload gets quota just before it
    is removed. The scheduler's batches lock the cluster's row first, and so does this.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK, cluster.pk])
    if against_decisions:
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)


def _authorise(access: Access | None, objects: Sequence[Object], prune: bool) -> None:
    """Raises `NotPermitted` that locates every object which the user may not touch."""
    if access is None:
        return
    if prune and not access.is_cluster_admin:
        raise NotPermitted("Pruning a set requires the role admin in all namespaces.")
    errors: list[LocatedError] = []
    for found in objects:
        verb: Verb = "protect" if getattr(found.submitted.spec, "never_preempt", False) else "submit"
        if access.may(verb, found.kind.name, found.meta.namespace) or access.may_in_tree(found.kind.name):
            continue  # `_check_tree` checks the objects of the tree
        where = f" in namespace {found.meta.namespace}" if found.meta.namespace else ""
        errors.append(
            LocatedError(
                found.submitted.report.document,
                found.submitted.at("kind"),
                found.kind.name,
                f"{access.username or 'an unknown user'} may not {verb} a {found.kind.name}{where}",
                "Ask a cluster admin for the role, or to apply the object.",
                MistakeReason.NOT_PERMITTED,
                found.submitted.report.source,
            )
        )
    if errors:
        raise NotPermitted(f"You may not apply {len(errors)} of {len(objects)} objects; nothing was stored.", errors)


def _check_tree(access: Access | None, cluster: Cluster, objects: Sequence[Object]) -> None:
    """Raises `NotPermitted` if a queue admin changes an object that is not below its cohort, before or after the
    change.
    """
    if access is not None and not access.is_cluster_admin:
        keys = [(found.kind.name, found.meta.namespace, found.meta.name) for found in objects]
        require_below(access, cluster, keys, may_create=True)


def _check_policies(cluster: Cluster, access: Access | None, objects: Sequence[Object]) -> None:
    """Raises `ManifestErrors` for values that the namespaces' policies forbid over REST."""
    if access is None:
        return
    jobs = [found.submitted for found in objects if found.kind.name in JOB_KINDS]
    check_jobs(cluster, jobs)
    protected = [job for job in jobs if access.may("protect", job.spec.kind, job.spec.meta.namespace)]
    check_priorities(cluster, [job for job in jobs if job not in protected])
    workloads = [found.submitted for found in objects if found.kind.name == "Workload"]
    for submitted in workloads:
        mine = access.may("protect", "Workload", submitted.spec.namespace)
        admins = frozenset({submitted.spec.namespace} if mine else ())
        submitted.report.errors += check_workloads(cluster, [submitted.spec], admins=admins)
    refuse_mistakes([*jobs, *workloads])
    require_owner_of_submitted(cluster, access, jobs, workloads)


class _Call:
    """Stores the objects of one request, kind by kind, referenced kinds first."""

    def __init__(self, cluster: Cluster, actor: str, applied_set: str, now: datetime, *, as_cluster: bool) -> None:
        self._cluster = cluster
        self._as_cluster = as_cluster
        self._actor = actor
        self._set = applied_set
        self._now = now

    def store(self, objects: Sequence[Object]) -> list[Applied]:
        """Store the objects and return the result for each, in the order given."""
        done: dict[int, Applied] = {}
        namespaced = [found for found in objects if found.meta.namespace]
        declared = {found.meta.name for found in objects if found.kind.name == "Namespace"}
        for name in KINDS:
            group = [found for found in objects if found.kind.name == name]
            if name == "Namespace":
                done |= self._paired(group, self._store(name, group))
                create_missing_namespaces(
                    self._cluster,
                    [
                        (found.meta.namespace, found.submitted)
                        for found in namespaced
                        if found.meta.namespace not in declared
                    ],
                    now=self._now,
                )
            elif group and name not in JOB_KINDS:
                if name == "Workload":
                    self._warn_of_missing_queues(group)
                done |= self._paired(group, self._store(name, group))
            elif name == _FIRST_JOB_KIND:
                jobs = [found for found in objects if found.kind.name in JOB_KINDS]
                done |= self._paired(jobs, self._store_jobs(jobs))
        return [done[id(found)] for found in objects]

    @staticmethod
    def _paired(objects: Sequence[Object], applied: Sequence[Applied]) -> dict[int, Applied]:
        return {id(found): result for found, result in zip(objects, applied, strict=True)}

    def _store(self, name: str, group: Sequence[Object]) -> list[Applied]:
        if not group:
            return []
        if name in CONFIGURATION_KINDS:
            return apply_objects(
                self._cluster,
                CONFIGURATION_KINDS[name],
                [found.submitted for found in group],
                actor=self._actor,
                applied_set=self._set,
                from_cluster=self._as_cluster,
                now=self._now,
            )
        if name == "Configuration":
            return [self._store_configuration(found) for found in group]
        if name == "ConfigMap":
            return [self._store_config_map(found) for found in group]
        if name == "Node":
            return self._store_nodes(group)
        return apply_workloads(
            self._cluster,
            [found.submitted for found in group],
            actor=self._actor,
            submitted_by=self._actor,
            applied_set=self._set,
            now=self._now,
        )

    def _store_jobs(self, jobs: Sequence[Object]) -> list[Applied]:
        if not jobs:
            return []
        self._warn_of_missing_queues(jobs)
        return apply_jobs(
            self._cluster,
            [found.submitted for found in jobs],
            actor=self._actor,
            submitted_by=self._actor,
            applied_set=self._set,
            now=self._now,
        )

    def _warn_of_missing_queues(self, objects: Sequence[Object]) -> None:
        """Warn of jobs whose LocalQueue does not exist: as in Kueue they are accepted and wait for it."""
        named = [(found.meta.namespace, found.submitted.spec.queue_name) for found in objects]
        missing = missing_queues(self._cluster, named)
        for found, key in zip(objects, named, strict=True):
            if key in missing:
                field = "spec.queueName" if found.kind.name == "Workload" else f"metadata.labels[{QUEUE_NAME}]"
                found.submitted.report.warn(found.submitted.at(field), missing[key])

    def _store_configuration(self, found: Object) -> Applied:
        with _located(found):
            action = cluster_settings.apply_configuration(
                self._cluster, found.submitted.spec, applied_set=self._set, read=found.meta
            )
        return self._applied(found, action)

    def _store_config_map(self, found: Object) -> Applied:
        spec = found.submitted.spec
        content = write_config_map(spec)
        with _located(found):
            action = cluster_settings.apply_device_plugin(
                self._cluster, spec.meta.key, content, spec.settings, applied_set=self._set, read=found.meta
            )
        return self._applied(found, action)

    def _store_nodes(self, group: Sequence[Object]) -> list[Applied]:
        settings = cluster_settings.device_plugin_settings(self._cluster)
        actions = apply_nodes(
            self._cluster.pk,
            [found.submitted.spec for found in group],
            vendors=configured_vendors(settings, VENDORS),
            applied_set=self._set,
            now=self._now,
        )
        if set(actions.values()) != {Action.UNCHANGED}:
            wake_scheduler(self._cluster.name)
        return [self._applied(found, Action(actions[found.meta.name])) for found in group]

    @staticmethod
    def _applied(found: Object, action: Action) -> Applied:
        warnings = tuple(found.submitted.report.warnings)
        return Applied(found.kind.name, found.meta.namespace, found.meta.name, action, warnings)


@contextmanager
def _located(found: Object) -> Iterator[None]:
    """A conflict of a setting names the document that it is in, and the item of a List."""
    try:
        yield
    except Conflict as refusal:
        document, at = found.submitted.report.document, found.submitted.at
        errors = [replace(error, document=document, path=at(error.path)) for error in refusal.errors]
        raise Conflict(refusal.message, errors) from refusal
