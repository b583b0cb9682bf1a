"""The policy of a namespace and the limits of tenants in the cluster: the same refusals as over REST."""

from __future__ import annotations

from collections import Counter
from typing import Final

from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import FieldError, FieldErrors, JobError, forbidden
from clusters.jobs.framework.identity import is_queued
from clusters.jobs.framework.manifest import JsonObject, dig
from clusters.webhook.reviews import AdmissionRequest
from foundation.exceptions import ManifestErrors
from queues.manifests.job import JobManifest, WorkloadsPer
from queues.models import Workload
from queues.services.jobs import read_job_object
from queues.services.limits import check_unfinished
from queues.services.pod_policy import check_jobs, check_priorities
from scheduling.manifest import LocatedError

_ADMINS: Final = "system:masters"
"""Kubernetes' group of users with all permissions."""
_CONTROLLERS: Final = ("system:serviceaccount:kube-system:", "system:kube-controller-manager")
_SERVER_FIELDS: Final = ("uid", "name", "generateName", "namespace", "labels", "annotations")


def person_of(request: AdmissionRequest) -> str:
    """Return the user of a request; empty for a controller of the cluster itself, which acts for others."""
    return "" if request.username.startswith(_CONTROLLERS) else request.username


def policy_errors(cluster: Cluster, request: AdmissionRequest, context: JobContext) -> FieldErrors:
    """Return the policy's errors for a job before it is queued; for an edit, only the errors that the edit adds.

    Raises LimitReached if the job would exceed a limit.
    """
    if not is_queued(request.object, context):
        return []
    entered = not request.old or not is_queued(request.old, context)
    if not entered and _decisive(request.old) == _decisive(request.object):
        return []
    job = _read(request.object, context)
    if job is None:
        return []
    found = _errors(cluster, job, request)
    if entered:
        _check_limits(cluster, job.spec, request)
        return found
    old = _read(request.old, context)
    before = _errors(cluster, old, request) if old is not None else []
    return [error for error in found if error not in before]


def _decisive(job: JsonObject) -> list[object]:
    return [dig(job, "metadata", "labels"), dig(job, "metadata", "annotations"), job.get("spec")]


def _read(job: JsonObject, context: JobContext) -> Submitted[JobManifest] | None:
    """Read the job as REST reads it; None for a job that cannot be read, which gets no workload."""
    metadata = {key: value for key, value in job["metadata"].items() if key in _SERVER_FIELDS}
    content = {key: value for key, value in job.items() if key != "status"}
    try:
        return read_job_object({**content, "metadata": metadata}, objects=context.objects)
    except (ManifestErrors, JobError):
        return None


def _errors(cluster: Cluster, job: Submitted[JobManifest], request: AdmissionRequest) -> FieldErrors:
    check_jobs(cluster, [job], in_the_cluster=True)
    if _ADMINS not in request.groups:
        check_priorities(cluster, [job])
    return [_field_error(mistake) for mistake in job.report.errors]


def _field_error(mistake: LocatedError) -> FieldError:
    value = "" if mistake.value is None else f'"{mistake.value}" '
    return forbidden(mistake.path, f"{value}{mistake.rule}. {mistake.remedy}".rstrip(". "))


def _check_limits(cluster: Cluster, job: JobManifest, request: AdmissionRequest) -> None:
    """Pods of a Deployment are counted one by one as they come, and a group with its first pod."""
    if job.workloads_per is WorkloadsPer.POD and job.group is None and job.kind != "Pod":
        return
    namespace = job.meta.namespace
    if job.group is not None:
        there = Workload.objects.filter(cluster=cluster, namespace=namespace, name=job.group.name)
        if there.exclude(status="Finished").exists():
            return
    count = Counter({(namespace, job.queue_name): job.workload_count})
    check_unfinished(cluster, count, person_of(request))
