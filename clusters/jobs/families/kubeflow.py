"""The kinds of Kubeflow's training operator, and MPIJob: replica specs by role."""

from __future__ import annotations

from typing import ClassVar, Final

from clusters.jobs.framework.conditions import is_true
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.job_kind import JobKind, Outcome, TemplateSite, integer_at
from clusters.jobs.framework.manifest import JsonObject, dig, name_of
from clusters.jobs.framework.topology import PodLabels

_REPLICA_INDEX_LABEL: Final = "training.kubeflow.org/replica-index"
_JOB_NAME_LABEL: Final = "training.kubeflow.org/job-name"
_OPERATOR_LABEL: Final = "training.kubeflow.org/operator-name"


class ReplicaSpecsJob(JobKind):
    """A pod set for each role that the job has, in the kind's order."""

    api_version = "kubeflow.org/v1"
    suspend_path = ("spec", "runPolicy", "suspend")
    managed_by_path = ("spec", "runPolicy", "managedBy")
    own_manager = "kubeflow.org/training-operator"
    checks_groups = False
    repeats_checks = False
    omitted_zeros = frozenset({"active", "succeeded", "failed"})
    replica_specs: ClassVar[str]
    """The field of the spec."""
    roles: ClassVar[tuple[str, ...]]

    def sites(self, job: JsonObject) -> list[TemplateSite]:
        specs = dig(job, "spec", self.replica_specs) or {}
        return [
            TemplateSite.under(
                specs[role],
                f"spec.{self.replica_specs}[{role}]",
                role,
                integer_at(specs[role], "replicas", default=1),
                PodLabels(_REPLICA_INDEX_LABEL),
            )
            for role in self.roles
            if specs.get(role) is not None
        ]

    @property
    def operator_name(self) -> str:
        return f"{self.kind.lower()}-controller"

    def pod_label_selector(self, job: JsonObject) -> str:
        return f"{_JOB_NAME_LABEL}={name_of(job)},{_OPERATOR_LABEL}={self.operator_name}"

    def priority_class(self, job: JsonObject) -> str:
        own = dig(job, "spec", "runPolicy", "schedulingPolicy", "priorityClass")
        named = (dig(site.template, "spec", "priorityClassName") for site in self.sites(job))
        return str(own or next((name for name in named if name), ""))

    def outcome(self, job: JsonObject) -> Outcome:
        for condition in dig(job, "status", "conditions") or ():
            if condition.get("type") in ("Succeeded", "Failed") and condition.get("status") == "True":
                return Outcome(True, condition["type"] != "Failed", condition.get("message") or "")
        return Outcome(False)

    def is_active(self, job: JsonObject) -> bool:
        statuses = dig(job, "status", "replicaStatuses") or {}
        return any(integer_at(status or {}, "active") != 0 for status in statuses.values())

    def pods_ready(self, job: JsonObject, context: JobContext) -> bool:
        return is_true(job, "Running")
