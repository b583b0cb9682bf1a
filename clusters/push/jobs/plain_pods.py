"""Applies the controller pass's changes to plain pods: they start, stop and lose their finalizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from accounts.models import Cluster
from clusters.api_objects import NAMESPACES, PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.cluster_objects import OneLook, RowsAndCluster
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.manifest import name_of, uid_of
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.framework.store import Objects
from clusters.jobs.integrations import job_context
from clusters.jobs.live_job import shown_workload
from clusters.jobs.live_pods import PodChanges, look_at_pods
from clusters.jobs.objects import AdmittedWorkload, CannotStart, JobSource
from clusters.jobs.set_pods import pods_of_set
from clusters.jobs.whole_objects import add_placement, difference, gated_pod
from clusters.push.desired_state import FlavorNodes, Places, admitted_workload, runs
from clusters.push.jobs.pushed_objects import PushedObjects
from queues.manifests import kueue_keys as keys
from queues.models import Workload
from queues.services.pod_groups.life import is_composed
from scheduling.model.pod import DEFAULT_SCHEDULER
from scheduling.model.times import rfc3339


class PlainPods:
    """The pods of one cluster that form workloads, singly or in groups, and the pods of sets."""

    def __init__(self, cluster: Cluster, objects: PushedObjects, flavors: Mapping[str, FlavorNodes]) -> None:
        self._cluster = cluster
        self._objects = objects
        self._flavors = flavors
        self._looked_up = RowsAndCluster(cluster, objects.client)
        self._context: JobContext

    def look_up(self, now: datetime) -> None:
        """Read the settings, and forget the objects of the last batch."""
        objects = OneLook(self._cluster, self._looked_up)
        self._context = job_context(self._cluster.configuration, objects, rfc3339(now))

    def carry_out(self, sources: Sequence[JobSource], row: Workload, places: Places) -> None:
        """Start, stop or release the pods of a workload, as the pass writes them.

        Raises CannotStart, and JobError if an object that the workload refers to is missing.
        """
        found = [(source, pod) for source in sources if (pod := self._pod_of(source, row)) is not None]
        if not found:
            return  # the watcher handles a workload whose pods are gone
        by_name = {source.name: source for source, _ in found}
        workload = shown_workload(row, found[0][1]) if is_composed(row) else None
        place = partial(_place, by_name, admitted_workload(row, self._flavors, places))
        pods, roles = [pod for _, pod in found], [source.pod_set for source, _ in found]
        submitted = any(not source.found_in_cluster for source in sources)
        context = _of_submitted(self._context) if submitted else self._context
        changes = look_at_pods(pods, roles, workload, context, place)
        self._write(changes, row)
        started = {name_of(after): after for _, after in changes.patched}
        for source, pod in found:
            if not uid_of(pod):
                self._objects.apply(source, started.get(source.name, pod))

    def _pod_of(self, source: JobSource, row: Workload) -> JsonObject | None:
        """Return the pod in the cluster, or, for a submitted pod whose workload runs, the pod to create: it waits at
        its scheduling gate, and stays gated if another cluster runs it. None if there is neither."""
        there = self._objects.there(source)
        if there is None and runs(row) and not (source.found_in_cluster or source.ended):
            return gated_pod(source)
        return there

    def carry_out_set(self, source: JobSource, there: JsonObject, row: Workload, places: Places) -> None:
        """Mark, start, stop or release the pods that a StatefulSet or LeaderWorkerSet has for a workload.

        The set itself is not changed, because a changed template would replace its pods. Raises CannotStart, and
        JobError if an object that the workload refers to is missing.
        """
        kind, client = source.kind, self._objects.client
        assert isinstance(kind, ServingKind)
        maker, pods = pods_of_set(client, kind, there, row.annotations.get(keys.COMPONENT_INDEX, ""))
        if not pods:
            return
        place = partial(
            _place, dict.fromkeys(map(name_of, pods), source), admitted_workload(row, self._flavors, places)
        )
        self._write(look_at_pods(pods, [""] * len(pods), shown_workload(row, there), self._context, place, maker), row)

    def _write(self, changes: PodChanges, row: Workload) -> None:
        for before, after in changes.patched:
            if uid_of(before):
                self._patch(before, after)
        for before, after in changes.deleted:
            if uid_of(before):
                _delete(self._objects.client, before, after)
        if changes.cannot_start:
            raise CannotStart(changes.cannot_start)
        if changes.failure and runs(row):
            raise JobError(changes.failure)

    def _patch(self, before: JsonObject, after: JsonObject) -> None:
        patch = difference(before, after)
        if patch is not None:
            metadata = before["metadata"]
            self._objects.client.patch(PODS, metadata["namespace"], metadata["name"], patch)


class _Namespaces:
    """The same objects, and every namespace: that of a submitted job is created with its first pod."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        return {"metadata": {"name": name}} if kind == NAMESPACES.kind else self._objects.get(kind, namespace, name)

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        return self._objects.list(kind, namespace)


def _of_submitted(context: JobContext) -> JobContext:
    """Return the context for pods that were submitted here: REST has judged their namespace, and given them a queue."""
    settings = replace(context.settings, managed_jobs_namespace_selector=None, manage_jobs_without_queue_name=True)
    return replace(context, settings=settings, objects=_Namespaces(context.objects))


def _delete(client: ClusterClient, before: JsonObject, after: JsonObject) -> None:
    """Delete a pod, with a condition that gives the reason, and without the finalizer if the pass has removed it."""
    metadata = before["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    if before.get("status") != after.get("status"):
        # The list is replaced whole: conditions that another client added meanwhile must not be lost.
        seen = {key: metadata[key] for key in ("uid", "resourceVersion")}
        said = {"metadata": seen, "status": {"conditions": after["status"]["conditions"]}}
        client.patch(PODS, namespace, name, said, subresource="status")
    if before["metadata"].get("finalizers") != after["metadata"].get("finalizers"):
        released = {"uid": metadata["uid"], "finalizers": after["metadata"].get("finalizers") or []}
        client.patch(PODS, namespace, name, {"metadata": released})
    client.delete(PODS, namespace, name, uid=metadata["uid"])


def _place(sources: Mapping[str, JobSource], workload: AdmittedWorkload, pod: JsonObject, info: PodSetInfo) -> None:
    """Add our labels, the node where all pods of the set run, and the gate where each has a node of its own.

    Where no node was chosen, Kueue's own gate holds a pod back until its topology is known. A pod that HAMi's webhook
    has seen is bound by HAMi's scheduler.
    """
    source = sources[name_of(pod)]
    if (pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER) != DEFAULT_SCHEDULER:
        source = replace(source, hami_binds=True)
    (pod_set,) = [each for each in workload.pod_sets if each.name == info.name]
    topology = pod_set.topology if pod_set.nodes else None
    add_placement(source, replace(workload, pod_sets=(replace(pod_set, topology=topology),)), [info])
