"""Syncs pods of the cluster to pod rows, workloads' progress, and slices and amounts that others use."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from django.db import connection

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent
from clusters.jobs.objects import (
    POD_SET_LABEL,
    WORKLOAD_UID_LABEL,
    replica_of,
    tied_host,
    uid_label,
    waits_for_us,
)
from clusters.jobs.reading import NO_CLUSTER
from clusters.jobs.registry import JOB_KINDS, ending_of
from clusters.sync.node_failures import NodeFailures
from clusters.sync.ownership import Ownership
from clusters.sync.pod_status import PodStatus, pod_status, why_not_ready
from foundation import tracing
from foundation.postgresql.instances import fetched_rows
from foundation.wake_ups import request_push, wake_scheduler
from gpus.annotations import FoundAllocation, found_allocation
from gpus.annotations.allocation import BIND_PHASE
from gpus.manifests import configured_vendors
from gpus.services import (
    ExternalPod,
    forget_external,
    keep_external,
    record_external,
    sync_foreign_usage,
)
from gpus.vendors import VENDORS
from queues.manifests.pod_group import POD, POD_GROUP
from queues.models import Workload
from queues.services.pods import ObservedPod, forget_pods, keep_pods, record_pods_waiting, store_pods
from queues.services.workloads import record_finished, record_pods_ready, settle_endings
from scheduling.lifecycle.conditions import PODS_READY_MESSAGES
from scheduling.model.node import PODS
from scheduling.model.pod import PodTemplate
from scheduling.model.resources import pod_requests
from scheduling.model.vocabulary import ConditionType, FinishedReason, PodsReadyReason, WorkloadStatus

_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_POD: Final = JOB_KINDS[POD]
_INDEX: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_ENDED: Final = ("Succeeded", "Failed")


class _WorkloadRow(NamedTuple):
    """The columns that are read of a pod's workload: each change of a pod reads them."""

    id: int
    uid: UUID
    namespace: str
    name: str
    status: str
    quota_reserved_at: datetime | None
    evicted_at: datetime | None
    pods_stopped_at: datetime | None
    pods_ready_at: datetime | None
    is_ending: bool
    job_kind: str | None
    conditions: list[JsonObject]


class _PodSetRow(NamedTuple):
    """The columns that are read of its pod sets."""

    size: int
    reclaimable_count: int
    admitted_count: int | None
    nodes: list[str]
    topology_assignment: JsonObject | None


# As text: to build these queries again for each turn took the watcher longer than their answers.
_WORKLOADS: Final = """
    SELECT workload.id, workload.uid, workload.namespace, workload.name, workload.status, quota_reserved_at, evicted_at,
        pods_stopped_at, pods_ready_at, ending IS NOT NULL, job.kind, workload.conditions::text, (
            SELECT coalesce(jsonb_agg(
                jsonb_build_array(count, reclaimable_count, admitted_count, nodes, topology_assignment) ORDER BY id
            ), '[]')::text FROM queues_podset WHERE workload_id = workload.id
        )
    FROM queues_workload AS workload LEFT JOIN queues_job AS job ON job.id = workload.job_id
    WHERE workload.cluster_id = %s AND workload.uid = ANY(%s::uuid[])
"""
_HOLDING: Final = """
    SELECT namespace, uid::text FROM queues_workload
    WHERE cluster_id = %s AND quota_reserved_at IS NOT NULL AND status <> 'Finished'
"""
_SETTLE_SECONDS: Final = 5.0
"""How often changes of any pods settle workloads whose job ended while its last pod did, as another process stored it.
"""


@dataclass(slots=True)
class _Pod:
    """The state that is remembered of a pod."""

    namespace: str
    name: str
    uid: str
    workload_uid: str
    node: str
    phase: str
    ready: bool
    terminating: bool
    requests: Mapping[str, int]
    found: FoundAllocation | None
    row: ObservedPod | None
    waits: bool
    bind_phase: str
    finished: FinishedReason | None
    message: str
    status: PodStatus

    @property
    def ended(self) -> bool:
        return self.phase in _ENDED


@dataclass(frozen=True, slots=True)
class _Decided:
    """The scheduler's reservation for a workload: whether its pods' requests are reserved, and their nodes; and whether
    it holds quota, which it may do without a place."""

    placed: bool = False
    nodes: frozenset[str] = frozenset()
    holds_quota: bool = False


_NOTHING: Final = _Decided()


@dataclass(frozen=True, slots=True)
class _Known:
    """The rows' facts about a pod's workload."""

    namespace: str
    name: str
    count: int
    decided: _Decided
    evicted: bool
    running: bool
    ready: bool
    readiness: JsonObject
    """The pod's PodsReady condition, if it has one."""
    job_kind: str
    is_ending: bool
    """Whether its job has ended, and the workload waits for its last pod."""

    @property
    def recovering(self) -> bool:
        return self.readiness.get("reason") == PodsReadyReason.WAIT_FOR_RECOVERY

    @property
    def tells_why(self) -> bool:
        """Return whether its condition has a message from the cluster, which may be out of date."""
        return self.readiness.get("message") not in PODS_READY_MESSAGES.values()

    def counts(self, pod: _Pod) -> bool:
        """Return whether a pod that has ended counts as ready. A group then needs fewer pods (`count`)."""
        return pod.phase == "Succeeded" and self.job_kind != POD_GROUP


@dataclass(slots=True)
class _Batch:
    """The workloads and nodes affected by one batch of changes."""

    stored: dict[str, _Pod] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    workloads: set[str] = field(default_factory=set)
    left: set[tuple[str, str]] = field(default_factory=set)
    """The nodes that pods left, are leaving or wait for, each with the uid of the pod's workload."""
    listed: bool = False
    push: bool = False


class PodSync:
    """Keeps the rows in step with the pods of one cluster."""

    def __init__(
        self, cluster: Cluster, ownership: Ownership | None = None, failures: NodeFailures | None = None
    ) -> None:
        """
        * ownership: the workload of each pod if another scheduler decides, which does not set our labels.
        * failures: receives the pods that leave their nodes.
        """
        self._cluster = cluster
        self._failures = failures
        self._ownership = ownership
        self._pods: dict[str, _Pod] = {}
        self._of_workload: dict[str, set[str]] = defaultdict(set)
        self._decided: dict[tuple[str, str], _Decided] = {}
        self._usage: tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]] | None = None
        self._external: set[str] | None = None
        """The pods with stored slices since the last list; None before the first one."""
        self._vendors = VENDORS
        self._settings: object = None
        self._batch = _Batch()
        """The changes since the last `apply`. Those after which a step failed stay: no list has the pods that went."""
        self._is_stored = False
        """Whether the rows of these changes are stored already."""
        self._settled_at = float("-inf")
        self._versions: dict[str, str] = {}
        """The version of each pod as last read: most pods of a list are unchanged."""

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order of their arrival, and store the combined result."""
        if not self._is_stored:
            self.observe(items)
        batch, self._batch, self._is_stored = self._batch, _Batch(), False
        known = self._known(batch.workloads)
        for uid, workload in known.items():
            if uid in self._of_workload:
                self._decided[workload.namespace, uid] = workload.decided
        if self._failures is not None:
            self._failures.pods_left(batch.left)
        if self._ownership is None:
            self._record_progress(known, datetime.fromtimestamp(now, UTC))
            ending = batch.listed or any(workload.is_ending for workload in known.values())
            if ending or now - self._settled_at >= _SETTLE_SECONDS:
                self._settled_at = now
                settle_endings(self._cluster, now=datetime.fromtimestamp(now, UTC))
        self._record_external(batch, now)
        if batch.push or any(workload.evicted for workload in known.values()):
            request_push(self._cluster.name)

    def observe(self, items: Sequence[Listing | WatchEvent]) -> None:
        """Store the rows of pods as these lists and changes show them. The next `apply` does the rest for them."""
        batch, self._is_stored = self._batch, False
        self._configure()
        for item in items:
            if isinstance(item, Listing):
                self._replace(item.items, batch)
            elif item.type == "DELETED":
                self._remove(item.object["metadata"]["uid"], batch)
            else:
                self._note(item.object, batch)
        forget_pods(self._cluster, batch.gone | batch.moved)
        store_pods(self._cluster, [pod.row for pod in batch.stored.values() if pod.row is not None])
        if batch.listed:
            keep_pods(self._cluster, self._pods.keys())
        self._is_stored = True

    def _configure(self) -> None:
        settings = self._cluster.device_plugin_configuration.get("settings") or {}
        if settings != self._settings:
            self._settings, self._vendors = settings, configured_vendors(settings, VENDORS)
            self._versions.clear()

    def tick(self, now: float) -> None:
        """Count pods as external once their workload no longer holds their slices."""
        placed = {key for key, decided in self._decided.items() if decided.placed}
        if not placed:
            return
        released = placed.difference(fetched_rows(_HOLDING, [self._cluster.pk]))
        if not released:
            return
        batch = _Batch()
        for key in released:
            self._decided[key] = _NOTHING
            batch.stored |= {uid: self._pods[uid] for uid in self._of_workload.get(key[1], ())}
        self._record_external(batch, now)

    def _replace(self, pods: Iterable[JsonObject], batch: _Batch) -> None:
        batch.listed = True
        before = set(self._pods)
        for pod in pods:
            before.discard(pod["metadata"]["uid"])
            self._note(pod, batch)
        for uid in before:
            self._remove(uid, batch)

    def _note(self, manifest: JsonObject, batch: _Batch) -> None:
        before = self._pods.get(manifest["metadata"]["uid"])
        pod = self._read(manifest, before)
        if before is not None and before.workload_uid != pod.workload_uid:
            batch.moved.add(pod.uid)
            self._remove(pod.uid, batch)  # a newer slice of its elastic job took it over
        self._pods[pod.uid] = pod
        batch.stored[pod.uid] = pod
        batch.gone.discard(pod.uid)
        batch.push |= pod.waits or (before is not None and before.bind_phase != pod.bind_phase)
        if pod.workload_uid:
            self._of_workload[pod.workload_uid].add(pod.uid)
            batch.workloads.add(pod.workload_uid)
            left = pod.node if pod.ended or pod.terminating else tied_host(manifest)
            if left:
                batch.left.add((left, pod.workload_uid))

    def _read(self, manifest: JsonObject, before: _Pod | None) -> _Pod:
        """Read the state of a pod; the earlier one if the pod has not changed and its own labels name its workload
        (without `ownership`, which may change alone)."""
        version = str(manifest["metadata"].get("resourceVersion", ""))
        if before is not None and self._ownership is None and version and self._versions.get(before.uid) == version:
            return before
        pod = self._observed(manifest)
        if not pod.ended:
            pod.found = found_allocation(manifest, self._vendors, init_done=_init_done(manifest))
            if pod.row is not None and pod.found is not None:
                pod.row = replace(pod.row, devices=_devices(pod.found))
        self._versions[pod.uid] = version
        return pod

    def _observed(self, manifest: JsonObject) -> _Pod:
        if self._ownership is None:
            return _observed(manifest, uid_label(manifest, WORKLOAD_UID_LABEL))
        workload = self._ownership.workload_of(manifest)
        pod = _observed(manifest, workload)
        if pod.row is not None:
            pod.row = replace(pod.row, pod_set=self._ownership.pod_set_of(manifest, workload))
        return pod

    def _remove(self, uid: str, batch: _Batch) -> None:
        pod = self._pods.pop(uid, None)
        self._versions.pop(uid, None)
        batch.stored.pop(uid, None)
        batch.gone.add(uid)
        if pod is None or not pod.workload_uid:
            return
        self._of_workload[pod.workload_uid].discard(uid)
        if not self._of_workload[pod.workload_uid]:
            del self._of_workload[pod.workload_uid]
            self._decided.pop((pod.namespace, pod.workload_uid), None)
        batch.workloads.add(pod.workload_uid)
        if pod.node:
            batch.left.add((pod.node, pod.workload_uid))

    def _known(self, uids: Iterable[str]) -> dict[str, _Known]:
        wanted = list(uids)
        if not wanted:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(_WORKLOADS, [self._cluster.pk, wanted])
            known: dict[str, _Known] = {}
            for *columns, conditions, pod_sets in cursor.fetchall():
                row = _WorkloadRow._make((*columns, orjson.loads(conditions)))
                known[str(row.uid)] = _known(row, [_PodSetRow._make(each) for each in orjson.loads(pod_sets)])
        return known

    def _record_progress(self, known: Mapping[str, _Known], now: datetime) -> None:
        """Record pods that became ready, are no longer ready, or (for single-pod workloads) ended."""
        ready: dict[tuple[bool, bool], list[tuple[str, str]]] = defaultdict(list)
        waiting: dict[tuple[str, str], str] = {}
        for uid, workload in known.items():
            if not workload.running:
                continue
            # Anyone can write a label, so it counts only in the workload's namespace.
            pods = [self._pods[pod] for pod in self._of_workload.get(uid, ())]
            pods = [pod for pod in pods if pod.namespace == workload.namespace]
            self._record_ended(workload, pods, now)
            enough = sum(1 for pod in pods if pod.ready or workload.counts(pod)) >= workload.count
            if enough != workload.ready:
                recovering = workload.recovering if enough else True
                ready[enough, recovering].append((workload.namespace, workload.name))
            elif not enough and pods:
                why = why_not_ready([pod.status for pod in pods if not pod.ended])
                if why != workload.readiness.get("message") and (why or workload.tells_why or not workload.readiness):
                    waiting[workload.namespace, workload.name] = why
        for (enough, recovering), keys in ready.items():
            changed = record_pods_ready(self._cluster, keys, ready=enough, recovering=recovering, now=now)
            if enough and not recovering:
                self._record_traces(changed, now)
        record_pods_waiting(self._cluster, waiting, now=now)

    def _record_traces(self, keys: Sequence[tuple[str, str]], now: datetime) -> None:
        """The last step in the traces of submissions: all pods run."""
        if not keys or not tracing.is_configured():
            return
        traced = Workload.objects.filter(cluster=self._cluster, admitted_at__isnull=False).exclude(traceparent="")
        for row in traced.filter(namespace__in={key[0] for key in keys}, name__in=[key[1] for key in keys]):
            if (row.namespace, row.name) in keys and row.admitted_at is not None:
                attributes = {"k8s.namespace.name": row.namespace, "kueueweb.workload": row.name}
                tracing.record("pods running", row.traceparent, row.admitted_at, now, attributes)

    def _record_ended(self, workload: _Known, pods: Iterable[_Pod], now: datetime) -> None:
        """A workload that is one pod ends with it. A pod that is being stopped has not ended."""
        if workload.job_kind != POD:
            return
        for pod in pods:
            if pod.finished is not None and not pod.terminating:
                key = (workload.namespace, workload.name)
                record_finished(self._cluster, [key], pod.finished, pod.message, now=now)

    def _record_external(self, batch: _Batch, now: float) -> None:
        """Store slices and requests of pods without a reservation here, if they are bound or HAMi has assigned them to
        a node.
        """
        found = {uid: held for uid, pod in self._pods.items() if (held := self._external_of(pod)) is not None}
        holding = [
            ExternalPod(self._pods[uid].namespace, self._pods[uid].name, uid, held)
            for uid, held in found.items()
            if batch.listed or uid in batch.stored
        ]
        if self._external is not None:
            self._external.update(pod.uid for pod in holding)
        changed = record_external(self._cluster.pk, holding, datetime.fromtimestamp(now, UTC)) if holding else False
        if batch.listed:
            changed |= keep_external(self._cluster.pk, found.keys())
            self._external = set(found)
        else:
            changed |= self._forget_external(batch.gone | (batch.stored.keys() - found.keys()))
        foreign = [pod for pod in self._pods.values() if self._is_foreign(pod)]
        usage = _usage(foreign), _usage(pod for pod in foreign if self._decided_of(pod).holds_quota)
        if usage != self._usage or batch.listed:
            changed |= sync_foreign_usage(self._cluster.pk, *usage)
            self._usage = usage
        if changed:
            wake_scheduler(self._cluster.name)

    def _forget_external(self, ended: set[str]) -> bool:
        """Delete the stored slices of pods that ended; return whether there were any."""
        if self._external is not None:
            ended = ended & self._external
        changed = forget_external(self._cluster.pk, ended) if ended else False
        if self._external is not None:
            self._external -= ended
        return changed

    def _decided_of(self, pod: _Pod) -> _Decided:
        return self._decided.get((pod.namespace, pod.workload_uid), _NOTHING)

    def _is_foreign(self, pod: _Pod) -> bool:
        """Return whether a pod's requests are not reserved: it is unmanaged, or on another node than assigned."""
        if pod.ended or not (pod.node or pod.found is not None):
            return False
        decided = self._decided_of(pod)
        return not decided.placed or bool(pod.node and decided.nodes and pod.node not in decided.nodes)

    def _external_of(self, pod: _Pod) -> FoundAllocation | None:
        """Return the devices a pod holds without a decision of ours.

        A pod of kueueweb on its assigned node holds the assigned slices, whatever its annotations say; differences are
        shown in `drift/`.
        """
        decided = self._decided_of(pod)
        if pod.ended or (decided.placed and (not pod.node or not decided.nodes or pod.node in decided.nodes)):
            return None
        return pod.found


def _init_done(manifest: JsonObject) -> bool:
    """Return whether all init containers succeeded, so that devices that only they held are free, as in HAMi."""
    ends = [
        (entry.get("state") or {}).get("terminated") or {}
        for entry in (manifest.get("status") or {}).get("initContainerStatuses") or ()
    ]
    wanted = len((manifest.get("spec") or {}).get("initContainers") or ())
    return len(ends) >= wanted > 0 and all(end.get("exitCode") == 0 for end in ends)


def _devices(found: FoundAllocation) -> str:
    """Return the devices in a pod's annotations; none if they are unreadable."""
    return orjson.dumps(sorted({held.uuid for held in found.slices})).decode()


def _usage(pods: Iterable[_Pod]) -> dict[str, dict[str, int]]:
    usage: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pod in pods:
        on_node = usage[pod.node or (pod.found.node if pod.found else "")]
        for resource, amount in pod.requests.items():
            on_node[resource] += amount
        on_node[PODS] += 1
    return {node: dict(amounts) for node, amounts in usage.items()}


def _has_place(pod_set: _PodSetRow) -> bool:
    """Return whether the scheduler has reserved its pods' node requests: with devices, or in a topology."""
    return bool(pod_set.nodes) or bool((pod_set.topology_assignment or {}).get("levels"))


def _known(row: _WorkloadRow, pod_sets: Sequence[_PodSetRow]) -> _Known:
    conditions: dict[str, JsonObject] = {entry.get("type", ""): entry for entry in row.conditions}
    readiness = conditions.get(ConditionType.PODS_READY, {})
    holds_quota = row.quota_reserved_at is not None and row.status != WorkloadStatus.FINISHED
    return _Known(
        namespace=row.namespace,
        name=row.name,
        count=_needed(row, pod_sets),
        decided=_Decided(
            holds_quota and any(_has_place(pod_set) for pod_set in pod_sets),
            frozenset(node for pod_set in pod_sets for node in pod_set.nodes if node),
            holds_quota,
        ),
        evicted=row.evicted_at is not None and row.pods_stopped_at is None,
        running=row.status == WorkloadStatus.ADMITTED and row.evicted_at is None,
        ready=row.pods_ready_at is not None,
        readiness=readiness,
        job_kind=row.job_kind or "",
        is_ending=row.is_ending,
    )


def _needed(row: _WorkloadRow, pod_sets: Sequence[_PodSetRow]) -> int:
    """Return how many pods must be ready. Pods of a group that succeeded are not run again, even after an eviction."""
    if row.job_kind == POD_GROUP:
        return sum(max(0, pod_set.size - pod_set.reclaimable_count) for pod_set in pod_sets)
    return sum(pod_set.admitted_count or 0 for pod_set in pod_sets)


def _observed(manifest: JsonObject, workload_uid: str) -> _Pod:
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    annotations = metadata.get("annotations") or {}
    ending = ending_of(_POD, manifest)
    pod = _Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        workload_uid=workload_uid,
        node=spec.get("nodeName") or "",
        phase=status.get("phase", "Pending"),
        ready=ending is None and _POD.pods_ready(manifest, NO_CLUSTER) and not metadata.get("deletionTimestamp"),
        terminating=bool(metadata.get("deletionTimestamp")),
        requests=_requests(spec),
        found=None,
        row=None,
        waits=waits_for_us(manifest),
        bind_phase=annotations.get(BIND_PHASE, ""),
        finished=ending[0] if ending else None,
        message=ending[1] if ending else "",
        status=pod_status(manifest),
    )
    if pod.workload_uid:
        pod.row = _row(pod, replica_of(manifest), metadata, status)
    return pod


def _requests(spec: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the pod's requests. Other parts of the spec are not read, because newer clusters may have values we do not
    know."""
    asking = {name: spec[name] for name in ("containers", "initContainers", "overhead", "resources") if spec.get(name)}
    return pod_requests(PodTemplate.from_manifest({"spec": asking}))


def _row(
    pod: _Pod,
    replica: int | None,
    metadata: Mapping[str, Any],
    status: Mapping[str, Any],
) -> ObservedPod:
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    index = annotations.get(_COMPLETION_INDEX, "")
    if replica is None and _INDEX.fullmatch(index):
        replica = int(index)
    states = [entry.get("state") or {} for entry in status.get("containerStatuses") or ()]
    ends = [moment for state in states if (moment := _moment((state.get("terminated") or {}).get("finishedAt")))]
    return ObservedPod(
        workload_uid=pod.workload_uid,
        pod_set=labels.get(POD_SET_LABEL, ""),
        replica=replica or 0,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        phase=pod.phase,
        ready=pod.ready,
        terminating=pod.terminating,
        reason=pod.status.reason,
        message=pod.status.message,
        restarts=pod.status.restarts,
        containers=orjson.dumps(pod.status.containers).decode(),
        node_name=pod.node,
        created_at=_moment(metadata.get("creationTimestamp")),
        started_at=_moment(status.get("startTime")),
        finished_at=max(ends) if ends and pod.ended else None,
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
