"""ray.io/v1 RayJob."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final

from clusters.jobs.families.ray import RAY_CLUSTER_LABEL, RayJobKind
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, JobError, invalid, required
from clusters.jobs.framework.job_kind import Outcome, TemplateSite
from clusters.jobs.framework.manifest import JsonObject, dig, mapping_at
from clusters.jobs.framework.pod_set_info import PodSetInfo

_SUBMITTER: Final = "submitter"
_CONTAINER: Final = "ray-job-submitter"
_RESOURCES: Final = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
"""KubeRay's requests of the pod that submits, unless the job has a template for it."""


class RayJob(RayJobKind):
    """A job on its own cluster, and its submitter there: a pod, a container of the head, or neither."""

    kind = "RayJob"
    plural = "rayjobs"
    cluster_path = ("spec", "rayClusterSpec")
    error_path = "spec.rayClusterSpec"
    template_path = "spec.rayClusterSpec"
    gates_templates = False

    def fill_in(self, job: JsonObject) -> None:
        mapping_at(job, "spec").setdefault("submissionMode", "K8sJobMode")

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        found = super().sites(job)
        if _has_submitter_pod(job):
            if dig(job, "spec", "submitterPodTemplate") is None:
                job["spec"]["submitterPodTemplate"] = self._submitter_template(job)
            template = mapping_at(job, "spec", "submitterPodTemplate")
            found.append(TemplateSite(_SUBMITTER, 1, template, "spec.submitterPodTemplate.metadata"))
        return found

    def _submitter_template(self, job: JsonObject) -> JsonObject:
        head = dig(self.cluster(job), "headGroupSpec", "template", "spec", "containers") or [{}]
        container = {"name": _CONTAINER, "image": head[0].get("image", ""), "resources": copy.deepcopy(_RESOURCES)}
        return {"spec": {"containers": [container], "restartPolicy": "Never"}}

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        if dig(job, "spec", "rayClusterSpec") is None:
            raise JobError("a RayJob without rayClusterSpec has no pods of its own")
        job = copy.deepcopy(job)
        found = super().pod_sets(job, context)
        if dig(job, "spec", "submissionMode") == "SidecarMode":
            container = {"name": _CONTAINER, "resources": copy.deepcopy(_RESOURCES)}
            mapping_at(found[0], "template", "spec").setdefault("containers", []).append(container)
        self.follow_autoscaler(found, job, context)
        return found

    def ray_cluster_name(self, job: JsonObject) -> str:
        return dig(job, "status", "rayClusterName") or ""

    def pod_label_selector(self, job: JsonObject) -> str:
        name = self.ray_cluster_name(job)
        return f"{RAY_CLUSTER_LABEL}={name}" if name else ""

    def restore(self, job: JsonObject, infos: Sequence[PodSetInfo]) -> None:
        written = dig(job, "spec", "submitterPodTemplate") is not None
        super().restore(job, infos)
        if not written:
            mapping_at(job, "spec").pop("submitterPodTemplate", None)

    # The status

    def outcome(self, job: JsonObject) -> Outcome:
        status = job.get("status") or {}
        finished = status.get("jobDeploymentStatus") in ("Failed", "Complete")
        return Outcome(finished, status.get("jobStatus") == "SUCCEEDED", status.get("message") or "")

    def is_active(self, job: JsonObject) -> bool:
        return (dig(job, "status", "jobDeploymentStatus") or "") not in ("", "Suspended")

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return bool(dig(job, "status", "rayClusterStatus", "state") == "ready")

    def is_on_hold(self, job: JsonObject) -> bool:
        return bool(dig(job, "status", "jobDeploymentStatus") == "ValidationFailed")

    def is_skipped(self, job: JsonObject) -> bool:
        """Return whether the job uses an existing cluster, and so has no pods to wait for."""
        return bool(dig(job, "spec", "clusterSelector"))

    # The webhooks

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        if not self.is_watched_over(job, context):
            return super().check_create(job, context)
        selector, cluster = dig(job, "spec", "clusterSelector"), dig(job, "spec", "rayClusterSpec")
        if selector and cluster is not None:
            return [invalid("spec.clusterSelector", selector, "a kueue managed job should not use an existing cluster")]
        if selector:
            return []
        if cluster is None:
            rule = "rayClusterSpec is required for Kueue-managed jobs that don't use clusterSelector"
            return [required("spec.rayClusterSpec", rule)]
        return super().check_create(job, context)

    def check_cluster(self, job: JsonObject) -> FieldErrors:
        errors = super().check_cluster(job)
        if not dig(job, "spec", "shutdownAfterJobFinishes"):
            rule = "a kueue managed job should delete the cluster after finishing"
            errors.append(invalid("spec.shutdownAfterJobFinishes", False, rule))
        return errors


def _has_submitter_pod(job: JsonObject) -> bool:
    return bool(dig(job, "spec", "submissionMode") == "K8sJobMode")
