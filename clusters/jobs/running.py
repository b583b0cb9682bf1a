"""The kinds of jobs that run in a cluster: one table of their pod sets, how they are stopped, what their status says.

A new kind is a row with its own reading of the status; what is pushed and what is watched follow from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from clusters.client import DEPLOYMENTS, JOBS, PODS, JsonObject, Kind
from clusters.jobs.framework.job_kind import JobKind as JobRules
from clusters.jobs.registry import KINDS
from scheduling.model.vocabulary import FinishedReason

MAIN_POD_SET: Final = "main"


class Stopping(StrEnum):
    """How the pods of a job are made to go."""

    SUSPEND = "suspend"
    """`spec.suspend`: the job stays, without pods."""
    DELETE = "delete"
    """The job is its pod: it is deleted, and made anew."""
    DELETE_POD = "delete pod"
    """Each of its pods is a workload: that workload's pod is deleted, and its replacement waits."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a job's status says.

    * finished: how it ended, None while it has not.
    * active, succeeded, ready: numbers of pods; active counts those that still stop.
    * reclaimable: how many of the pods that may run at once will not be needed again.
    """

    finished: FinishedReason | None = None
    message: str = ""
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    suspended: bool = False
    reclaimable: int = 0


@dataclass(frozen=True, slots=True)
class JobKind:
    """One row.

    * pod_sets: names of the pod sets that the kind has, in order.
    * template_path: where in the object the template of a pod set is; () where the object is itself the pod.
    * count_field: the field of the spec that says how many pods run at once, "" where that is always one.
    * rules: of a kind that an operator brings, how it is started and stopped as a whole; the paths are empty then.
    """

    kind: Kind
    stopping: Stopping
    template_path: tuple[str, ...]
    count_field: str
    progress: Callable[[Mapping[str, Any]], Progress]
    pod_sets: tuple[str, ...] = (MAIN_POD_SET,)
    rules: JobRules | None = None

    @property
    def workload_per_pod(self) -> bool:
        """Whether each pod is a workload of its own (Kueue's Deployment)."""
        return self.stopping is Stopping.DELETE_POD

    def suspended(self, manifest: JsonObject) -> bool:
        """Whether an object of the kind is suspended."""
        if self.rules is not None:
            return self.rules.is_suspended(manifest)
        return bool((manifest.get("spec") or {}).get("suspend"))

    def template(self, manifest: Mapping[str, Any]) -> JsonObject:
        """The pod template in a manifest: {metadata, spec}."""
        here: Any = manifest
        for name in self.template_path:
            here = here.get(name) or {}
        return {"metadata": dict(here.get("metadata") or {}), "spec": dict(here.get("spec") or {})}

    def with_template(self, manifest: JsonObject, template: JsonObject) -> JsonObject:
        """A copy of the manifest with that pod template; a pod keeps its name and namespace."""
        if not self.template_path:
            return {**manifest, "metadata": {**manifest["metadata"], **template["metadata"]}, "spec": template["spec"]}
        return _with(manifest, self.template_path, template)


def _with(here: Mapping[str, Any], path: tuple[str, ...], value: Any) -> JsonObject:
    if len(path) == 1:
        return {**here, path[0]: value}
    return {**here, path[0]: _with(here.get(path[0]) or {}, path[1:], value)}


def _job_progress(job: Mapping[str, Any]) -> Progress:
    status = job.get("status") or {}
    finished, message = None, ""
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            succeeded = condition["type"] == "Complete"
            finished = FinishedReason.SUCCEEDED if succeeded else FinishedReason.FAILED
            message = str(condition.get("message") or "")
    return Progress(
        finished=finished,
        message=message,
        active=int(status.get("active") or 0) + int(status.get("terminating") or 0),
        ready=int(status.get("ready") or 0),
        succeeded=int(status.get("succeeded") or 0),
        suspended=bool((job.get("spec") or {}).get("suspend")),
        reclaimable=_reclaimable(job.get("spec") or {}, int(status.get("succeeded") or 0)),
    )


def _reclaimable(spec: Mapping[str, Any], succeeded: int) -> int:
    """Kueue's rule: of a Job with more than one pod at a time, those beyond the completions that remain."""
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    if completions is None or parallelism == 1:
        return 0
    return max(0, parallelism - (completions - succeeded)) if succeeded else 0


def _pod_progress(pod: Mapping[str, Any]) -> Progress:
    status = pod.get("status") or {}
    phase = status.get("phase", "Pending")
    if phase == "Succeeded":
        return Progress(FinishedReason.SUCCEEDED, "Pod succeeded", succeeded=1)
    if phase == "Failed":
        message = str(status.get("message") or status.get("reason") or "Pod failed")
        return Progress(FinishedReason.FAILED, message)
    ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    return Progress(active=1, ready=int(ready))


def _deployment_progress(deployment: Mapping[str, Any]) -> Progress:
    """A Deployment never ends by itself."""
    status = deployment.get("status") or {}
    return Progress(active=int(status.get("replicas") or 0), ready=int(status.get("readyReplicas") or 0))


def _progress_by(rules: JobRules) -> Callable[[Mapping[str, Any]], Progress]:
    def progress(job: Mapping[str, Any]) -> Progress:
        """Pods are counted elsewhere; here counts whether there are any."""
        content = dict(job)
        outcome = rules.outcome(content)
        finished = None
        if outcome.finished:
            finished = FinishedReason.SUCCEEDED if outcome.success else FinishedReason.FAILED
        return Progress(
            finished=finished,
            message=outcome.message if outcome.finished else "",
            active=int(rules.is_active(content)),
            suspended=rules.is_suspended(content),
        )

    return progress


OPERATED_KINDS: Final[tuple[JobRules, ...]] = tuple(rules for rules in KINDS.values() if rules.runs_by_operator)
"""The kinds that a cluster serves only where their operator is installed."""

JOB_KINDS: Final[Mapping[str, JobKind]] = {
    row.kind.kind: row
    for row in (
        JobKind(JOBS, Stopping.SUSPEND, ("spec", "template"), "parallelism", _job_progress),
        JobKind(PODS, Stopping.DELETE, (), "", _pod_progress),
        JobKind(DEPLOYMENTS, Stopping.DELETE_POD, ("spec", "template"), "replicas", _deployment_progress),
        *(
            JobKind(
                Kind(rules.api_version, rules.kind, rules.plural),
                Stopping.SUSPEND, (), "", _progress_by(rules), (), rules,
            )
            for rules in OPERATED_KINDS
        ),
    )
}  # fmt: skip
"""By kind."""
