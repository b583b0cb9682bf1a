"""apps/v1 Deployment: each of its pods is a workload of its own."""

from __future__ import annotations

from clusters.jobs.families.serving import ServingKind, check_selector
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldErrors
from clusters.jobs.framework.job_kind import integer_at
from clusters.jobs.framework.manifest import JsonObject, mapping_at, set_label
from clusters.jobs.framework.pod_sets import MAIN
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.kinds.pod import pod_set_of
from queues.manifests import kueue_keys as keys
from queues.manifests.job import WorkloadsPer


class Deployment(ServingKind):
    """Only its template is marked; the rest is done for the pods."""

    api_version = "apps/v1"
    kind = "Deployment"
    plural = "deployments"
    multikueue = False
    framework = "deployment"
    workloads_per = WorkloadsPer.POD
    short_names = ("deploy",)
    restart_policies = ("Always",)
    spec_integers = ("replicas",)
    spec_fields = frozenset(
        {
            "minReadySeconds", "paused", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "selector",
            "strategy", "template",
        }
    )  # fmt: skip
    pod_template_path = "spec.template"

    def templates(self, job: JsonObject) -> list[tuple[str, JsonObject]]:
        return [(MAIN, mapping_at(job, "spec", "template"))]

    def pod_sets(self, job: JsonObject, context: JobContext) -> list[JsonObject]:
        return [pod_set_of(mapping_at(job, "spec", "template"))]

    def hands_over(self, job: JsonObject) -> JsonObject:
        return mapping_at(job, "spec", "template")

    def workload_count(self, job: JsonObject) -> int:
        return integer_at(job, "spec", "replicas", default=1)

    def check_schema(self, job: JsonObject) -> FieldErrors:
        return check_selector(job)

    def mark_templates(self, job: JsonObject) -> None:
        template = mapping_at(job, "spec", "template")
        self.mark(template, job)
        set_label(template, keys.MANAGED, "true")

    def reconcile(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        """Do nothing: its pods have workloads of their own."""
