"""Relabels pods of elastic jobs for the newer slice, and finds replicas whose pods are gone for good.

A running Job's pod template cannot change, so every pod of an elastic job has the name of the slice that started it.
It gets the name of the slice that holds quota now.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Q

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.objects import (
    POD_SET_LABEL,
    WORKLOAD_ANNOTATION,
    WORKLOAD_UID_LABEL,
    replica_of,
    uid_label,
)
from queues.manifests.kueue_keys import ELASTIC_JOB, REPLACED_SLICE
from queues.models import PodSet, Workload
from queues.services.pods import record_replicas_gone
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_log = logging.getLogger(__name__)


def handed_over(cluster: Cluster, client: ClusterClient, pods: Sequence[JsonObject]) -> list[JsonObject]:
    """Relabel the pods of replaced slices with the slice that now holds quota, and return the pods."""
    heirs = _heirs(cluster, {uid for pod in pods if (uid := uid_label(pod, WORKLOAD_UID_LABEL))})
    return [_renamed(client, pod, heirs) for pod in pods] if heirs else list(pods)


def _heirs(cluster: Cluster, uids: Iterable[str]) -> dict[str, Workload]:
    """uid of a replaced slice -> the slice of its job that holds quota."""
    replaced = Workload.objects.filter(
        cluster=cluster,
        uid__in=list(uids),
        status=WorkloadStatus.FINISHED,
        reason=FinishedReason.WORKLOAD_SLICE_REPLACED,
        job__isnull=False,
    )
    jobs = {str(uid): job_id for uid, job_id in replaced.values_list("uid", "job_id")}
    if not jobs:
        return {}
    holders = Workload.objects.filter(cluster=cluster, job__in=set(jobs.values()), quota_reserved_at__isnull=False)
    by_job = {row.job_id: row for row in holders.exclude(status=WorkloadStatus.FINISHED).only("uid", "name", "job_id")}
    return {uid: by_job[job_id] for uid, job_id in jobs.items() if job_id in by_job}


def _renamed(client: ClusterClient, pod: JsonObject, heirs: dict[str, Workload]) -> JsonObject:
    heir = heirs.get(uid_label(pod, WORKLOAD_UID_LABEL))
    if heir is None:
        return pod
    metadata = pod["metadata"]
    labels, annotations = {WORKLOAD_UID_LABEL: str(heir.uid)}, {WORKLOAD_ANNOTATION: heir.name}
    patch = {"metadata": {"uid": metadata["uid"], "labels": labels, "annotations": annotations}}
    try:
        client.patch(PODS, metadata["namespace"], metadata["name"], patch)
    except ClusterUnreachable:
        raise
    except ClusterError as error:
        # The pod is gone, or the next sweep will try again. Its owner does not depend on the label.
        _log.info("Pod %s/%s keeps the name of its old slice: %s", metadata["namespace"], metadata["name"], error)
    named = {"labels": {**metadata["labels"], **labels}}
    return {
        **pod,
        "metadata": {**metadata, **named, "annotations": {**(metadata.get("annotations") or {}), **annotations}},
    }


def is_next_slice(row: Workload) -> bool:
    """Return whether a workload that may not run yet is a slice of a running job. It waits to take over, or has taken
    over and waits for admission checks; the job then continues unchanged."""
    return REPLACED_SLICE in row.annotations and row.evicted_at is None


def note_gone_replicas(cluster: Cluster, pods: Sequence[JsonObject]) -> int:
    """Find the replicas that are gone, of elastic jobs that shrank and of jobs with reclaimable pods, so that their
    resources are released. `pods` are all live pods of ours. The Job controller chooses which pods end, so surplus
    replicas stay held until that many pods are gone. Of several replicas without a pod, the ones with the highest
    numbers are released. One replica always stays, because a workload that holds devices needs a place. Returns how
    many replicas were released."""
    alive: dict[tuple[str, str], set[int]] = defaultdict(set)
    for pod in pods:
        replica = replica_of(pod)
        if replica is not None:
            pod_set = (pod["metadata"].get("labels") or {}).get(POD_SET_LABEL, "")
            alive[uid_label(pod, WORKLOAD_UID_LABEL), pod_set].add(replica)
    shrank = Q(annotations__contains={ELASTIC_JOB: "true"})
    reclaimed = Q(pk__in=PodSet.objects.filter(reclaimable_count__gt=0).values("workload"))
    rows = Workload.objects.filter(shrank | reclaimed, cluster=cluster, status=WorkloadStatus.ADMITTED, evicted_at=None)
    noted = 0
    for row in rows.prefetch_related("pod_sets").order_by("pk"):
        if row.pushed_sequence >= row.push_sequence:
            noted += _give_up(cluster, row, alive)
    return noted


def _give_up(cluster: Cluster, row: Workload, alive: Mapping[tuple[str, str], set[int]]) -> int:
    held = {pod_set.pk: {number for number, node in enumerate(pod_set.nodes) if node} for pod_set in row.pod_sets.all()}
    elastic = ELASTIC_JOB in row.annotations
    spare = sum(map(len, held.values())) - (0 if elastic else 1)
    noted = 0
    for pod_set in row.pod_sets.all():
        if pod_set.topology_assignment and not elastic:
            continue  # as in Kueue, the domains of an assignment stay until it ends
        needed = min(pod_set.admitted_count or 0, max(0, pod_set.count - pod_set.reclaimable_count))
        surplus = min(len(held[pod_set.pk]) - needed, spare - noted)
        gone = sorted(held[pod_set.pk] - alive[str(row.uid), pod_set.name], reverse=True)[: max(0, surplus)]
        if gone:
            noted += record_replicas_gone(cluster, pod_set, gone)
    return noted
