"""Binds pods of admitted workloads to their nodes with the assigned slices, in HAMi's order.

First annotations that name the slices, then the node's lock, then the phase `allocating`, then the binding. HAMi's
device plugin does the rest and releases the lock. Steps that an earlier sweep completed are skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from django.db import connection, transaction

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.objects import (
    HAMI_KEEPS_AWAY,
    HAMI_WEBHOOK_LABEL,
    HOSTNAME_LABEL,
    JOB_UID_LABEL,
    POD_SET_LABEL,
    WORKLOAD_UID_LABEL,
    AdmittedWorkload,
    PodSetAdmission,
    placed_pod,
    uid_label,
    ungated_pod,
    waits_for_us,
)
from clusters.jobs.registry import JOB_KINDS
from clusters.push.claims import PodClaims
from clusters.push.desired_state import (
    FlavorNodes,
    Places,
    Slices,
    admitted_workload,
    checks_of_multikueue,
    places_of,
    runs,
    runs_elsewhere,
    with_jobs,
)
from clusters.push.node_locks import NodeLocks, locks_of
from clusters.push.replicas import Replicas
from clusters.push.topology_domains import TopologyDomains
from gpus.annotations import owned_annotations, pinned_devices, pod_annotations, webhook_annotations
from gpus.annotations.allocation import ALLOCATING, BIND_PHASE, BIND_TIME, TIMES
from gpus.manifests import configured_vendors
from gpus.vendors import VENDORS
from queues.manifests.job import WorkloadsPer
from queues.manifests.kueue_keys import COMPONENT_INDEX
from queues.models import PodSet, Workload
from scheduling.model.placement import PodPlacement
from scheduling.model.pod import DEFAULT_SCHEDULER
from scheduling.model.vocabulary import WorkloadStatus

_log = logging.getLogger(__name__)


class Binder:
    """One pass over the active pods."""

    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        flavors: Mapping[str, FlavorNodes],
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._flavors = flavors
        self._clock = clock
        self._vendors = configured_vendors(cluster.device_plugin_configuration.get("settings") or {}, VENDORS)
        self._locks = NodeLocks(client, clock)
        self._claims = PodClaims(client)
        self._domains = TopologyDomains(())
        self._places = Places()

    def bind(self, pods: Sequence[JsonObject]) -> int:
        """Bind the pods that wait for kueueweb and may run; returns their number. `pods` are all active pods of
        kueueweb's.
        """
        waiting = [pod for pod in pods if waits_for_us(pod)]
        if not waiting:
            return 0
        rows, slices, self._places = self._decided(waiting)
        bound = 0
        replicas = Replicas(pods)
        self._domains = TopologyDomains(pods)
        for pod in sorted(waiting, key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"])):
            row = self._row_of(pod, rows, replicas)
            if row is None:
                continue
            try:
                if self._still_stands(row):
                    bound += self._bind_one(pod, row, replicas, slices)
            except ClusterUnreachable:
                raise
            except ClusterError as error:
                metadata = pod["metadata"]
                _log.warning("Pod %s/%s is not bound yet: %s", metadata["namespace"], metadata["name"], error)
        return bound

    def _decided(self, waiting: Sequence[JsonObject]) -> tuple[dict[str, Workload], Slices, Places]:
        """Return the workloads to which these pods may belong, and their slices, as of one moment.

        A workload may be evicted and admitted elsewhere between two statements; nodes and slices of two decisions
        must never be mixed.
        """
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            rows = self._rows(waiting)
            return rows, Slices(row.pk for row in rows.values()), places_of(self._cluster, rows.values())

    def _rows(self, waiting: Sequence[JsonObject]) -> dict[str, Workload]:
        """Return the admitted workloads to which these pods may belong, by uid."""
        admitted = Workload.objects.filter(cluster=self._cluster, status=WorkloadStatus.ADMITTED, evicted_at=None)
        uids = {uid for pod in waiting if (uid := uid_label(pod, WORKLOAD_UID_LABEL))}
        unassigned = [pod for pod in waiting if not uid_label(pod, WORKLOAD_UID_LABEL)]
        jobs = {uid for pod in unassigned if (uid := uid_label(pod, JOB_UID_LABEL))}
        rows = with_jobs(admitted.filter(uid__in=uids) | admitted.filter(job__uid__in=jobs)).order_by("pk")
        elsewhere = checks_of_multikueue(self._cluster)
        return {str(row.uid): row for row in rows if runs(row) and not runs_elsewhere(row, elsewhere)}

    @staticmethod
    def _still_stands(row: Workload) -> bool:
        """Return whether the decision that was read is still the latest."""
        return Workload.objects.filter(pk=row.pk, updated_at=row.updated_at, evicted_at=None).exists()

    def _row_of(self, pod: JsonObject, rows: Mapping[str, Workload], replicas: Replicas) -> Workload | None:
        """Return the pod's workload. For a job whose pods are workloads of their own: the first admitted one without a
        pod; for pods in groups: that of the group."""
        uid = uid_label(pod, WORKLOAD_UID_LABEL)
        if uid:
            return rows.get(uid)
        job_uid = uid_label(pod, JOB_UID_LABEL)
        for row in rows.values():
            if row.job is not None and str(row.job.uid) == job_uid and _may_be_of(pod, row, replicas):
                return row
        return None

    def _bind_one(self, pod: JsonObject, row: Workload, replicas: Replicas, slices: Slices) -> int:
        pod_set = _pod_set(row, (pod["metadata"].get("labels") or {}).get(POD_SET_LABEL, ""))
        workload = admitted_workload(row, self._flavors, self._places)
        admission = next((found for found in workload.pod_sets if found.name == pod_set.name), workload.pod_sets[0])
        workload = replace(workload, pod_sets=(admission,))
        replica = replicas.assign(pod, str(row.uid), admission)
        if replica is None:
            return 0
        node = admission.nodes[replica] if replica < len(admission.nodes) else ""
        if not node:
            domain = self._domains.selector(pod, workload.uid, admission, row.unhealthy_nodes)
            return 0 if domain is None else self._hand_over(pod, workload, admission, replica, domain)
        if node in row.unhealthy_nodes:
            return 0  # the scheduler is about to choose another node
        if not admission.with_devices:
            return self._hand_over(pod, workload, admission, replica, {HOSTNAME_LABEL: admission.host(node)})
        placement = slices.placement(row, pod_set, replica, node)
        devices = slices.devices.get(node)
        hami = pod_annotations(placement, self._vendors, self._clock(), manifest=pod, devices=devices)
        hami |= webhook_annotations(placement, self._vendors, pod)
        theirs = owned_annotations(pod["metadata"].get("annotations") or {}, self._vendors)
        patch = placed_pod(pod, workload, replica, hami)
        # The node's device plugin trusts these annotations, so values of other writers are removed.
        patch["metadata"]["annotations"] |= {key: None for key in theirs if key not in (*hami, BIND_PHASE, BIND_TIME)}
        if self._is_pinned(pod) and hami:
            return self._pin(pod, patch, ungated_pod(pod, admission, node), placement)
        if not self._claims.allocate(pod, node):
            return 0
        self._annotate(pod, patch)
        locks = locks_of(placement, self._vendors)
        if not self._locks.take(node, pod, locks):
            return 0
        try:
            self._let_bind(pod, ungated_pod(pod, admission, node), phase=bool(hami))
            metadata = pod["metadata"]
            self._client.bind(metadata["namespace"], metadata["name"], metadata["uid"], node)
        except ClusterError as error:
            if not error.conflict or not self._is_bound_to(pod, node):
                self._locks.give_back(node, locks)
                raise
        return 1

    def _is_pinned(self, pod: JsonObject) -> bool:
        """Return whether HAMi's scheduler binds the pod: by the cluster's setting `device_binding`, except for a pod
        whose label keeps HAMi's webhook away, which was created before that setting.

        A pod that names another scheduler than the cluster's own is left to it, whatever the present setting: that
        scheduler binds the pod as soon as its gate is removed, so kueueweb must not.
        """
        labels = pod["metadata"].get("labels") or {}
        if labels.get(HAMI_WEBHOOK_LABEL) == HAMI_KEEPS_AWAY:
            return False
        return self._cluster.hami_binds or _scheduler_of(pod) != DEFAULT_SCHEDULER

    def _pin(self, pod: JsonObject, patch: JsonObject, ungate: JsonObject | None, placement: PodPlacement) -> int:
        """Let HAMi's scheduler bind a pod, restricted to the decided node and devices.

        HAMi counts the devices as taken from the moment it sees our annotations. Its scheduler then replaces them by
        its own decision, for which the node selector and the UUIDs leave one choice, and takes care of lock, phase and
        binding.
        """
        if ungate is None:
            return 0
        if _scheduler_of(pod) == DEFAULT_SCHEDULER:
            raise ClusterError(
                0, "NotGivenToHami",
                "HAMi's webhook has not assigned the pod to HAMi's scheduler. Make sure that the webhook sees "
                "pods of this namespace and delete the pod, or set the cluster's device_binding to bind.",
            )  # fmt: skip
        metadata = patch["metadata"]
        metadata["annotations"] |= pinned_devices(placement, self._vendors)
        self._patch(pod, {**ungate, "metadata": metadata})
        return 1

    def _let_bind(self, pod: JsonObject, ungate: JsonObject | None, *, phase: bool) -> None:
        """Remove the scheduling gate, and announce to HAMi's plugin that this pod's devices are the next to be
        allocated on its node."""
        patch: JsonObject = {"metadata": {"uid": pod["metadata"]["uid"]}, **(ungate or {})}
        if phase and (pod["metadata"].get("annotations") or {}).get(BIND_PHASE) != ALLOCATING:
            noted = {BIND_PHASE: ALLOCATING, BIND_TIME: str(int(self._clock()))}
            patch["metadata"] = {**patch["metadata"], "annotations": noted}
        if ungate is not None or "annotations" in patch["metadata"]:
            self._patch(pod, patch)

    def _hand_over(
        self,
        pod: JsonObject,
        workload: AdmittedWorkload,
        admission: PodSetAdmission,
        replica: int,
        domain: Mapping[str, str],
    ) -> int:
        """Leave a pod without assigned devices to the cluster's own scheduler, restricted to its flavors' nodes and
        its topology domain, or to its node. That scheduler checks what we do not read: ports, volumes, other pods."""
        ungate = ungated_pod(pod, admission, "", domain)
        if ungate is None:
            return 0
        self._patch(pod, {**ungate, **placed_pod(pod, workload, replica, {})})
        return 1

    def _annotate(self, pod: JsonObject, patch: JsonObject) -> None:
        """Patch labels and annotations, unless they have these values already, apart from the time of the decision."""
        metadata = pod["metadata"]
        missing = [
            key
            for field in ("labels", "annotations")
            for key, value in (patch["metadata"].get(field) or {}).items()
            if (metadata.get(field) or {}).get(key) != value and key not in TIMES
        ]
        if missing:
            self._patch(pod, patch)

    def _patch(self, pod: JsonObject, patch: JsonObject) -> None:
        metadata = pod["metadata"]
        self._client.patch(PODS, metadata["namespace"], metadata["name"], patch)

    def _is_bound_to(self, pod: JsonObject, node: str) -> bool:
        live = self._client.get(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
        return (
            live is not None
            and live["metadata"]["uid"] == pod["metadata"]["uid"]
            and live["spec"].get("nodeName") == node
        )


def _scheduler_of(pod: JsonObject) -> str:
    return pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER


def _may_be_of(pod: JsonObject, row: Workload, replicas: Replicas) -> bool:
    """Return whether a pod of the workload's job that has no workload yet may belong to this one."""
    kind = JOB_KINDS[row.job.kind] if row.job is not None else None
    if kind is None or kind.workloads_per is WorkloadsPer.JOB:
        return True
    if kind.workloads_per is WorkloadsPer.POD:
        return not replicas.has_pods(str(row.uid))
    return bool(row.annotations.get(COMPONENT_INDEX) == kind.group_of(pod))


def _pod_set(row: Workload, name: str) -> PodSet:
    pod_sets = list(row.pod_sets.all())
    return next((pod_set for pod_set in pod_sets if pod_set.name == name), pod_sets[0])
