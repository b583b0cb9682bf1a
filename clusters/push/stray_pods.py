"""Fails pods that are tied to a node where they can no longer start, so that their job replaces them.

Such a pod was ungated for its node and not bound yet when the node failed, or when the pods of its workload were moved
away. Kueue does the same, with the same condition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.objects import (
    HOSTNAME_LABEL,
    POD_SET_LABEL,
    WORKLOAD_UID_LABEL,
    PodSetAdmission,
    tied_host,
    uid_label,
)
from clusters.push.desired_state import FlavorNodes, admitted_workload, places_of, with_jobs
from clusters.push.event_recorder import EventRecorder, Regarding
from clusters.push.failed_pods import fail_pod
from queues.models import Workload
from scheduling.model.vocabulary import WorkloadStatus

_log = logging.getLogger(__name__)

_CONDITION: Final = "TerminatedByKueue"
_REASON: Final = "UnschedulableOnAssignedNode"
_MESSAGE: Final = "Pod terminated by Kueue NodeController due to node taint"
_EVENT: Final = "PodTerminatedByKueue"


def fail_stray_pods(
    cluster: Cluster,
    client: ClusterClient,
    flavors: Mapping[str, FlavorNodes],
    pods: Iterable[JsonObject],
    clock: Callable[[], float],
) -> int:
    """Fail the stray pods among our live pods; return their number. Raises ClusterUnreachable."""
    tied: dict[str, list[JsonObject]] = {}
    for pod in pods:
        uid = uid_label(pod, WORKLOAD_UID_LABEL)
        if uid and tied_host(pod):
            tied.setdefault(uid, []).append(pod)
    if not tied:
        return 0
    admitted = Workload.objects.filter(
        cluster=cluster, uid__in=tied.keys(), status=WorkloadStatus.ADMITTED, evicted_at=None
    )
    rows = list(with_jobs(admitted))
    places = places_of(cluster, rows)
    failed = 0
    for row in rows:
        pod_sets = admitted_workload(row, flavors, places).pod_sets
        for pod in tied[str(row.uid)]:
            if _is_stray(pod, pod_sets, row.unhealthy_nodes):
                failed += _fail(client, pod, datetime.fromtimestamp(clock(), UTC))
    return failed


def _is_stray(pod: JsonObject, pod_sets: Sequence[PodSetAdmission], failed_nodes: Sequence[str]) -> bool:
    name = (pod["metadata"].get("labels") or {}).get(POD_SET_LABEL, "")
    admission = next((found for found in pod_sets if found.name == name), pod_sets[0])
    topology = admission.topology
    if admission.nodes:
        hosts = {admission.host(node) for node in admission.nodes if node not in failed_nodes}
    elif topology is not None and topology.levels[-1] == HOSTNAME_LABEL:
        hosts = {domain.values[-1] for domain in topology.domains} - set(failed_nodes)
    else:
        return False  # the template limits the nodes that it may run on
    return tied_host(pod) not in hosts


def _fail(client: ClusterClient, pod: JsonObject, now: datetime) -> int:
    metadata = pod["metadata"]
    try:
        fail_pod(client, pod, {"type": _CONDITION, "reason": _REASON, "message": _MESSAGE}, now)
    except ClusterUnreachable:
        raise
    except ClusterError as error:  # it has been bound since, or no longer exists
        _log.info("Pod %s/%s is not failed: %s", metadata["namespace"], metadata["name"], error)
        return 0
    regarding = Regarding(PODS.api_version, PODS.kind, metadata["namespace"], metadata["name"], metadata["uid"])
    EventRecorder(client).record(regarding, _EVENT, _MESSAGE, now)
    return 1
