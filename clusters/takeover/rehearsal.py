"""Runs Kueue's controller of jobs over copies of a cluster's objects, to see whether it would change running jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from accounts.models import Cluster
from clusters.api_objects import NAMESPACES, PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.controller import reconcile
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.managed_job import ManagedJob
from clusters.jobs.framework.manifest import dig, is_being_deleted, name_of, namespace_of
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.integrations import job_context
from clusters.jobs.kinds.pod import ManagedPod, Pod, group_name_of
from clusters.jobs.kinds.pod_group import PodGroup
from clusters.jobs.objects import PLACEMENT_GATE
from clusters.jobs.registry import KINDS
from clusters.served.kueue_kinds import KUEUE_KINDS, PRIORITY_CLASSES, newest

_OURS: Final = "would wait at kueueweb's scheduling gate kueueweb.io/placement, which Kueue never opens"


def objections(cluster: Cluster, client: ClusterClient) -> list[str]:
    """Return a line for each job of an admitted Workload that Kueue would change, with the harm or Kueue's failure.

    Raises ClusterError.
    """
    store = _copies(client)
    context = job_context(cluster.configuration, store)
    found = []
    for workload in store.list("Workload"):
        if not state.is_admitted(workload) or state.is_finished(workload) or state.is_evicted(workload):
            continue
        for job in _jobs_of(workload, store, context):
            why = _harm(job, workload, store)
            if why:
                found.append(f"{job.kind.kind} {job.namespace}/{job.name}: {why}")
    return found


def _copies(client: ClusterClient) -> ObjectStore:
    """Return all objects that the controller looks at, in memory. Objects of v1beta1 are read as v1beta2."""
    optional = [kind for versions in KUEUE_KINDS.values() for kind in versions]
    jobs = {kind.resource for kind in KINDS.values()} | {each for kind in KINDS.values() for each in kind.refers_to}
    served = client.served({*optional, *jobs})
    kinds = [*newest(served), *sorted(served & jobs - {PODS}, key=str), NAMESPACES, PRIORITY_CLASSES, PODS]
    return ObjectStore(item for kind in kinds for item in client.list(kind).items)


def _jobs_of(workload: JsonObject, store: ObjectStore, context: JobContext) -> Iterator[ManagedJob]:
    """Yield the job, the pod or the group of pods to which the Workload belongs."""
    namespace = namespace_of(workload)
    groups = set()
    for reference in workload["metadata"].get("ownerReferences") or ():
        kind = KINDS.get((reference.get("apiVersion", ""), reference.get("kind", "")))
        if kind is None or isinstance(kind, ServingKind):
            continue
        if not isinstance(kind, Pod):
            yield ManagedJob(kind, namespace, reference["name"], context, store)
            continue
        pod = store.get(Pod.kind, namespace, reference["name"])
        group = group_name_of(pod) if pod is not None else ""
        if group and group not in groups:
            groups.add(group)
            yield PodGroup(namespace, group, context, store)
        elif not group:
            yield ManagedPod(Pod(), namespace, reference["name"], context, store)


def _harm(job: ManagedJob, workload: JsonObject, store: ObjectStore) -> str:
    """Return the harm that Kueue would do to the job; empty if there is none."""
    if job.is_gone or job.outcome().finished:
        return ""
    if _is_gated(job):
        return f"its pods {_OURS}"
    names = [name for name in _pods_of(job) if not _is_gone(store.get(Pod.kind, job.namespace, name))]
    was_suspended, before = job.is_suspended(), store.get(job.kind.kind, job.namespace, job.name)
    failure = ""
    try:
        reconcile(job)
    except JobError as error:
        failure = f"Kueue fails on it: {error}"
    after = store.get("Workload", job.namespace, name_of(workload))
    if after is not None and state.is_finished(after):
        return str((state.condition_of(after, state.FINISHED) or {}).get("message", ""))
    gone = [name for name in names if _is_gone(store.get(Pod.kind, job.namespace, name))]
    if gone:
        return f"Kueue deletes its pods {', '.join(gone)}"
    now = store.get(job.kind.kind, job.namespace, job.name)
    if not names and not was_suspended and dig(before or {}, "spec") != dig(now or {}, "spec"):
        return f"Kueue stops it: it does not match its Workload {name_of(workload)}"
    if after is None:
        return f"Kueue deletes its Workload {name_of(workload)}: they do not match"
    return failure


def _is_gone(pod: JsonObject | None) -> bool:
    return pod is None or is_being_deleted(pod)


def _pods_of(job: ManagedJob) -> list[str]:
    """Return the pods of a group, or of a pod that is a job by itself."""
    if isinstance(job, PodGroup):
        return [name_of(pod) for pod in job.pods]
    return [job.name] if isinstance(job, ManagedPod) else []


def _is_gated(job: ManagedJob) -> bool:
    pods = job.pods if isinstance(job, PodGroup) else [job.object] if isinstance(job, ManagedPod) else None
    templates = pods if pods is not None else [template for _, template in job.kind.templates(job.object)]
    gates = [gate for each in templates for gate in dig(each, "spec", "schedulingGates") or ()]
    return any(gate.get("name") == PLACEMENT_GATE for gate in gates)
