"""Stores pods of workloads as the cluster reports them, and their failed nodes (Kueue's `unhealthyNodes`)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Cluster
from foundation.wake_ups import wake_scheduler
from queues.models import Pod, PodSet, Workload
from scheduling.lifecycle.conditions import PODS_READY_MESSAGES
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import PodsReadyReason, WorkloadStatus

_NOT_YET: Final = PODS_READY_MESSAGES[PodsReadyReason.WAIT_FOR_START]
_WAITING: Final = """
WITH waiting AS (
    SELECT workload.id, asked.message, before.condition
    FROM unnest(%(namespaces)s::text[], %(names)s::text[], %(messages)s::text[]) AS asked (namespace, name, message)
    JOIN queues_workload AS workload USING (namespace, name)
    LEFT JOIN LATERAL (
        SELECT condition FROM jsonb_array_elements(workload.conditions) AS listed (condition)
        WHERE condition ->> 'type' = 'PodsReady' AND condition ->> 'status' = 'False' LIMIT 1
    ) AS before ON true
    WHERE workload.cluster_id = %(cluster_id)s AND workload.status = 'Admitted' AND workload.evicted_at IS NULL
        AND workload.pods_ready_at IS NULL AND before.condition ->> 'message' IS DISTINCT FROM asked.message
    ORDER BY workload.id FOR NO KEY UPDATE OF workload
), changed AS (
    UPDATE queues_workload AS workload SET updated_at = %(now)s, conditions = coalesce((
            SELECT jsonb_agg(condition ORDER BY position)
            FROM jsonb_array_elements(workload.conditions) WITH ORDINALITY AS listed (condition, position)
            WHERE condition ->> 'type' <> 'PodsReady'
        ), '[]'::jsonb) || jsonb_build_object(
            'type', 'PodsReady', 'status', 'False',
            'reason', coalesce(waiting.condition ->> 'reason', %(reason)s::text), 'message', waiting.message,
            'lastTransitionTime', coalesce(waiting.condition ->> 'lastTransitionTime', %(since)s::text))
    FROM waiting WHERE workload.id = waiting.id
    RETURNING workload.cluster_id, workload.uid, workload.namespace, workload.name, waiting.message
), told AS (
    INSERT INTO queues_workloadevent
        (cluster_id, workload_uid, namespace, workload_name, at, type, reason, message, actor)
    SELECT cluster_id, uid, namespace, name, %(now)s, 'Warning', 'PodsNotReady', message, 'watcher' FROM changed
    WHERE message <> %(not_yet)s
)
SELECT count(*) FROM changed
"""
_STORE: Final = """
INSERT INTO queues_pod AS pod
    (workload_id, pod_set, replica, namespace, name, uid, phase, ready, terminating, reason, message, restarts,
    containers, node_name, created_at, started_at, finished_at, devices)
SELECT workload.id, seen.pod_set, seen.replica, seen.namespace, seen.name, seen.uid, seen.phase, seen.ready,
    seen.terminating, seen.reason, seen.message, seen.restarts, seen.containers::jsonb, seen.node_name, seen.created_at,
    seen.started_at, seen.finished_at, seen.devices::jsonb
FROM unnest(%s::uuid[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[],
    %s::boolean[], %s::text[], %s::text[], %s::int[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[],
    %s::timestamptz[], %s::text[])
    AS seen(workload_uid, pod_set, replica, namespace, name, uid, phase, ready, terminating, reason, message, restarts,
    containers, node_name, created_at, started_at, finished_at, devices)
JOIN queues_workload AS workload ON workload.cluster_id = %s AND workload.uid = seen.workload_uid
    AND workload.namespace = seen.namespace
ORDER BY workload.id
ON CONFLICT (workload_id, uid) DO UPDATE SET pod_set = excluded.pod_set, replica = excluded.replica,
    phase = excluded.phase, ready = excluded.ready, terminating = excluded.terminating, reason = excluded.reason,
    message = excluded.message, restarts = excluded.restarts, containers = excluded.containers,
    node_name = excluded.node_name, started_at = excluded.started_at, finished_at = excluded.finished_at,
    devices = excluded.devices
WHERE (pod.pod_set, pod.replica, pod.phase, pod.ready, pod.terminating, pod.reason, pod.message, pod.restarts,
    pod.containers, pod.node_name, pod.started_at, pod.finished_at, pod.devices)
    IS DISTINCT FROM (excluded.pod_set, excluded.replica, excluded.phase, excluded.ready, excluded.terminating,
    excluded.reason, excluded.message, excluded.restarts, excluded.containers, excluded.node_name, excluded.started_at,
    excluded.finished_at, excluded.devices)
"""
_OF_CLUSTER: Final = """
    DELETE FROM queues_pod AS pod USING queues_workload AS workload
    WHERE workload.id = pod.workload_id AND workload.cluster_id = %s
"""
_FORGOTTEN: Final = f"{_OF_CLUSTER} AND pod.uid = ANY(%s::text[])"
_NOT_KEPT: Final = f"{_OF_CLUSTER} AND pod.uid <> ALL(%s::text[])"
_PLACED: Final = """
SELECT placed.node, workload.id, workload.unhealthy_nodes @> jsonb_build_array(placed.node), EXISTS (
        SELECT FROM queues_pod AS pod WHERE pod.workload_id = workload.id AND pod.node_name = placed.node
            AND NOT pod.terminating AND pod.phase NOT IN ('Succeeded', 'Failed')),
    placed.is_chosen, pod_set.name, ARRAY(SELECT value FROM jsonb_each_text(pod_set.flavors) ORDER BY value),
    (pod_set.template -> 'spec' -> 'tolerations')::text, workload.admission_check_states::text
FROM queues_workload AS workload
JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id
CROSS JOIN LATERAL (
    SELECT node, bool_or(chosen) AS is_chosen FROM (
        SELECT node, true FROM jsonb_array_elements_text(pod_set.nodes) AS listed (node)
        UNION ALL
        SELECT domain -> 'values' ->> -1, false
        FROM jsonb_array_elements(pod_set.topology_assignment -> 'domains') AS listed (domain)
        WHERE pod_set.topology_assignment -> 'levels' ->> -1 = 'kubernetes.io/hostname'
    ) AS named (node, chosen) WHERE node = ANY(%(nodes)s::text[]) GROUP BY node
) AS placed
WHERE workload.cluster_id = %(cluster)s AND workload.status = 'Admitted' AND workload.evicted_at IS NULL
    AND (%(workloads)s::uuid[] IS NULL OR workload.uid = ANY(%(workloads)s::uuid[]))
ORDER BY placed.node, workload.id, pod_set.id
"""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod of a workload. The times are when it was created, when its containers started and when the last one ended.

    `devices` is a JSON list of the devices in its annotations, None without any; `containers` is a JSON list of
    names.
    """

    workload_uid: str
    pod_set: str
    replica: int
    namespace: str
    name: str
    uid: str
    phase: str
    ready: bool
    terminating: bool
    reason: str
    message: str
    restarts: int
    containers: str
    node_name: str
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    devices: str | None = None


def store_pods(cluster: Cluster, pods: Sequence[ObservedPod]) -> int:
    """Insert or update pods of known workloads; returns the number of changed rows."""
    if not pods:
        return 0
    columns = [list(column) for column in zip(*(astuple(pod) for pod in pods), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [*columns, cluster.pk])
        return int(cursor.rowcount)


def forget_pods(cluster: Cluster, uids: Collection[str]) -> int:
    """Delete pods that no longer exist in the cluster; return how many were stored."""
    return _delete(_FORGOTTEN, cluster, uids) if uids else 0


def keep_pods(cluster: Cluster, uids: Collection[str]) -> int:
    """Delete every pod except these, after all pods of the cluster were listed."""
    return _delete(_NOT_KEPT, cluster, uids)


def _delete(statement: str, cluster: Cluster, uids: Collection[str]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, [cluster.pk, list(uids)])
        return int(cursor.rowcount)


def record_reclaimable(cluster: Cluster, pod_set: str, counts: Mapping[tuple[str, str], int]) -> int:
    """Record pods that will not be needed again, by workload (Kueue's reclaimablePods). Their number falls if an
    elastic job shrinks. Returns the number of changed rows."""
    if not counts:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH reclaimed AS (
                SELECT workload.id, done.count
                FROM unnest(%s::text[], %s::text[], %s::int[]) AS done (namespace, name, count)
                JOIN queues_workload AS workload ON workload.cluster_id = %s AND workload.namespace = done.namespace
                    AND workload.name = done.name AND workload.status <> 'Finished'
                ORDER BY workload.id FOR NO KEY UPDATE OF workload
            )
            UPDATE queues_podset AS pod_set SET reclaimable_count = reclaimed.count FROM reclaimed
            WHERE pod_set.workload_id = reclaimed.id AND pod_set.name = %s
                AND reclaimed.count <> pod_set.reclaimable_count AND reclaimed.count <= pod_set.count
            """,
            [
                [namespace for namespace, _ in counts],
                [name for _, name in counts],
                list(counts.values()),
                cluster.pk,
                pod_set,
            ],
        )
        if cursor.rowcount:
            wake_scheduler(cluster.name)
        return int(cursor.rowcount)


def record_replicas_gone(cluster: Cluster, pod_set: PodSet, replicas: Collection[int]) -> int:
    """Record surplus replicas of a pod set whose pods are gone: their node becomes null. `pod_set` is the row when it
    was read; nothing is recorded if a decision has changed it since. Returns the number of replicas."""
    with transaction.atomic():
        holds = Workload.objects.filter(pk=pod_set.workload_id, status=WorkloadStatus.ADMITTED, evicted_at=None)
        if not holds.select_for_update().exists():
            return 0
        now = PodSet.objects.filter(pk=pod_set.pk, admitted_count=pod_set.admitted_count, nodes=pod_set.nodes)
        nodes = [None if replica in replicas else node for replica, node in enumerate(pod_set.nodes)]
        if not now.update(nodes=nodes):
            return 0
        wake_scheduler(cluster.name)
    return len(replicas)


def workloads_of_pods(cluster: Cluster, uids: Collection[str]) -> dict[str, str]:
    """Return the uids of the workloads of these pods, by the pods'; others are left out."""
    if not uids:
        return {}
    rows = Pod.objects.filter(workload__cluster=cluster, uid__in=uids).values_list("uid", "workload__uid")
    return {uid: str(workload) for uid, workload in rows}


def record_pods_waiting(cluster: Cluster, why: Mapping[tuple[str, str], str], *, now: datetime | None = None) -> int:
    """Set PodsReady to False on admitted workloads that have never been ready; returns the number of changed rows.

    `why` is the cluster's message by workload, or empty; a message is also written as an event.
    """
    if not why:
        return 0
    now = now or timezone.now()
    parameters: dict[str, Any] = {
        "cluster_id": cluster.pk,
        "namespaces": [namespace for namespace, _ in why],
        "names": [name for _, name in why],
        "messages": [message or _NOT_YET for message in why.values()],
        "reason": PodsReadyReason.WAIT_FOR_START.value,
        "not_yet": _NOT_YET,
        "since": rfc3339(now),
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, parameters)
        changed = int(cursor.fetchone()[0])
        if changed:
            wake_scheduler(cluster.name)
    return changed


@dataclass(frozen=True, slots=True)
class PlacedPodSet:
    """A pod set of an admitted workload with pods on a node.

    * is_noted: the node is in the workload's `unhealthyNodes`.
    * progresses: a pod of the workload is bound to the node, has not ended, and is not being deleted.
    * is_chosen: our placement named the node; otherwise only the topology assignment names it.
    * tolerations: of the pod template, as in its manifest.
    * checks: the states of the workload's admission checks, as stored.
    """

    workload_id: int
    is_noted: bool
    progresses: bool
    is_chosen: bool
    name: str
    flavors: tuple[str, ...]
    tolerations: tuple[Mapping[str, Any], ...]
    checks: tuple[Mapping[str, Any], ...]


def pod_sets_on(
    cluster: Cluster, nodes: Collection[str], workloads: Collection[str] | None = None
) -> dict[str, list[PlacedPodSet]]:
    """Return the placed pod sets by node, in one query.

    * workloads: the uids of the workloads to look at; None for all.
    """
    if not nodes:
        return {}
    parameters = {
        "nodes": list(nodes), "workloads": None if workloads is None else list(workloads), "cluster": cluster.pk,
    }  # fmt: skip
    found: dict[str, list[PlacedPodSet]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PLACED, parameters)
        for node, workload, is_noted, progresses, is_chosen, name, flavors, tolerations, checks in cursor.fetchall():
            placed = PlacedPodSet(
                workload, is_noted, progresses, is_chosen, name, tuple(flavors),
                tuple(orjson.loads(tolerations or "[]") or ()), tuple(orjson.loads(checks)),
            )  # fmt: skip
            found.setdefault(node, []).append(placed)
    return found


def noted_nodes(cluster: Cluster) -> set[str]:
    """Return the nodes that `record_node_failed` recorded on any workload."""
    rows = Workload.objects.filter(cluster=cluster).exclude(status=WorkloadStatus.FINISHED).exclude(unhealthy_nodes=[])
    return {node for nodes in rows.values_list("unhealthy_nodes", flat=True) for node in nodes}


def record_node_failed(cluster: Cluster, node: str, workloads: Iterable[int]) -> int:
    """Record a failed node on these workloads, if they are still admitted; returns how many changed."""
    return _change(
        cluster,
        """
        UPDATE queues_workload AS workload SET unhealthy_nodes = workload.unhealthy_nodes || jsonb_build_array(%s::text)
        FROM (
            SELECT id FROM queues_workload
            WHERE id = ANY(%s) AND status = 'Admitted' AND evicted_at IS NULL
                AND NOT unhealthy_nodes @> jsonb_build_array(%s::text)
            ORDER BY id FOR NO KEY UPDATE
        ) AS placed
        WHERE workload.id = placed.id
        """,
        node,
        workloads,
    )


def record_node_recovered(cluster: Cluster, node: str, workloads: Iterable[int]) -> int:
    """Remove a node that `record_node_failed` recorded on these workloads; returns how many changed."""
    return _change(
        cluster,
        """
        UPDATE queues_workload AS workload SET unhealthy_nodes = workload.unhealthy_nodes - %s::text
        FROM (
            SELECT id FROM queues_workload
            WHERE id = ANY(%s) AND status <> 'Finished' AND unhealthy_nodes @> jsonb_build_array(%s::text)
            ORDER BY id FOR NO KEY UPDATE
        ) AS noted
        WHERE workload.id = noted.id
        """,
        node,
        workloads,
    )


def _change(cluster: Cluster, statement: str, node: str, workloads: Iterable[int]) -> int:
    wanted = list(workloads)
    if not wanted:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(statement, [node, wanted, node])
        changed = int(cursor.rowcount)
        if changed:
            wake_scheduler(cluster.name)
    return changed
