"""Pushes rows that the cluster does not reflect yet: jobs start, stop and end; pods get their nodes and slices.

Everything follows from committed rows and the present state of the cluster, so an interrupted sweep is completed by
the next one. There is one sweep at a time per cluster, guarded by a database lock; no transaction is open during
requests to the cluster.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from django.db.models import F

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.connection import client_for
from clusters.jobs.families.serving import lets_pods_wait
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.hot_rows import workload_rows_with_jobs
from clusters.jobs.objects import (
    JOB_UID_LABEL,
    MANAGED_LABEL,
    WORKLOAD_UID_LABEL,
    CannotStart,
    JobSource,
    uid_label,
)
from clusters.jobs.plain_pods import (
    is_gated,
    is_kept_ended,
    released_pod,
)
from clusters.jobs.whole_objects import (
    difference,
    own_manifest,
    waiting_object,
)
from clusters.push.binder import Binder
from clusters.push.desired_state import (
    MAKERS,
    Places,
    Surroundings,
    Work,
    job_source,
    member_sources,
    places_of,
    runs,
    runs_elsewhere,
    surroundings_of,
    with_jobs,
    work_of,
)
from clusters.push.installation import pushes_alone
from clusters.push.jobs.plain_pods import PlainPods
from clusters.push.jobs.pushed_objects import PushedObjects, is_job_of
from clusters.push.jobs.suspendable_jobs import NotYet, SuspendableJobs
from clusters.push.kueue_objects.serving import Serving
from clusters.push.kueues_lease import keeps_kueue_waiting
from clusters.push.lost_pods import delete_pods_of_gone_nodes
from clusters.push.pod_owners import owners_of
from clusters.push.provisioning import ProvisioningRequests
from clusters.push.stray_pods import fail_stray_pods
from clusters.push.sweep_lock import sweep_lock
from clusters.push.workload_slices import handed_over, is_next_slice, note_gone_replicas
from foundation import tracing
from foundation.heartbeat import Role, note_failure, note_recovery
from foundation.transactions import execute_unnoticed, unnoticed_transaction
from queues.manifests.pod_group import POD, POD_GROUP
from queues.models import Job, Pod, Workload
from queues.services.admission_rows import read_conditions
from queues.services.workloads import raise_push, record_finished, record_stopped, settle_endings
from scheduling.lifecycle.retention import DEACTIVATIONS, read_retention
from scheduling.model.vocabulary import ConditionType, FinishedReason, WorkloadStatus

_log = logging.getLogger(__name__)

_BATCH: Final = 200
_FIRST_RETRY_SECONDS: Final = 1.0
_MAX_RETRY_SECONDS: Final = 300.0
_MAX_DOUBLINGS: Final = 9
_MAX_ERROR: Final = 1024
_UNPUSHED: Final = """
    workload.cluster_id = %(cluster)s AND workload.push_sequence > workload.pushed_sequence AND workload.id > %(after)s
    AND (workload.push_retry_at IS NULL OR workload.push_retry_at <= %(now)s
        OR workload.push_sequence > workload.push_refused_sequence)
    ORDER BY workload.id LIMIT %(limit)s
"""
_PUSHED: Final = """
    WITH told AS (
        SELECT workload.id, told.sequence FROM unnest(%s::bigint[], %s::bigint[]) AS told (id, sequence)
        JOIN queues_workload AS workload USING (id)
        WHERE workload.pushed_sequence < told.sequence
        ORDER BY workload.id FOR NO KEY UPDATE OF workload
    )
    UPDATE queues_workload AS workload SET pushed_sequence = told.sequence, push_error = '',
        push_failures = 0, push_retry_at = NULL
    FROM told WHERE workload.id = told.id
"""
LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(slots=True)
class PushReport:
    """The result of a sweep: workloads pushed, workloads refused by the cluster, pods bound, workloads that have
    stopped."""

    pushed: int = 0
    failed: int = 0
    bound: int = 0
    stopped: int = 0


def push_pending(
    cluster: Cluster, client: ClusterClient | None = None, clock: Callable[[], float] = time.time
) -> PushReport:
    """Run one sweep over a cluster, after the running one.

    Does nothing if another scheduler decides there, according to the cluster's mode or its watcher, or if another sweep
    is already waiting. If the cluster does not answer, or refuses to list its pods, this is logged and the remaining
    rows stay unpushed.
    """
    report = PushReport()
    if cluster.is_mirrored:
        return report
    with sweep_lock(cluster) as mine:
        # Read with the lock: a sweep that waited must see a change of mode that was committed meanwhile.
        work = work_of(cluster) if mine else None
        if work is None or work.is_mirrored is not False:
            return report
        if cluster.kueue_is_alive:
            _log.warning(
                (
                    "Cluster %s: nothing is pushed, because a Kueue also decides there (%s). Stop it, or set mode "
                    "observe or shadow."
                ),
                cluster.name, cluster.kueue_holder,
            )  # fmt: skip
            return report
        began = time.monotonic()
        try:
            client = client or client_for(cluster)
            if not pushes_alone(cluster, client):
                _log.warning(
                    "Cluster %s: nothing is pushed, because another kueueweb pushes there (%s). Stop one of the two.",
                    cluster.name, cluster.lease_holder,
                )  # fmt: skip
                return report
            if not keeps_kueue_waiting(cluster, client):
                _log.warning("Cluster %s: nothing is pushed, because a Kueue holds its leader's lease.", cluster.name)
                return report
            _push(cluster, client, report, clock, work)
            note_recovery(Role.CLUSTER_PUSH, cluster.name)
        except ClusterError as error:
            note_failure(Role.CLUSTER_PUSH, cluster.name, time.monotonic() - began)
            _log.warning("The sweep of cluster %s ended early; the next one continues: %s", cluster.name, error)
    return report


def _push(cluster: Cluster, client: ClusterClient, report: PushReport, clock: Callable[[], float], work: Work) -> None:
    """Write Kueue's objects, where they are served, and everything else. Raises ClusterError."""
    may_start, later, serving = None, frozenset[int](), None
    if cluster.serves_kueue:
        may_start = _admitted(cluster)  # of a workload that is admitted from now on, no object shows it yet
        serving = Serving(cluster, client, clock)
        later = serving.before_jobs()
        work = work_of(cluster)  # to serve the objects takes requests, and changes rows
    try:
        if work.asks_for_nodes:
            ProvisioningRequests(cluster, client, clock).follow()
            work = work_of(cluster)  # for the same reason
        if work.tells or work.tells_of_makers or work.follows_pods:
            around = surroundings_of(cluster, work.version or "")
            _Sweep(cluster, client, report, clock, around).do(work, may_start, later)
    except ClusterUnreachable:
        raise
    except ClusterError:  # such as a refused list of pods
        if serving is not None:
            serving.after_jobs()
        raise
    if serving is not None:
        serving.after_jobs()


def _admitted(cluster: Cluster) -> set[int]:
    """Return the admitted workloads to push: as in Kueue, their objects show the admission before their pods start."""
    unpushed = Workload.objects.filter(cluster=cluster, push_sequence__gt=F("pushed_sequence"))
    return set(unpushed.filter(status=WorkloadStatus.ADMITTED, evicted_at=None).values_list("pk", flat=True))


class _Sweep:
    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        report: PushReport,
        clock: Callable[[], float],
        around: Surroundings,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._report = report
        self._clock = clock
        self._objects = PushedObjects(cluster, client)
        self._use(around)
        self._told: list[tuple[int, int]] = []
        self._traced: list[Workload] = []
        self._applied: set[str] = set()
        self._members: dict[int, list[JobSource]] = {}
        self._places = Places()

    def _use(self, around: Surroundings) -> None:
        self._version = around.version
        self._flavors = around.flavors
        self._elsewhere = around.elsewhere
        self._vendors = around.vendors(self._cluster)
        self._jobs = SuspendableJobs(self._cluster, self._objects, around)
        self._pods = PlainPods(self._cluster, self._objects, self._flavors)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def do(self, work: Work, may_start: Collection[int] | None, later: Collection[int]) -> None:
        """Do the parts that have rows to work on."""
        if work.tells:
            self.tell(may_start, later)
        if work.tells_of_makers:
            self.tell_of_makers()
        if work.follows_pods:
            self.follow_pods()

    def tell(self, may_start: Collection[int] | None = None, later: Collection[int] = ()) -> None:
        """Push each unpushed workload in the order of keys.

        A refused workload does not delay the others. `may_start` are the keys of the workloads whose pods may start
        now, None for all; pods of other workloads start with the next sweep, which also pushes the workloads of
        `later`.
        """
        due = {"cluster": self._cluster.pk, "now": self._now(), "limit": _BATCH}
        after = 0
        while True:
            rows, version = workload_rows_with_jobs(_UNPUSHED, {**due, "after": after})
            if rows and version != self._version:
                # Edited since this sweep began: these workloads may have been admitted by the new configuration.
                self._use(surroundings_of(self._cluster, version))
            self._look_up(rows)
            try:
                for row in rows:
                    if row.pk not in later and (may_start is None or row.pk in may_start or not runs(row)):
                        self._tell_one(row)
            finally:  # if the cluster stops answering, the next sweep has only the others
                self._mark_pushed()
                if any(row.ending is not None for row in rows):
                    # Their last pods may have ended before the end of their jobs was committed: no event of a pod
                    # follows.
                    settle_endings(self._cluster, now=self._now())
            if len(rows) < _BATCH:
                break
            after = rows[-1].pk

    def tell_of_makers(self) -> None:
        """Create, change or delete objects that create jobs (such as CronJobs). They have no workload, so they never
        wait.
        """
        rows = Job.objects.filter(cluster=self._cluster, kind__in=MAKERS, found_in_cluster=False)
        changed = rows.exclude(pushed_generation=F("generation")) | rows.filter(deletion_requested_at__isnull=False)
        for row in changed.order_by("pk"):
            source = job_source(row, self._vendors, hami_binds=self._cluster.hami_binds)
            if source is None:
                continue
            try:
                there = self._objects.there(source)
                if row.deletion_requested_at is None:
                    self._objects.apply(source, own_manifest(source))
                    rows.filter(pk=row.pk).update(pushed_generation=row.generation)
                elif there is None or self._client.delete(source.kind.resource, source.namespace, source.name):
                    row.delete()
            except ClusterUnreachable:
                raise
            except ClusterError as refusal:
                _log.warning("Cluster %s refuses %s: %s", self._cluster.name, row, refusal)
                self._report.failed += 1

    def _tell_one(self, row: Workload) -> None:
        try:
            self._act(row)
        except NotYet:  # it stays unpushed, and the next sweep tries again
            return
        except CannotStart as refusal:
            key = (row.namespace, row.name)
            reason = FinishedReason.FAILED_TO_START
            record_finished(self._cluster, [key], reason, str(refusal), actor="scheduler", now=self._now())
            if row.job is not None and row.job.kind in (POD, POD_GROUP):
                with unnoticed_transaction():  # its pods lose their finalizers
                    raise_push(Workload.objects.filter(pk=row.pk))
        except ClusterUnreachable:
            raise
        except JobError as missing:
            # An object that it refers to is missing and may still be created.
            if not self._give_up(row, ClusterError(HTTPStatus.CONFLICT, "Conflict", str(missing))):
                return
        except ClusterError as refusal:
            if not self._give_up(row, refusal):
                return
        self._told.append((row.pk, row.push_sequence))
        if row.traceparent and row.admitted_at is not None and row.ending is None:
            self._traced.append(row)

    def _mark_pushed(self) -> None:
        """Record what was pushed. A row that changed meanwhile stays unpushed, because its sequence is newer."""
        if not self._told:
            return
        execute_unnoticed(_PUSHED, [[pk for pk, _ in self._told], [sequence for _, sequence in self._told]])
        self._report.pushed += len(self._told)
        self._told.clear()
        self._record_traces()

    def _record_traces(self) -> None:
        """The step in the traces of submissions: their admission was pushed."""
        if tracing.is_configured():
            for row in self._traced:
                attributes = {"k8s.namespace.name": row.namespace, "kueueweb.workload": row.name}
                tracing.record("pushed", row.traceparent, row.admitted_at or self._now(), self._now(), attributes)
        self._traced.clear()

    def _give_up(self, row: Workload, refusal: ClusterError) -> bool:
        """Finish a workload that the cluster will never accept. Any other is pushed again, with growing delays."""
        _log.warning("Cluster %s refuses workload %s/%s: %s", self._cluster.name, row.namespace, row.name, refusal)
        if _is_for_good(refusal) and runs(row) and not self._is_there(row):
            key = (row.namespace, row.name)
            reason = FinishedReason.FAILED_TO_START
            record_finished(self._cluster, [key], reason, _in_one_line(refusal), actor="scheduler", now=self._now())
            return True
        self._report.failed += 1
        again = row.push_failures + 1 if row.push_sequence == row.push_refused_sequence else 1
        wait = min(_FIRST_RETRY_SECONDS * 2 ** min(again - 1, _MAX_DOUBLINGS), _MAX_RETRY_SECONDS)
        with unnoticed_transaction():
            Workload.objects.filter(pk=row.pk).update(
                push_error=_in_one_line(refusal),
                push_failures=again,
                push_refused_sequence=row.push_sequence,
                push_retry_at=self._now() + timedelta(seconds=wait),
            )
        return False

    def _is_there(self, row: Workload) -> bool:
        source = job_source(row.job) if row.job is not None else None
        if source is not None and self._client.get(source.kind.resource, source.namespace, source.name) is not None:
            return True
        return Pod.objects.filter(workload=row).exists()

    def _look_up(self, rows: Sequence[Workload]) -> None:
        self._places = places_of(self._cluster, rows)
        self._jobs.recall(rows)
        counts = Counter(row.job.kind for row in rows if row.job is not None and not self._jobs.is_known(row))
        groups = [row.job.pk for row in rows if row.job is not None and row.job.kind == POD_GROUP]
        self._members = member_sources(groups, self._vendors, hami_binds=self._cluster.hami_binds)
        counts[PODS.kind] += sum(map(len, self._members.values()))
        self._objects.look_up(counts)
        self._jobs.look_up(rows, self._places)
        self._pods.look_up(self._now())

    def _act(self, row: Workload) -> None:
        if row.job is None:
            return
        source = job_source(row.job, self._vendors, hami_binds=self._cluster.hami_binds)
        sources = self._members.get(row.job.pk, ()) if source is None else (source,)
        withdrawn = row.job.deletion_requested_at is not None
        ends = row.ending is not None or withdrawn or row.status == WorkloadStatus.FINISHED
        if not ends and all(each.kind.stopping is Stopping.DELETE for each in sources):
            self._act_on_pods(sources, row)
            return
        for each in sources:
            self._act_on(each, row, withdrawn=withdrawn or each.leaving)

    def _act_on_pods(self, sources: Sequence[JobSource], row: Workload) -> None:
        """Withdraw the pods that must stop, and carry out the pass on all others of the workload."""
        for each in sources:
            if each.leaving:
                self._withdraw(each, row)
        self._pods.carry_out([each for each in sources if not each.leaving], row, self._places)

    def _act_on(self, source: JobSource, row: Workload, *, withdrawn: bool) -> None:
        if row.ending is not None:
            self._stop_ending(source, row)
        elif withdrawn:
            self._withdraw(source, row)
        elif row.status == WorkloadStatus.FINISHED and source.kind.stopping is Stopping.DELETE:
            self._release(source)
        elif row.status == WorkloadStatus.FINISHED:
            return  # its job has ended by itself; only pods have a finalizer to lose
        elif source.kind.stopping is Stopping.SUSPEND:
            self._jobs.carry_out(source, row)
        elif (there := self._gated_set(source)) is not None:
            self._let_pods_wait(source, there)
            self._pods.carry_out_set(source, there, row, self._places)
        elif runs(row):
            self._let_pods_start(source)
        elif not is_next_slice(row):
            self._stop(source, row)

    def _gated_set(self, source: JobSource) -> JsonObject | None:
        """Return the set in the cluster whose pods are gated at creation; None for all others."""
        there = self._objects.there(source) if source.kind.groups_pods else None
        return there if there is not None and lets_pods_wait(source.kind, there) else None

    def _let_pods_start(self, source: JobSource) -> None:
        there = self._objects.there(source)
        if there is not None or not source.found_in_cluster:  # otherwise its owner deleted it: the watcher handles that
            self._let_pods_wait(source, there)

    def _let_pods_wait(self, source: JobSource, there: JsonObject | None) -> None:
        """For a job whose pods wait instead of the job: it may have many workloads, so its own state is pushed once
        a sweep."""
        if source.uid in self._applied or (
            source.found_in_cluster and there is not None and lets_pods_wait(source.kind, there)
        ):
            return
        self._applied.add(source.uid)
        waiting = waiting_object(source, there)
        if not source.found_in_cluster:
            self._objects.apply(source, waiting)
        elif there is not None:
            self._objects.change(source.kind, there, lambda live: difference(live, waiting))
            self._remove_unmarked_pods(source, there)

    def _remove_unmarked_pods(self, source: JobSource, there: JsonObject) -> None:
        """Delete pods of a found job that were created before its templates had our gate: they may run without a
        workload."""
        selector = source.kind.selector_of_pods(there)
        pods = self._client.list(PODS, source.namespace, label_selector=selector).items if selector else ()
        for pod in pods:
            if uid_label(pod, JOB_UID_LABEL) != source.uid and not pod["metadata"].get("deletionTimestamp"):
                self._delete_pod(pod)

    def _stop(self, source: JobSource, row: Workload) -> None:
        """Delete its pods. `_confirm_stopped` notes later that none is left."""
        if source.kind.stopping is Stopping.SUSPEND:
            self._jobs.stop(source, row)
            return
        there = self._objects.there(source)
        if there is None:
            return
        if source.kind.stopping is Stopping.DELETE:
            if is_gated(there) and source.found_in_cluster:
                self._release(source)  # it has not run, and never will
            else:
                self._delete_pod(there)
            return
        self._let_pods_wait(source, there)  # first, or a running pod would replace the deleted one
        for pod in self._pods_of(row):
            metadata = pod["metadata"]
            self._client.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def _stop_ending(self, source: JobSource, row: Workload) -> None:
        """Delete the pods that are left of a job that has ended or is gone, and let no others start."""
        there = self._objects.there(source)
        if there is not None and not source.kind.outcome(there).finished:
            self._stop(source, row)
            return
        for pod in self._pods_of(row):
            self._delete_pod(pod)

    def _delete_pod(self, pod: JsonObject) -> None:
        metadata = pod["metadata"]
        release = released_pod(pod)
        if release is not None:
            self._client.patch(PODS, metadata["namespace"], metadata["name"], release)
        self._delete_if_alive(pod)

    def _delete_if_alive(self, pod: JsonObject) -> None:
        metadata = pod["metadata"]
        if not metadata.get("deletionTimestamp"):
            self._client.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def _release(self, source: JobSource) -> None:
        """Remove Kueue's finalizer from a pod that its group no longer needs."""
        there = self._objects.get(source)
        release = released_pod(there) if there is not None and is_job_of(there, source) else None
        if release is not None:
            self._client.patch(PODS, source.namespace, source.name, release)

    def _withdraw(self, source: JobSource, row: Workload) -> None:
        """Delete a cancelled workload's job from the cluster; a found one stops, or is deleted after its retention.

        A pod can only be stopped by deleting it, and one that never runs is of no use.
        """
        if source.ended and source.found_in_cluster:
            self._release(source)
            return
        there = self._objects.there(source)
        if source.kind.stopping is Stopping.DELETE:
            if there is not None:
                self._delete_pod(there)
            return
        if source.found_in_cluster and not self._is_expired(source, row):
            self._stop(source, row)
            return
        if there is not None:
            self._client.delete(source.kind.resource, source.namespace, source.name, uid=there["metadata"]["uid"])

    def _is_expired(self, source: JobSource, row: Workload) -> bool:
        """Return whether Kueue's rules deactivated the workload, and the Configuration's retention of such jobs is
        over."""
        kept = read_retention(self._cluster.configuration).after_deactivated_seconds
        if kept is None or source.kind.stopping is not Stopping.SUSPEND or row.evicted_at is None:
            return False
        evicted = read_conditions(row.conditions).get(ConditionType.EVICTED)
        by_kueue = evicted is not None and evicted.reason in DEACTIVATIONS
        return by_kueue and row.evicted_at + timedelta(seconds=kept) <= self._now()

    def _pods_of(self, row: Workload) -> tuple[JsonObject, ...]:
        selector = f"{WORKLOAD_UID_LABEL}={row.uid}"
        return self._client.list(PODS, row.namespace, label_selector=selector, field_selector=LIVE_PODS).items

    def follow_pods(self) -> None:
        """Bind pods that wait for us, and find evicted workloads without pods."""
        selector = f"{MANAGED_LABEL}=true"
        listed = self._client.list(PODS, label_selector=selector, field_selector=LIVE_PODS).items
        owners = owners_of(self._cluster, listed)
        pods = [pod for pod in listed if owners.are_credible(pod)]
        if owners.any_replaced:
            pods = handed_over(self._cluster, self._client, pods)
        self._report.bound += Binder(self._cluster, self._client, self._flavors, self._clock).bind(pods)
        fail_stray_pods(self._cluster, self._client, self._flavors, pods, self._clock)
        if owners.any_stopping:
            self._confirm_stopped(pods)
        if owners.any_spare:
            note_gone_replicas(self._cluster, pods)

    def _confirm_stopped(self, pods: Sequence[JsonObject]) -> None:
        """An evicted workload's quota is released when it has no pod left and no more can be created."""
        stopping = Workload.objects.filter(
            cluster=self._cluster,
            job__isnull=False,
            evicted_at__isnull=False,
            quota_reserved_at__isnull=False,
            pods_stopped_at__isnull=True,
            pushed_sequence__gte=F("push_sequence"),
        ).exclude(status=WorkloadStatus.FINISHED)
        evicted = {str(row.uid): row for row in with_jobs(stopping).order_by("pk")}
        left = [pod for pod in pods if uid_label(pod, WORKLOAD_UID_LABEL) in evicted]
        lost = delete_pods_of_gone_nodes(self._cluster, self._client, left)
        # A pod without a node runs nowhere, so it holds nothing, and neither does one whose node is gone.
        placed = [pod for pod in left if pod["spec"].get("nodeName") and pod["metadata"]["uid"] not in lost]
        alive = {uid_label(pod, WORKLOAD_UID_LABEL) for pod in placed if not is_kept_ended(pod)}
        rows = [
            row
            for uid, row in evicted.items()
            if uid not in alive and not row.multikueue.get("cluster") and self._makes_no_more(row)
        ]
        gone = {str(row.uid) for row in rows}
        for pod in pods:
            if uid_label(pod, WORKLOAD_UID_LABEL) in gone and not pod["spec"].get("nodeName"):
                # Otherwise it could still get a node after its quota was given to another workload.
                self._delete_pod(pod)
        stopped = [(row.namespace, row.name) for row in rows]
        if stopped:
            self._report.stopped += len(record_stopped(self._cluster, stopped, now=self._now()))

    def _makes_no_more(self, row: Workload) -> bool:
        source = job_source(row.job) if row.job is not None else None
        if source is None or source.kind.stopping is not Stopping.SUSPEND or runs_elsewhere(row, self._elsewhere):
            return True  # the status here of a job that ran elsewhere is a copy
        there = self._client.get(source.kind.resource, source.namespace, source.name)
        if there is None or not is_job_of(there, source):
            return True
        return source.kind.outcome(there).finished or source.kind.is_stopped(there)


def _is_for_good(refusal: ClusterError) -> bool:
    """Return whether the cluster will never accept the object: it is malformed, its kind is not served, or it violates
    a rule."""
    if refusal.not_found:
        return "could not find the requested resource" in refusal.message
    return refusal.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


def _in_one_line(refusal: ClusterError) -> str:
    """Return the cluster's message, cut to the length that Kubernetes keeps."""
    return " ".join(str(refusal).split())[:_MAX_ERROR]
