"""ray.io/v1 RayService."""

from __future__ import annotations

from clusters.jobs.families.ray import RAY_CLUSTER_LABEL, RayJobKind, survives_its_head
from clusters.jobs.framework.conditions import is_true
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.job_kind import Outcome
from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, is_being_deleted


class RayService(RayJobKind):
    """A service on a cluster of its own; it never finishes."""

    kind = "RayService"
    plural = "rayservices"
    serves = True
    suspend_path = ("spec", "rayClusterConfig", "suspend")
    cluster_path = ("spec", "rayClusterConfig")
    error_path = "spec.rayClusterSpec"  # Kueue names the field so, though it is rayClusterConfig
    template_path = "spec.rayClusterSpec"

    def ray_cluster_name(self, job: JsonObject) -> str:
        return dig(job, "status", "activeServiceStatus", "rayClusterName") or ""

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        found = super().pod_sets(job, context)
        self.follow_autoscaler(found, job, context)
        return found

    def pod_label_selector(self, job: JsonObject) -> str:
        name = self.ray_cluster_name(job)
        return f"{RAY_CLUSTER_LABEL}={name}" if name else ""

    def outcome(self, job: JsonObject) -> Outcome:
        return Outcome(False, False, "Running")

    def is_active(self, job: JsonObject) -> bool:
        return is_true(job, "Ready")

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return self.is_active(job)

    def is_skipped(self, job: JsonObject) -> bool:
        """Return whether the service is being deleted and KubeRay cleans up Redis, which uses the quota of the
        service."""
        return is_being_deleted(job) and survives_its_head(self.cluster(job), annotations_of(job))
