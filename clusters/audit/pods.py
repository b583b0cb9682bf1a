"""Rules on the cluster's pods and the rows: each must match the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from accounts.models import Cluster
from clusters.api_objects import PODS, JsonObject
from clusters.audit.violations import Check, Violation
from clusters.client import ClusterClient
from clusters.jobs.objects import JOB_UID_LABEL, MANAGED_LABEL, WORKLOAD_UID_LABEL, uid_label
from queues.models import Job, Workload
from scheduling.model.vocabulary import WorkloadStatus

_LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"


def pods_and_rows(cluster: Cluster, pods: Sequence[JsonObject]) -> Iterator[Violation]:
    """Compare pods that have our labels with the rows. Anyone can write a label, so foreign pods may appear too."""
    uids = {uid for pod in pods if (uid := uid_label(pod, WORKLOAD_UID_LABEL))}
    holding = Workload.objects.filter(cluster=cluster, uid__in=uids, quota_reserved_at__isnull=False)
    rows = holding.exclude(status=WorkloadStatus.FINISHED).values_list("namespace", "uid", "pod_sets__nodes")
    held: dict[tuple[str, str], set[str]] = {}
    for namespace, row_uid, nodes in rows:
        held.setdefault((namespace, str(row_uid)), set()).update(filter(None, nodes or ()))
    jobs = {uid for pod in pods if (uid := uid_label(pod, JOB_UID_LABEL))}
    known = set(map(str, Job.objects.filter(cluster=cluster, uid__in=jobs).values_list("uid", flat=True)))
    for pod in pods:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName") or ""
        uid, namespace = uid_label(pod, WORKLOAD_UID_LABEL), metadata["namespace"]
        subject = f"{namespace}/{metadata['name']}"
        if uid and (namespace, uid) not in held and node:
            yield Violation(
                Check.PODS,
                subject,
                ("the pod exists, but no workload holds the resources that it uses"),
                namespace,
                node,
            )
        elif node and held.get((namespace, uid)) and node not in held[namespace, uid]:
            given = ", ".join(sorted(held[namespace, uid]))
            yield Violation(
                Check.PODS, subject, f"the pod is on {node}, but its workload was assigned {given}", namespace, node
            )
        elif not uid and uid_label(pod, JOB_UID_LABEL) not in known:
            yield Violation(Check.PODS, subject, "the pod names an unknown job", namespace, node)


def live_pods(client: ClusterClient) -> Sequence[JsonObject]:
    return client.list(PODS, label_selector=f"{MANAGED_LABEL}=true", field_selector=_LIVE_PODS).items
