"""Carries out the changes that the controller's pass makes to plain pods: they start, stop and are let go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from accounts.models import Cluster
from clusters.client import PODS, ClusterClient, JsonObject
from clusters.jobs.cluster_objects import OneLook, RowsAndCluster
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.manifest import name_of
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.integrations import job_context
from clusters.jobs.live_job import shown_workload
from clusters.jobs.live_pods import look_at_pods
from clusters.jobs.objects import AdmittedWorkload, CannotStart, JobSource
from clusters.jobs.whole_objects import add_placement, difference
from clusters.push.desired_state import FlavorNodes, Places, admitted_workload, runs
from clusters.push.jobs.pushed_objects import PushedObjects
from queues.models import Workload
from queues.services.pod_groups.life import is_composed
from scheduling.model.times import rfc3339


class PlainPods:
    """The pods of one cluster that are workloads, alone or in groups."""

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
        """Start, stop, or let go the pods of a workload, as the pass writes it.

        Raises CannotStart, and JobError where an object that the workload refers to is missing.
        """
        found = [(source, pod) for source in sources if (pod := self._objects.there(source)) is not None]
        if not found:
            return  # the watcher handles a workload whose pods are gone
        by_name = {source.name: source for source, _ in found}
        workload = shown_workload(row, found[0][1]) if is_composed(row) else None
        place = partial(_place, by_name, admitted_workload(row, self._flavors, places))
        pods, roles = [pod for _, pod in found], [source.pod_set for source, _ in found]
        changes = look_at_pods(pods, roles, workload, self._context, place)
        for before, after in changes.patched:
            self._patch(before, after)
        for before, after in changes.deleted:
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


def _delete(client: ClusterClient, before: JsonObject, after: JsonObject) -> None:
    """Delete a pod, which says in a condition why, and has no finalizer any more if the pass has taken it off."""
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

    Where no node was chosen, Kueue's own gate holds a pod back until its topology is known.
    """
    (pod_set,) = [each for each in workload.pod_sets if each.name == info.name]
    topology = pod_set.topology if pod_set.nodes else None
    add_placement(sources[name_of(pod)], replace(workload, pod_sets=(replace(pod_set, topology=topology),)), [info])
