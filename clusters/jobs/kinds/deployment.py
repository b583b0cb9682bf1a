"""apps/v1 Deployment: each of its pods is a workload by itself."""

from __future__ import annotations

from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.manifest import JsonObject, mapping_at, set_label
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.kinds.serving import ServingKind
from queues.manifests import kueue_keys as keys


class Deployment(ServingKind):
    """Only its template is marked; the rest is done for the pods."""

    api_version = "apps/v1"
    kind = "Deployment"
    plural = "deployments"
    framework = "deployment"

    def mark_templates(self, job: JsonObject) -> None:
        template = mapping_at(job, "spec", "template")
        self.mark(template, job)
        set_label(template, keys.MANAGED, "true")

    def reconcile(self, namespace: str, name: str, context: JobContext, store: ObjectStore) -> None:
        """Nothing: its pods have workloads of their own."""
