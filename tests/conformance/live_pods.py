"""Recorded scenarios of pods on the road that live pods take: alone, in groups, and of the kinds that serve."""

from __future__ import annotations

import copy

from django.db.models import QuerySet

from clusters.api_objects import JsonObject
from clusters.client import WatchEvent
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework.manifest import name_of, namespace_of
from clusters.jobs.registry import JOB_KINDS, KINDS
from clusters.jobs.scenario import NOW
from clusters.push.desired_state import surroundings_of
from clusters.push.jobs.deleted_pods import release_deleted_pods
from clusters.push.sweep import PushReport, _Sweep
from clusters.sync.pod_groups import PodGroupSync
from clusters.sync.pods import PodSync
from clusters.sync.sets import SetPodSync
from clusters.sync.watcher import job_sync
from queues.manifests.pod_group import POD, POD_GROUP
from queues.models import Workload
from queues.services.workload_objects import workload_manifest
from scheduling.manifest.merge_patch import merge_patch
from tests.conformance.live_jobs import MAX_ROUNDS, START, LiveScenario, StoredCluster, as_served, is_whole


class LivePods(LiveScenario):
    """A scenario whose pods the watcher and the push see."""

    def live(self) -> list[JsonObject]:
        self.client = StoredCluster(self.store)
        self.pod_syncs = (PodSync(self.cluster), PodGroupSync(self.cluster, self.client), SetPodSync(self.cluster))
        self.seen: dict[str, JsonObject] = {}
        self.seconds = START.timestamp()
        if "pods" in self.scenario:
            self.kind, self.key = KINDS["v1", "Pod"], (POD_GROUP, "", "")
            for pod in self.scenario["pods"]:
                self._make_pod(pod)
        else:
            obj = copy.deepcopy(self.scenario["object"])
            self.kind = JOB_KINDS[obj["kind"]]
            self.kind.default(obj, self.context)
            self.object = obj
            self.key = (obj["kind"], namespace_of(obj), name_of(obj))
            self.store.write(merge_patch(obj, {"metadata": {"creationTimestamp": NOW}}))
        self.job_sync = None
        if isinstance(self.kind, ServingKind):
            self.job_sync = job_sync(self.cluster, self.kind, self.client)
        self._settle()
        return [self._now("create"), *(self._after(step) for step in self.scenario.get("steps") or ())]

    def _after(self, step: JsonObject) -> JsonObject:
        actions = {
            "admit": self._admit_rows, "evict": self._evict_rows, "patch": self._patch,
            "deleteWorkload": self._delete_rows, "createPods": self._create_pods, "patchPod": self._patch_pod,
            "deletePod": self._delete_pod,
        }  # fmt: skip
        actions[step["op"]](step)
        self._settle()
        return self._now(step["op"])

    def _settle(self) -> str:
        before = (self.store.writes, self._rows())
        for _ in range(MAX_ROUNDS):
            self.seconds += 100
            self._watch()
            around = surroundings_of(self.cluster, "")
            sweep = _Sweep(self.cluster, self.client, PushReport(), lambda: self.seconds, around)
            sweep.tell()
            self._schedule()
            now = (self.store.writes, self._rows())
            if now == before:
                return ""
            before = now
        return ""

    def _watch(self) -> None:
        if self.job_sync is not None:
            obj = self.store.get(*self.key)
            if obj is not None:
                self.job_sync.apply([WatchEvent("MODIFIED", obj)], self.seconds)
        pods = {pod["metadata"]["uid"]: pod for pod in map(as_served, self.store.list("Pod")) if pod is not None}
        events = [WatchEvent("DELETED", pod) for uid, pod in self.seen.items() if uid not in pods]
        events += [WatchEvent("MODIFIED", pod) for uid, pod in pods.items() if self.seen.get(uid) != pod]
        self.seen = pods
        for sync in self.pod_syncs:
            sync.apply(events, self.seconds)
            if not isinstance(sync, SetPodSync):
                sync.tick(self.seconds)
        kept = [pod for pod in pods.values() if pod["metadata"].get("deletionTimestamp")]
        release_deleted_pods(self.cluster, self.client, [(namespace_of(pod), name_of(pod)) for pod in kept])

    def _holding(self) -> QuerySet[Workload]:
        """The workloads with quota of pods: no controller here stops the jobs of others."""
        return super()._holding().filter(job__kind__in={POD, POD_GROUP, self.kind.kind})

    def _runs(self) -> bool:
        return False

    def _now(self, op: str) -> JsonObject:
        obj = self.store.get(*self.key)
        rows = Workload.objects.filter(cluster=self.cluster).prefetch_related("pod_sets").select_related("job")
        return {
            "op": op,
            "object": self.kind.as_kept(obj) if obj is not None else None,
            "workloads": [workload_manifest(row) for row in rows.order_by("name") if is_whole(row)],
            "pods": self._shown_pods(),
        }
