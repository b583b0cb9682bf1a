"""Jobs that are submitted again over REST: runs the controller's pass over the new manifest and the job's workloads.

The pass gets the changed job, and its workloads from the rows. `queues` stores the changes of the pass, and refuses a
change that would stop a running job.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from accounts.models import Cluster
from clusters.api_objects import NAMESPACES, JsonObject
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import reconcile
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import annotations_of, copied, name_of, namespace_of
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.pod_sets import counts_of
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.integrations import job_context
from clusters.jobs.live_job import Changes, changes_of, is_removed, look_at_set, shown_workload
from clusters.jobs.registry import JOB_KINDS
from queues.manifests import kueue_keys as keys
from queues.models import Workload
from queues.services.cluster_objects import StoredObjects
from queues.services.job_passes import PassResult, SubmittedJob
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import FinishedReason

_CLASSES: Final = ("PriorityClass", "WorkloadPriorityClass")
_CHOSEN: Final = (keys.QUEUE_NAME, keys.PRIORITY_CLASS, keys.PREBUILT_WORKLOAD, keys.MULTIKUEUE_ORIGIN)
"""The labels and annotations that REST has read itself."""
_DISTINGUISHING: Final = (keys.SLICE_NAME, keys.REPLACED_SLICE)


class _ManagedSubmission(ManagedJob):
    """A job that waits while its workloads are matched: the push starts and stops it."""

    is_top_level = True

    def is_skipped(self) -> bool:
        return False

    def is_suspended(self) -> bool:
        return True

    def is_active(self) -> bool:
        return False

    def start(self, workload: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        """Do nothing: the push starts it."""

    def stop(self, workload: JsonObject | None, reason: str, message: str) -> None:
        """Do nothing: the push stops it."""


class _ReferredObjects:
    """The objects that a submitted job refers to. REST has checked its namespace and chosen its priority, and a waiting
    job needs nothing from the flavors of its admission.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._stored = StoredObjects(cluster)

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        if kind == NAMESPACES.kind:
            return {"metadata": {"name": name}}
        if kind in _CLASSES:
            return {"metadata": {"name": name}, "value": 0}
        return {"spec": {}} if kind == "ResourceFlavor" else self._stored.get(kind, namespace, name)

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        return [] if kind in _CLASSES else self._stored.list(kind, namespace)


def pass_over_submission(
    cluster: Cluster, job: SubmittedJob, workloads: Sequence[Workload], now: datetime
) -> PassResult:
    """Run the pass over a job that is submitted again and its workloads. Stores nothing."""
    kind = JOB_KINDS[job.row.kind]
    configuration = {**cluster.configuration, "managedJobsNamespaceSelector": None, "integrations": {}}
    context = job_context(configuration, _ReferredObjects(cluster), rfc3339(now))
    for workload in workloads:
        workload.job = job.row
    try:
        shown = _shown(kind, job, context)
    except JobError as error:
        return PassResult({}, {}, {}, {}, str(error))
    if isinstance(kind, ServingKind):
        changes = look_at_set(kind, shown, None, workloads, context)
    else:
        changes = _look_at(kind, shown, workloads, context)
    return _result(changes, workloads)


def _shown(kind: JobKind, job: SubmittedJob, context: JobContext) -> JsonObject:
    """Return the job with the metadata that it gets in the cluster, and with the generation of its manifest."""
    manifest: Any = job.spec.manifest
    metadata: JsonObject = manifest["metadata"]
    labels, annotations = ({**(metadata.get(part) or {})} for part in ("labels", "annotations"))
    for key in _CHOSEN:
        labels.pop(key, None)
        annotations.pop(key, None)
    if job.queue_name:
        labels[keys.QUEUE_NAME] = job.queue_name
    if not job.scales:
        annotations.pop(keys.ELASTIC_JOB, None)
    identity = {"namespace": job.row.namespace, "name": job.row.name, "uid": str(job.row.uid)}
    shown: JsonObject = copied(manifest)
    shown["metadata"] = {
        **identity, "labels": labels, "annotations": annotations, "generation": job.row.generation + 1,
    }  # fmt: skip
    if not job.row.found_in_cluster:
        kind.fill_in(shown)
    kind.complete(shown, context)
    return shown


def _look_at(kind: JobKind, job: JsonObject, workloads: Sequence[Workload], context: JobContext) -> Changes:
    before = {each.name: shown_workload(each, job) for each in workloads if not is_removed(each, None)}
    store = ObjectStore([job, *before.values()])
    failure = ""
    try:
        reconcile(_ManagedSubmission(kind, namespace_of(job), name_of(job), context, store))
    except JobError as error:
        failure = str(error)
    changes = changes_of(before, store.present("Workload"))
    changes.failure = failure if not changes.removed else ""  # the pass ends so after it has removed workloads
    return changes


def _result(changes: Changes, workloads: Sequence[Workload]) -> PassResult:
    # Whether the pods can start is found out by the push, which knows their flavors.
    finished = {name: why for name, why in changes.finished.items() if why[0] != FinishedReason.FAILED_TO_START}
    kept = {
        each.name: counts_of(changes.changed[each.name]["spec"]["podSets"])
        if each.name in changes.changed
        else {pod_set.name: pod_set.count for pod_set in each.pod_sets.all()}
        for each in workloads
        if each.name not in changes.removed and each.name not in finished and not is_removed(each, None)
    }
    created = {
        name_of(made): {key: value for key, value in annotations_of(made).items() if key in _DISTINGUISHING and value}
        for made in changes.created
    }
    return PassResult(kept, created, changes.held, finished, changes.failure)
