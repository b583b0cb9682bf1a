"""Submits new pods of groups together with workloads. None of them may exist."""

from collections.abc import Sequence

from django.utils import timezone

from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from foundation.exceptions import AlreadyExists
from queues.manifests.job import JobManifest
from queues.manifests.pod_group import POD
from queues.models import Job, Workload
from queues.services.jobs import apply_jobs
from queues.services.withdrawn_jobs import free_names
from scheduling.manifest import LocatedError


def submit_group_pods(
    cluster: Cluster, pods: Sequence[Submitted[JobManifest]], *, actor: str, submitted_by: str = ""
) -> list[Workload]:
    """Store pods of groups, within the caller's transaction; returns each group's workload once.

    Raises `ManifestErrors`, and `AlreadyExists` if a pod of a name exists.
    """
    if not pods:
        return []
    _refuse_taken(cluster, pods)
    apply_jobs(cluster, pods, actor=actor, submitted_by=submitted_by, now=timezone.now())
    keys = dict.fromkeys((pod.spec.meta.namespace, pod.spec.group.name) for pod in pods if pod.spec.group)
    names = {name for _, name in keys}
    rows = Workload.objects.filter(cluster=cluster, name__in=names, job__isnull=False).only("uid", "namespace", "name")
    found = {(row.namespace, row.name): row for row in rows}
    return [found[key] for key in keys if key in found]


def _refuse_taken(cluster: Cluster, pods: Sequence[Submitted[JobManifest]]) -> None:
    named = [pod for pod in pods if not pod.spec.meta.generate_name]
    free_names(cluster, [(POD, pod.spec.meta.namespace, pod.spec.meta.name) for pod in named])
    rows = Job.objects.filter(cluster=cluster, kind=POD, name__in=[pod.spec.meta.name for pod in named])
    there = set(rows.values_list("namespace", "name"))
    taken = [
        LocatedError(
            pod.report.document,
            pod.at("metadata.name"),
            pod.spec.meta.key,
            "Duplicate value: a Pod of this name exists.",
            "Delete it first, use another name, or generateName.",
        )
        for pod in named
        if (pod.spec.meta.namespace, pod.spec.meta.name) in there
    ]
    if taken:
        raise AlreadyExists(f"{len(taken)} of {len(pods)} pods of groups already exist; nothing was stored.", taken)
