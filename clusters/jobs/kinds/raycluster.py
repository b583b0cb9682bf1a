"""ray.io/v1 RayCluster."""

from __future__ import annotations

from clusters.jobs.families.ray import RAY_CLUSTER_LABEL, RayJobKind
from clusters.jobs.framework.context import MULTIKUEUE_CONTROLLER, JobContext
from clusters.jobs.framework.errors import FieldErrors, forbidden, invalid
from clusters.jobs.framework.identity import is_elastic
from clusters.jobs.framework.job_kind import JobKind, Outcome
from clusters.jobs.framework.manifest import JsonObject, dig, name_of
from clusters.jobs.framework.scheduling_gates import has_gate
from queues.manifests import kueue_keys as keys


class RayCluster(RayJobKind):
    """A cluster that serves until it is deleted."""

    kind = "RayCluster"
    plural = "rayclusters"
    serves = True
    reads_topology_off_pod_sets = True
    autoscaling_rule = (
        "a kueue-managed RayCluster can use autoscaling only as an elastic job: "
        "enable the ElasticJobsViaWorkloadSlices feature gate "
        f'and set the "{keys.ELASTIC_JOB}": "true" annotation'
    )

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{RAY_CLUSTER_LABEL}={name_of(job)}"

    def outcome(self, job: JsonObject) -> Outcome:
        return Outcome(False, dig(job, "status", "state") != "failed", dig(job, "status", "reason") or "")

    def is_active(self, job: JsonObject) -> bool:
        return bool(dig(job, "status", "state") == "ready")

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return self.is_active(job)

    def check_cluster(self, job: JsonObject) -> FieldErrors:
        return [*super().check_cluster(job), *(self._check_elastic(job) if is_elastic(job) else ())]

    def _check_elastic(self, job: JsonObject) -> FieldErrors:
        rule = "an elastic job must have the ElasticJobSchedulingGate"
        errors = [
            invalid(f"{site.path.removesuffix('metadata')}spec.schedulingGates", "", rule)
            for site in self.sites(job)
            if not has_gate(site.template, keys.ELASTIC_JOB_GATE)
        ]
        if dig(job, "spec", "enableInTreeAutoscaling") and dig(job, *self.managed_by_path) == MULTIKUEUE_CONTROLLER:
            rule = "in-tree autoscaling is not supported for a MultiKueue-managed elastic RayCluster"
            errors.append(forbidden("spec.enableInTreeAutoscaling", rule))
        return errors

    def elastic_annotations(self, job: JsonObject, context: JobContext) -> dict[str, str]:
        return {}

    def slice_name(self, job: JsonObject) -> str:
        return JobKind.slice_name(self, job)
