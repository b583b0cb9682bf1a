"""jobset.x-k8s.io/v1alpha2 JobSet: a pod set per replicated job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from clusters.jobs.framework.conditions import condition_of, is_true
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite, integer_at
from clusters.jobs.framework.manifest import JsonObject, dig, mapping_at, name_of
from clusters.jobs.framework.topology import PodLabels
from queues.manifests import kueue_keys as keys

JOBSET_NAME_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
JOB_INDEX_LABEL: Final = "jobset.sigs.k8s.io/job-index"


class JobSet(JobKind):
    """Start and stop are the shared ones, on every replicated job."""

    api_version = "jobset.x-k8s.io/v1alpha2"
    kind = "JobSet"
    plural = "jobsets"
    managed_by_path = ("spec", "managedBy")
    own_manager = "jobset.sigs.k8s.io/jobset-controller"
    reads_topology_off_pod_sets = True
    kept_texts = frozenset({"message"})
    omitted_zeros = frozenset({"restarts", "restartsCountTowardsMax"})

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        return [
            TemplateSite(
                replicated["name"],
                replicas_of(replicated) * pods_per_replica(replicated),
                mapping_at(replicated, "template", "spec", "template"),
                f"spec.replicatedJobs[{index}].template.spec.template.metadata",
                PodLabels(keys.JOB_COMPLETION_INDEX, JOB_INDEX_LABEL, replicas_of(replicated)),
            )
            for index, replicated in enumerate(dig(job, "spec", "replicatedJobs") or ())
        ]

    def fill_in(self, job: JsonObject) -> None:
        for replicated in _replicated_jobs(job):
            replicated.setdefault("replicas", 1)

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{JOBSET_NAME_LABEL}={name_of(job)}"

    def outcome(self, job: JsonObject) -> Outcome:
        return completed_or_failed(job, "Completed")

    def is_active(self, job: JsonObject) -> bool:
        return any_active(dig(job, "status", "replicatedJobsStatus") or ())

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return all_ready(_replicated_jobs(job), dig(job, "status", "replicatedJobsStatus") or ())

    def reclaimable_pods(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        return reclaimable(_replicated_jobs(job), dig(job, "status", "replicatedJobsStatus") or ())


def _replicated_jobs(job: JsonObject) -> list[JsonObject]:
    return dig(job, "spec", "replicatedJobs") or []


def replicas_of(replicated: Mapping[str, Any]) -> int:
    return integer_at(dict(replicated), "replicas")


def pods_per_replica(replicated: Mapping[str, Any]) -> int:
    """Return the pods of one Job of a replicated job."""
    spec = dig(replicated, "template", "spec") or {}
    parallelism = integer_at(spec, "parallelism", default=1)
    return min(parallelism, integer_at(spec, "completions", default=parallelism))


def completed_or_failed(job: JsonObject, completed: str) -> Outcome:
    """Return the outcome of a job that reports it by conditions; completion takes precedence over failure."""
    for kind, success in ((completed, True), ("Failed", False)):
        if is_true(job, kind):
            condition = condition_of(job, kind) or {}
            return Outcome(True, success, condition.get("message") or "")
    return Outcome(False, False)


def any_active(statuses: Iterable[JsonObject]) -> bool:
    return any(integer_at(status, "active") > 0 for status in statuses)


def all_ready(replicated_jobs: Iterable[JsonObject], statuses: Iterable[JsonObject]) -> bool:
    """Return whether as many Jobs (not pods) are ready or done as there are replicas."""
    ready = sum(integer_at(status, "ready") + integer_at(status, "succeeded") for status in statuses)
    return ready == sum(replicas_of(replicated) for replicated in replicated_jobs)


def reclaimable(replicated_jobs: Iterable[JsonObject], statuses: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the pods of the Jobs that succeeded."""
    succeeded = {status.get("name"): integer_at(status, "succeeded") for status in statuses}
    return [
        {"name": replicated["name"].lower(), "count": done * pods_per_replica(replicated)}
        for replicated in replicated_jobs
        if 0 < (done := succeeded.get(replicated["name"], 0)) <= replicas_of(replicated)
    ]
