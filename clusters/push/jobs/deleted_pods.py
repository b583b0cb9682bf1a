"""Removes Kueue's finalizer from pods that were deleted before they got a row: the push has no rows of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import PODS
from clusters.client import ClusterClient
from clusters.jobs.plain_pods import released_pod
from queues.manifests.pod_group import POD
from queues.models import Job

_log = logging.getLogger(__name__)


def release_deleted_pods(cluster: Cluster, client: ClusterClient, pods: Iterable[tuple[str, str]]) -> None:
    """Remove Kueue's finalizer from these pods (namespace, name) if they are still being deleted and have no row.

    Raises ClusterUnreachable. If the cluster refused the change of a pod, the watcher requests it again with its next
    list.
    """
    if cluster.is_mirrored or cluster.kueue_is_alive:
        return
    rows = Job.objects.filter(cluster=cluster, kind=POD)
    for namespace, name in pods:
        if rows.filter(namespace=namespace, name=name).exists():
            continue
        try:
            pod = client.get(PODS, namespace, name)
            release = released_pod(pod) if pod is not None and pod["metadata"].get("deletionTimestamp") else None
            if release is not None:
                client.patch(PODS, namespace, name, release)
        except ClusterUnreachable:
            raise
        except ClusterError as error:
            _log.info("Pod %s/%s keeps Kueue's finalizer for now: %s", namespace, name, error)
