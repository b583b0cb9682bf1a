"""Deletes pods that no kubelet ends, because their node is unreachable (Kueue's gate FailureRecoveryPolicy) or gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final

from accounts.kinds.feature_gates import FAILURE_RECOVERY, is_on
from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import NODES, PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.forced_deletion import CONDITION, GRACE_SECONDS, UNREACHABLE, asks_for_it, is_overdue, was_failed
from clusters.jobs.framework.manifest import dig, is_being_deleted, name_of, namespace_of
from clusters.push.event_recorder import EventRecorder, Regarding
from clusters.push.failed_pods import fail_pod
from gpus.models import Node
from queues.manifests.kueue_keys import SAFE_TO_DELETE

_log = logging.getLogger(__name__)

_REASON: Final = "KueueForcefullyDeleted"


def delete_lost_pods(
    cluster: Cluster, client: ClusterClient, pods: Iterable[tuple[str, str]], clock: Callable[[], float]
) -> int:
    """Fail and delete these pods, given by namespace and name, if the cluster still shows them as lost; return how
    many. Raises ClusterUnreachable. If the cluster refuses to change a pod, the watcher requests it again with its next
    list."""
    if cluster.is_mirrored or not is_on(cluster.configuration, FAILURE_RECOVERY):
        return 0
    deleted = 0
    unreachable = cache(partial(_is_unreachable, client))
    for namespace, name in pods:
        try:
            pod = client.get(PODS, namespace, name)
            if pod is None or not asks_for_it(pod) or not is_overdue(pod, clock()):
                continue
            if unreachable(dig(pod, "spec", "nodeName") or ""):
                _delete(pod, client, datetime.fromtimestamp(clock(), UTC))
                deleted += 1
        except ClusterUnreachable:
            raise
        except ClusterError as error:
            _log.warning("Pod %s/%s of an unreachable node stays for now: %s", namespace, name, error)
    return deleted


def delete_pods_of_gone_nodes(cluster: Cluster, client: ClusterClient, pods: Iterable[JsonObject]) -> set[str]:
    """Force the deletion of pods that are being deleted and whose node has left the cluster; return their uids.

    No kubelet reports that they ended. Kubernetes' own collector of such pods takes a minute. Raises ClusterError.
    """
    ending = [pod for pod in pods if is_being_deleted(pod) and dig(pod, "spec", "nodeName")]
    names = {pod["spec"]["nodeName"] for pod in ending}
    ready = Node.objects.filter(cluster=cluster, name__in=names, ready=True).values_list("name", flat=True)
    gone = {name for name in names.difference(ready if names else ()) if client.get(NODES, "", name) is None}
    lost = [pod for pod in ending if pod["spec"]["nodeName"] in gone]
    for pod in lost:
        client.delete(PODS, namespace_of(pod), name_of(pod), uid=pod["metadata"]["uid"], grace_seconds=0)
    return {pod["metadata"]["uid"] for pod in lost}


def _is_unreachable(client: ClusterClient, name: str) -> bool:
    node = client.get(NODES, "", name) if name else None
    taints = (dig(node, "spec", "taints") if node is not None else None) or ()
    return any(taint.get("key") == UNREACHABLE for taint in taints)


def _delete(pod: JsonObject, client: ClusterClient, now: datetime) -> None:
    metadata = pod["metadata"]
    if not was_failed(pod):  # otherwise an earlier request failed the pod but could not delete it
        seconds = GRACE_SECONDS + (metadata.get("deletionGracePeriodSeconds") or 0)
        message = (
            f"Pod forcefully terminated after {seconds:.0f}s grace period due to unreachable node "
            f"`{pod['spec']['nodeName']}` (triggered by `{SAFE_TO_DELETE}` annotation)"
        )
        fail_pod(client, pod, {"type": CONDITION, "reason": _REASON, "message": message}, now)
        regarding = Regarding(PODS.api_version, PODS.kind, namespace_of(pod), name_of(pod), metadata["uid"])
        EventRecorder(client).record(regarding, _REASON, message, now, warning=True)
    client.delete(PODS, namespace_of(pod), name_of(pod), uid=metadata["uid"], grace_seconds=0)
