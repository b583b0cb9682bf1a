"""Labels the pods of StatefulSets with their queue and their workload's group, as Kueue does.

They are not in the pod template: a set's queue may change while pods of one revision wait or run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from accounts.models import Cluster
from clusters.client import PODS, ClusterClient, ClusterError, ClusterUnreachable, JsonObject
from clusters.jobs.kinds.statefulset import StatefulSet, marks_of_pod
from clusters.jobs.objects import JOB_UID_LABEL, uid_label
from clusters.push.desired_state import job_source, with_jobs
from queues.models import Workload
from scheduling.model.vocabulary import WorkloadStatus

_log = logging.getLogger(__name__)


class SetPods:
    """The StatefulSets of one cluster that have a workload."""

    def __init__(self, cluster: Cluster) -> None:
        rows = Workload.objects.filter(cluster=cluster, job__kind=StatefulSet.kind)
        self._rows = with_jobs(rows.exclude(status=WorkloadStatus.FINISHED))

    def exist(self) -> bool:
        return self._rows.exists()

    def mark(self, client: ClusterClient, pods: Sequence[JsonObject]) -> None:
        """Label those of these pods that lack it. A pod that the cluster refuses to change is tried again in the next
        sweep."""
        uids = {uid for pod in pods if (uid := uid_label(pod, JOB_UID_LABEL))}
        sets = {
            str(row.job.uid): (row.name, source)
            for row in self._rows.filter(job__uid__in=uids)
            if row.job is not None and (source := job_source(row.job)) is not None
        }
        for pod in pods if sets else ():
            workload_name, source = sets.get(uid_label(pod, JOB_UID_LABEL), ("", None))
            marks = marks_of_pod(pod, dict(source.manifest), workload_name) if source is not None else {}
            if marks and not pod["metadata"].get("deletionTimestamp"):
                _patch(client, pod, marks)


def _patch(client: ClusterClient, pod: JsonObject, marks: dict[str, dict[str, str]]) -> None:
    metadata = pod["metadata"]
    try:
        client.patch(PODS, metadata["namespace"], metadata["name"], {"metadata": {"uid": metadata["uid"], **marks}})
    except ClusterUnreachable:
        raise
    except ClusterError as error:
        _log.info("Pod %s/%s is not labelled yet: %s", metadata["namespace"], metadata["name"], error)
