"""Ownership of pods in a cluster that another scheduler runs: by their owner references, as the cluster reports
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clusters.api_objects import JsonObject
from clusters.jobs.objects import POD_SET_LABEL

_MAX_DEPTH = 10
"""The depth of owners above one another, as Kueue bounds it."""
_JOB_UID = "kueue.x-k8s.io/job-uid"


class Ownership:
    """The known owners of jobs, and the jobs and pods of workloads; all by their uids."""

    def __init__(self) -> None:
        self._controllers: dict[str, str] = {}
        self._workloads: dict[str, str] = {}
        self._pod_sets: dict[str, tuple[str, ...]] = {}

    def note_jobs(self, jobs: Iterable[JsonObject]) -> None:
        """Note which jobs are parts of other jobs."""
        for job in jobs:
            controller = controller_uid(job)
            if controller:
                self._controllers[job["metadata"]["uid"]] = controller

    def note_workload(self, uid: str, owners: Iterable[str], pod_sets: Iterable[str]) -> None:
        self._pod_sets[uid] = tuple(pod_sets)
        for owner in owners:
            self._workloads[owner] = uid

    def forget_workload(self, uid: str) -> None:
        self._pod_sets.pop(uid, None)
        for owner in [owner for owner, found in self._workloads.items() if found == uid]:
            del self._workloads[owner]

    def workload_of(self, pod: JsonObject) -> str:
        """Return the uid of the workload that a pod belongs to, which may be the pod's owner; empty if there is
        none."""
        uid = pod["metadata"]["uid"]
        if uid in self._workloads:
            return self._workloads[uid]
        owner = controller_uid(pod)
        for _ in range(_MAX_DEPTH):
            if not owner:
                return ""
            if owner in self._workloads:
                return self._workloads[owner]
            owner = self._controllers.get(owner, "")
        return ""

    def pod_set_of(self, pod: JsonObject, workload: str) -> str:
        """Return the pod set that Kueue's label names, or the only one that there is."""
        labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
        names = self._pod_sets.get(workload, ())
        return labels.get(POD_SET_LABEL) or (names[0] if len(names) == 1 else "")


def controller_uid(obj: JsonObject) -> str:
    """Return the uid of the object that manages this one; empty if there is none."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def parent_workload(workload: JsonObject) -> str:
    """Return the name of the Workload that owns this one as its variant (concurrent admission); otherwise empty."""
    for owner in workload["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "Workload" and str(owner.get("apiVersion")).startswith("kueue.x-k8s.io/"):
            return str(owner["name"])
    return ""


def owner_uids(workload: JsonObject) -> tuple[str, ...]:
    """Return the uids of the jobs or pods of a Workload object: its owners, and the job in its label."""
    metadata = workload["metadata"]
    owners = [str(owner["uid"]) for owner in metadata.get("ownerReferences") or ()]
    named = (metadata.get("labels") or {}).get(_JOB_UID)
    return tuple(dict.fromkeys([*owners, *([named] if named else [])]))
