"""Stores the jobs of the JobFlows in a cluster that name a queue, and writes the status of each flow back.

Volcano's controller creates the jobs of all flows in its cluster. Ours takes the flows with Kueue's label of the queue,
as Kueue takes jobs. Their jobs are rows of ours, as those of a flow over REST, with the uid of the flow in an
annotation.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from django.db import DataError, transaction

from accounts.models import Cluster
from accounts.services.apply_result import refuse_mistakes
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JOB_FLOWS, JsonObject
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.jobs.framework.manifest import annotations_of, dig, is_being_deleted, labels_of, name_of, namespace_of
from clusters.manifests.apply import lock_applies
from clusters.manifests.read import read_objects
from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.translations import read_template
from clusters.manifests.translation.volcano_field_types import without_nulls
from clusters.manifests.translation.volcano_job_flows import named_flows, translate_flow
from clusters.sync.present import name_key, present, uid_of
from clusters.sync.volcano.flow_status import ENDED, flow_status
from foundation.exceptions import KueuewebError, ManifestErrors
from queues.manifests import kueue_keys as keys
from queues.manifests.documents import Document
from queues.models import Job
from queues.services.cluster_objects import StoredObjects
from queues.services.flows.flow_deletion import delete_flow
from queues.services.flows.job_flows import FlowJobPhase, FlowPhase, JobFlow, job_flows
from queues.services.jobs import apply_jobs, delete_jobs
from queues.services.pod_policy import check_jobs, check_priorities
from queues.services.withdrawn_jobs import free_names
from scheduling.manifest import LocatedError, MistakeReason

_log = logging.getLogger(__name__)

_ACTOR: Final = "watcher"
_REFUSED: Final = "refused"


class TemplateSync:
    """Keeps the JobTemplates of a cluster, from which the flows make jobs."""

    def __init__(self) -> None:
        self.by_key: dict[str, JsonObject] = {}
        self.is_listed = False

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        found = present(items, name_key)
        if found.listed:
            self.by_key, self.is_listed = {}, True
        self.by_key |= found.objects
        for key in found.gone:
            self.by_key.pop(key, None)

    def of_flow(self, flow: JsonObject) -> dict[str, JsonObject]:
        """Return the templates that a flow names, by name."""
        keys_of = {name: f"{namespace_of(flow)}/{name}" for name in named_flows(flow)}
        return {name: self.by_key[key] for name, key in keys_of.items() if key in self.by_key}


class FlowSync:
    """Keeps the jobs of the flows of one cluster in step with them.

    A flow is read when it or one of its templates changes, and not after it has ended: as in Volcano, a new flow is
    made to run it again.
    """

    def __init__(self, cluster: Cluster, client: ClusterClient, templates: TemplateSync) -> None:
        self._cluster = cluster
        self._client = client
        self._templates = templates
        self._flows: dict[str, JsonObject] = {}
        self._read: dict[str, tuple[object, ...]] = {}
        """uid -> the versions of the flow and its templates that were read."""
        self._refused: set[str] = set()
        """uids of refused flows, which are tried again with each list."""
        self._sent: dict[str, JsonObject] = {}
        """uid -> the status that the cluster has."""
        self._settled: set[str] = set()
        """uids of flows that have ended, whose status is written and whose jobs are deleted if they were to be."""

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        found = present(items, name_key)
        there = {key: uid_of(flow) for key, flow in found.objects.items()}
        gone = {uid_of(flow) for flow in found.gone.values()}
        gone |= {uid for key, flow in self._flows.items() if (uid := uid_of(flow)) != there.get(key, uid)}
        if found.listed:
            self._flows = {}
            for uid in self._refused:
                self._read.pop(uid, None)
        self._flows |= {key: flow for key, flow in found.objects.items() if keys.QUEUE_NAME in labels_of(flow)}
        for key in found.gone:
            self._flows.pop(key, None)
        at = datetime.fromtimestamp(now, UTC)
        self._delete_jobs(gone, set(there.values()) if found.listed else None, at)

    def tick(self, now: float) -> None:
        """Read the flows that have changed, and write the statuses that have."""
        waiting = {key: flow for key, flow in self._flows.items() if uid_of(flow) not in self._settled}
        if not waiting or not self._templates.is_listed or self._cluster.kueue_is_alive:
            return
        at = datetime.fromtimestamp(now, UTC)
        for flow in waiting.values():
            self._take(flow, at)
        named = {(namespace_of(flow), name_of(flow)) for flow in waiting.values()}
        states = {f"{state.namespace}/{state.name}": state for state in job_flows(self._cluster, only=named)}
        for key, flow in waiting.items():
            try:
                self._write_status(flow, states.get(key), at)
            except ClusterUnreachable as error:
                _log.warning("Statuses of flows of cluster %s are delayed: %s", self._cluster.name, error)
                return
            except ClusterError as error:
                _log.warning("The status of JobFlow %s is delayed: %s", key, error)

    # Jobs of the flows

    def _take(self, flow: JsonObject, at: datetime) -> None:
        templates = self._templates.of_flow(flow)
        versions = (_version(flow), labels_of(flow).get(keys.QUEUE_NAME), *sorted(map(_version, templates.values())))
        has_ended = dig(flow, "status", "state", "phase") in ENDED
        if has_ended or is_being_deleted(flow) or self._read.get(uid_of(flow)) == versions:
            return
        self._refused.discard(uid_of(flow))
        made, refused = self._translated(flow, templates)
        try:
            if not refused:
                self._store(flow, made.manifests, at)
        except ManifestErrors as error:
            refused = {", ".join(filter(None, (each.source, each.path))): each.rule for each in error.errors}
        except KueuewebError as error:
            refused = {"": str(error)}
        except DataError as error:
            refused = {"": f"cannot be stored: {error}"}
        # Not before: the flow is read again after a failure of the database.
        self._read[uid_of(flow)] = versions
        if refused:
            self._refused.add(uid_of(flow))
        self._note(flow, made, refused)

    @staticmethod
    def _translated(flow: JsonObject, templates: Mapping[str, JsonObject]) -> tuple[Translation, dict[str, str]]:
        mistakes = {
            f"JobTemplate {name}, {refusal.path}": refusal.rule
            for name, template in templates.items()
            for refusal in read_template(template).refusals
        }
        if mistakes:
            return Translation("JobFlow"), mistakes
        made = translate_flow(flow, {name: without_nulls(template) for name, template in templates.items()})
        return made, {refusal.path: f"{refusal.rule}. {refusal.remedy}".rstrip(" .") for refusal in made.refusals}

    def _store(self, flow: JsonObject, manifests: Sequence[JsonObject], at: datetime) -> None:
        """Store the jobs, all or none. Raises `KueuewebError`."""
        names = {(str(manifest["kind"]), str(manifest["metadata"]["name"])) for manifest in manifests}
        ours = [_noted(manifest, uid_of(flow)) for manifest in manifests if name_of(manifest) not in _ended_jobs(flow)]
        documents = [
            Document(number, manifest, f"{manifest['kind']} {name_of(manifest)}")
            for number, manifest in enumerate(ours)
        ]
        objects = read_objects(documents, StoredObjects(self._cluster))[0] if documents else []
        submitted = [found.submitted for found in objects]
        check_jobs(self._cluster, submitted)  # the user who makes a flow may not be permitted to make its pods
        check_priorities(self._cluster, submitted)
        refuse_mistakes(submitted)
        with transaction.atomic():
            lock_applies(self._cluster, against_decisions=False)
            self._delete_unstarted(flow, names, at)
            free_names(self._cluster, [(kind, namespace_of(flow), name) for kind, name in names])
            self._refuse_names_of_others(flow, names)
            apply_jobs(self._cluster, submitted, actor=_ACTOR, now=at)

    def _refuse_names_of_others(self, flow: JsonObject, names: Collection[tuple[str, str]]) -> None:
        rows = Job.objects.filter(
            cluster=self._cluster, namespace=namespace_of(flow), name__in={name for _, name in names}
        )
        rows = rows.filter(deletion_requested_at=None).defer("manifest")
        others = [row for row in rows if (row.kind, row.name) in names and not _is_of(row, flow)]
        if others:
            rule = f"Duplicate value: {', '.join(f'{row.kind} {row.name}' for row in others)} exists"
            remedy = "Delete it, or name the flow otherwise."
            path, value = "metadata.name", name_of(flow)
            raise ManifestErrors([LocatedError(0, path, value, rule, remedy, MistakeReason.DUPLICATE)])

    def _delete_unstarted(self, flow: JsonObject, names: Collection[tuple[str, str]], at: datetime) -> None:
        """Delete the jobs that the flow no longer names, if they have not started: Volcano would not create them."""
        rows = self._rows(namespace=namespace_of(flow), uids={uid_of(flow)})
        left = [row for row in rows if (row.kind, row.name) not in names and not _has_started(row)]
        if left:
            delete_jobs(self._cluster, left, actor=_ACTOR, now=at)

    def _rows(self, *, uids: Collection[str] | None = None, namespace: str = "") -> list[Job]:
        rows = Job.objects.filter(
            cluster=self._cluster, labels__has_key=keys.BY_JOB_FLOW, annotations__has_key=keys.JOB_FLOW_UID
        )
        if namespace:
            rows = rows.filter(namespace=namespace)
        if uids is not None:
            rows = rows.filter(**{f"annotations__{keys.JOB_FLOW_UID}__in": [*uids]})
        return list(rows.filter(deletion_requested_at=None).order_by("pk").prefetch_related("workloads"))

    def _delete_jobs(self, gone: Collection[str], there: Collection[str] | None, at: datetime) -> None:
        """Delete the jobs of deleted flows: those of `gone` or, after a list, all but the ones `there`."""
        if not gone and there is None:
            return
        rows = self._rows(uids=gone if there is None else None)
        lost = [row for row in rows if there is None or row.annotations[keys.JOB_FLOW_UID] not in there]
        if lost:
            with transaction.atomic():
                delete_jobs(self._cluster, lost, actor=_ACTOR, now=at)
        for uid in gone:
            self._read.pop(uid, None)
            self._refused.discard(uid)
            self._sent.pop(uid, None)
            self._settled.discard(uid)

    # Writes to the cluster

    def _note(self, flow: JsonObject, made: Translation, refused: Mapping[str, str]) -> None:
        """Write what became of each field into an annotation of the flow."""
        told = json.loads(made.note()) | ({_REFUSED: dict(refused)} if refused else {})
        if refused:
            _log.warning("JobFlow %s of cluster %s is refused: %s", name_key(flow), self._cluster.name, dict(refused))
        text = json.dumps(told, ensure_ascii=False)
        if annotations_of(flow).get(keys.TRANSLATED) == text:
            return
        patch = {"metadata": {"annotations": {keys.TRANSLATED: text}}}
        try:
            self._client.patch(JOB_FLOWS, namespace_of(flow), name_of(flow), patch)
        except ClusterError as error:
            _log.warning("JobFlow %s cannot be annotated: %s", name_key(flow), error)

    def _write_status(self, flow: JsonObject, state: JobFlow | None, at: datetime) -> None:
        uid = uid_of(flow)
        phase = dig(flow, "status", "state", "phase")
        is_left = state is not None and any(row.deletion_requested_at is None for row in state.rows)
        if phase in ENDED and not is_left:
            self._settled.add(uid)
        if state is None or uid in self._settled or not all(_is_of(row, flow) for row in state.rows):
            return
        wanted = flow_status(state)
        if self._sent.get(uid) != wanted:
            patch = {"status": wanted}
            self._client.patch(JOB_FLOWS, namespace_of(flow), name_of(flow), patch, subresource="status")
            self._sent[uid] = wanted
        elif state.phase is FlowPhase.SUCCEED and state.is_deleted_when_done:
            delete_flow(self._cluster, state, actor=_ACTOR, now=at)  # the cluster knows that the flow has succeeded
            self._settled.add(uid)
        elif state.phase in ENDED and not any(map(state.names, (FlowJobPhase.PENDING, FlowJobPhase.RUNNING))):
            self._settled.add(uid)


def _version(obj: JsonObject) -> tuple[str, int]:
    return uid_of(obj), int(obj["metadata"].get("generation") or 0)


def _noted(manifest: JsonObject, uid: str) -> JsonObject:
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), keys.JOB_FLOW_UID: uid}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _ended_jobs(flow: JsonObject) -> set[str]:
    """Return the jobs that have ended by the flow's status: one that its TTL has deleted does not run again."""
    status = flow.get("status") or {}
    lists = ("completedJobs", "failedJobs", "terminatedJobs")
    return {str(name) for each in lists for name in status.get(each) or ()}


def _is_of(row: Job, flow: JsonObject) -> bool:
    return bool(row.annotations.get(keys.JOB_FLOW_UID) == uid_of(flow))


def _has_started(row: Job) -> bool:
    return any(each.quota_reserved_at is not None or each.finished_at is not None for each in row.workloads.all())
