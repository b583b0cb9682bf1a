"""Writes the changes of the controller's pass to jobs that can be suspended: starts, stops and new sizes.

The pass decides; each of its writes is one change of the job as it was read. If a job changed meanwhile, it is read
again and gets another pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import JsonObject
from clusters.jobs.cluster_objects import KeptObjects, OneLook, RowsAndCluster
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.framework.pod_set_info import PodSetInfo
from clusters.jobs.hot_rows import workload_rows
from clusters.jobs.integrations import job_context
from clusters.jobs.job_writes import change_job, is_written, ready_for_change, write_job
from clusters.jobs.live_job import Changes, look_at, shown_workload, stopped_job
from clusters.jobs.objects import CannotStart, JobSource
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.seen_jobs import seen_jobs
from clusters.jobs.whole_objects import add_placement, as_made, handed_over_source, new_object, own_manifest
from clusters.push.desired_state import (
    Places,
    Surroundings,
    admitted_workload,
    places_of,
    runs,
    runs_elsewhere,
)
from clusters.push.jobs.pushed_objects import PushedObjects
from queues.models import Workload
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_OTHERS: Final = "job_id = ANY(%s) AND status <> %s AND NOT id = ANY(%s::bigint[])"
_MAX_PASSES: Final = 8
"""A job takes three at most, and one more each time that its operator writes in between."""


class NotYet(Exception):
    """The cluster must act first: the workload is pushed in a later sweep."""


@dataclass(frozen=True, slots=True)
class _Started:
    """A job after the write that started it; `as_wanted`: what the cluster stored is what the pass wrote."""

    job: JsonObject
    as_wanted: bool


class SuspendableJobs:
    """The jobs of one cluster that can be suspended."""

    def __init__(
        self,
        cluster: Cluster,
        objects: PushedObjects,
        around: Surroundings,
    ) -> None:
        self._cluster = cluster
        self._objects = objects
        self._flavors = around.flavors
        self._elsewhere = around.elsewhere
        self._kept: KeptObjects | None = around.objects
        """For the first batch; later ones look the configuration up again."""
        self._looked_up = RowsAndCluster(cluster, objects.client)
        self._context: JobContext
        self._workloads: dict[int, list[Workload]] = {}
        self._places = Places()
        self._seen: dict[str, JsonObject] = {}

    def recall(self, rows: Sequence[Workload]) -> None:
        """Load the waiting jobs that are about to start as the watcher saw them, so that they need not be read
        first."""
        here = [row for row in rows if runs(row) and not runs_elsewhere(row, self._elsewhere)]
        jobs = [row.job for row in here if row.job is not None and _is_suspendable(row.job.kind)]
        self._seen = seen_jobs(self._cluster, {str(job.uid) for job in jobs if job.found_in_cluster})

    def is_known(self, row: Workload) -> bool:
        """Return whether the workload's job is known without reading it."""
        return row.job is not None and str(row.job.uid) in self._seen

    def look_up(self, rows: Sequence[Workload], places: Places) -> None:
        """Read the other workloads of these workloads' jobs with one query, because most jobs have one workload.

        `places` are those of these workloads. All are read if objects of the cluster were listed since these were read,
        because a workload may have been evicted meanwhile.
        """
        objects, self._kept = OneLook(self._cluster, self._looked_up, self._kept), None  # a sweep may take long
        self._context = job_context(self._cluster.configuration, objects)
        jobs = {row.job.pk: row.job for row in rows if row.job is not None and _is_suspendable(row.job.kind)}
        self._workloads = defaultdict(list)
        fresh = () if self._objects.has_listed else rows
        own = [row for row in fresh if row.job_id in jobs and row.status != WorkloadStatus.FINISHED]
        values = [list(jobs), WorkloadStatus.FINISHED, [row.pk for row in own]]
        others = workload_rows(_OTHERS, values) if jobs else ()
        for each in sorted([*own, *others], key=lambda row: row.pk):
            each.job = jobs[each.job_id or 0]
            self._workloads[each.job.pk].append(each)
        read = [each for found in self._workloads.values() for each in found]
        self._places = places_of(self._cluster, read) if others else places

    def carry_out(self, source: JobSource, row: Workload) -> None:
        """Start, stop or resize the job, as the pass writes it. Raises NotYet while pods of an earlier admission are
        left, CannotStart, and JobError if an object that it refers to is missing."""
        elsewhere = runs_elsewhere(row, self._elsewhere)
        if elsewhere:
            source = handed_over_source(source)
        started = None if elsewhere else self._start_seen(source, row)
        if started is not None and started.as_wanted:
            return
        there = self._objects.there(source) if started is None else started.job
        if there is None and source.found_in_cluster:
            return  # its owner deleted it: the watcher handles its workload
        for _ in range(_MAX_PASSES):
            changes = self._look(source, row, there)
            if changes.job is None:
                self._check(changes, row)
                return
            if there is None or self._starts_anew(source, there, changes.job):
                if not source.kind.is_suspended(changes.job):
                    self._start_own(source, row, there)
                return
            there = write_job(self._objects.client, source.kind, there, changes.job)
            if there is None:
                return
        raise NotYet

    def _start_seen(self, source: JobSource, row: Workload) -> _Started | None:
        """Start the job as the watcher saw it, by one write.

        None if there is nothing to start or the cluster refuses the write: only the present job can explain the
        refusal.
        """
        seen, kind = self._seen.pop(source.uid, None), source.kind
        if seen is None or not kind.is_suspended(seen) or kind.status_before_change(seen) is not None:
            return None
        changes = self._look(source, row, seen)
        if changes.job is None or kind.is_suspended(changes.job):
            return None
        try:
            there = change_job(self._objects.client, kind, seen, changes.job)
        except ClusterUnreachable:
            raise
        except ClusterError:
            return None
        # Another pass would find nothing to do where this one did nothing else and its write was taken as it is.
        return _Started(there, changes == Changes(job=changes.job) and is_written(there, changes.job))

    def _check(self, changes: Changes, row: Workload) -> None:
        reason, message = changes.finished.get(row.name, ("", ""))
        if reason == FinishedReason.FAILED_TO_START:
            raise CannotStart(message)
        if changes.waits:
            raise NotYet
        if changes.failure and runs(row):
            raise JobError(changes.failure)

    def stop(self, source: JobSource, row: Workload) -> None:
        """Suspend a job that is withdrawn, or that has ended and still has pods."""
        there = self._objects.there(source)
        for _ in range(_MAX_PASSES):
            stopped = None if there is None else stopped_job(source.kind, there, shown_workload(row, there))
            if there is None or stopped is None:
                return
            there = write_job(self._objects.client, source.kind, there, stopped)

    def _look(self, source: JobSource, row: Workload, there: JsonObject | None) -> Changes:
        job = row.job
        assert job is not None  # the caller has checked this
        workloads = self._workloads[job.pk]
        shown = there if there is not None else _not_there_yet(source)
        return look_at(source.kind, shown, job, workloads, self._context, partial(self._place, source, workloads))

    def _place(self, source: JobSource, workloads: Sequence[Workload], name: str, infos: Sequence[PodSetInfo]) -> None:
        (row,) = [each for each in workloads if each.name == name]
        add_placement(source, admitted_workload(row, self._flavors, self._places), infos)

    def _starts_anew(self, source: JobSource, there: JsonObject, wanted: JsonObject) -> bool:
        kind = source.kind
        return not source.found_in_cluster and kind.is_suspended(there) and not kind.is_suspended(wanted)

    def _start_own(self, source: JobSource, row: Workload, there: JsonObject | None) -> None:
        """Create, or start again, a submitted job: as its row defines it, its pods completed.

        Raises NotYet if the job in the cluster has changed since it was read.
        """
        if there is not None:
            source = as_made(source, there)
            try:
                ready_for_change(self._objects.client, source.kind, there)
            except ClusterError as error:
                if error.conflict:
                    raise NotYet from error
                raise
        workload = admitted_workload(row, self._flavors, self._places)
        self._objects.apply(source, new_object(source, workload))


def _is_suspendable(kind: str) -> bool:
    return kind in JOB_KINDS and JOB_KINDS[kind].stopping is Stopping.SUSPEND


def _not_there_yet(source: JobSource) -> JsonObject:
    """Return a submitted job as it would look in the cluster while it waits."""
    shown = own_manifest(source)
    shown["metadata"]["uid"] = source.uid
    source.kind.suspend(shown)
    return shown
