"""Reads from rows, by one statement, the owners of the pods that a sweep has listed, and whether workloads wait for
some of these pods to end: each sweep over running pods asks, and hardly any finds one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.jobs.objects import JOB_UID_LABEL, WORKLOAD_UID_LABEL, uid_label
from foundation.postgresql.instances import fetched_rows
from queues.manifests.kueue_keys import ELASTIC_JOB
from scheduling.model.vocabulary import FinishedReason

_OWNERS: Final = """
    SELECT
        (
            SELECT coalesce(jsonb_object_agg(uid, namespace), '{}')::text FROM (
                SELECT uid, namespace FROM queues_workload
                WHERE cluster_id = %(cluster)s AND uid = ANY(%(workloads)s::uuid[])
                UNION ALL
                SELECT job.uid, workload.namespace
                FROM queues_job AS job JOIN queues_workload AS workload ON workload.job_id = job.id
                WHERE job.cluster_id = %(cluster)s AND job.uid = ANY(%(jobs)s::uuid[])
            ) AS owner
        ),
        EXISTS (
            SELECT FROM queues_workload
            WHERE cluster_id = %(cluster)s AND uid = ANY(%(workloads)s::uuid[]) AND status = 'Finished'
                AND reason = %(replaced)s AND job_id IS NOT NULL
        ),
        EXISTS (
            SELECT FROM queues_workload
            WHERE cluster_id = %(cluster)s AND status <> 'Finished' AND evicted_at IS NOT NULL
                AND quota_reserved_at IS NOT NULL AND pods_stopped_at IS NULL AND job_id IS NOT NULL
        ),
        EXISTS (
            SELECT FROM queues_workload AS workload
            WHERE cluster_id = %(cluster)s AND status = 'Admitted' AND evicted_at IS NULL AND (
                annotations @> %(elastic)s OR EXISTS (
                    SELECT FROM queues_podset WHERE workload_id = workload.id AND reclaimable_count > 0
                )
            )
        )
"""


@dataclass(frozen=True, slots=True)
class PodOwners:
    """The owners of some pods.

    * namespaces: of the workloads and jobs that the pods' labels name, by uid.
    * any_replaced: a pod has the name of a replaced slice.
    * any_stopping: an evicted workload of the cluster has quota until its pods have stopped.
    * any_spare: a running workload of the cluster may have replicas that it does not need any more.
    """

    namespaces: Mapping[str, str]
    any_replaced: bool
    any_stopping: bool
    any_spare: bool

    def are_credible(self, pod: JsonObject) -> bool:
        """Return whether the pod's labels name a workload or job of its own namespace. Anyone can write a label."""
        named = uid_label(pod, WORKLOAD_UID_LABEL) or uid_label(pod, JOB_UID_LABEL)
        return bool(self.namespaces.get(named) == pod["metadata"]["namespace"])


def owners_of(cluster: Cluster, pods: Sequence[JsonObject]) -> PodOwners:
    """Return the owners of these pods. A workload that is evicted or shrinks later gets its own sweep."""
    values: dict[str, Any] = {
        "cluster": cluster.pk,
        "workloads": list({uid for pod in pods if (uid := uid_label(pod, WORKLOAD_UID_LABEL))}),
        "jobs": list({uid for pod in pods if (uid := uid_label(pod, JOB_UID_LABEL))}),
        "replaced": FinishedReason.WORKLOAD_SLICE_REPLACED.value,
        "elastic": orjson.dumps({ELASTIC_JOB: "true"}).decode(),
    }
    ((namespaces, *found),) = fetched_rows(_OWNERS, values)
    return PodOwners(orjson.loads(namespaces), *found)
