"""batch/v1 CronJob: it creates Jobs, and each of them waits for its own admission."""

from __future__ import annotations

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors, required
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite
from clusters.jobs.framework.manifest import JsonObject, dig, mapping_at
from clusters.jobs.kinds.job import BatchJob
from queues.manifests import kueue_keys as keys


class CronJob(JobKind):
    """Kueue has no integration for it: the queue is named by the label of its Jobs."""

    api_version = "batch/v1"
    kind = "CronJob"
    plural = "cronjobs"
    multikueue = False
    short_names = ("cj",)
    optional = False
    has_workload = False
    restart_policies = BatchJob.restart_policies
    pod_template_path = "spec.jobTemplate.spec.template"
    spec_fields = frozenset(
        {
            "concurrencyPolicy", "failedJobsHistoryLimit", "jobTemplate", "schedule", "startingDeadlineSeconds",
            "successfulJobsHistoryLimit", "suspend", "timeZone",
        }
    )  # fmt: skip
    spec_integers = ("failedJobsHistoryLimit", "startingDeadlineSeconds", "successfulJobsHistoryLimit")

    def fill_in(self, job: JsonObject) -> None:
        BatchJob().fill_in(mapping_at(job, "spec", "jobTemplate"))
        labels = dig(job, "spec", "jobTemplate", "metadata", "labels") or {}
        if keys.QUEUE_NAME in labels:
            # They need admission from the start, even in namespaces that are not managed.
            job["spec"]["jobTemplate"]["spec"]["suspend"] = True

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        return []

    def workload_count(self, job: JsonObject) -> int:
        return 0

    def check_schema(self, job: JsonObject) -> FieldErrors:
        if len(str(dig(job, "spec", "schedule") or "").split()) != 5:
            return [required("spec.schedule", "a schedule of five fields is required, like `0 3 * * *`")]
        return []

    def check_create(self, job: JsonObject, context: JobContext) -> FieldErrors:
        return []

    def outcome(self, job: JsonObject) -> Outcome:
        return Outcome(False)

    def is_active(self, job: JsonObject) -> bool:
        return bool(dig(job, "status", "active"))

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return False
