"""Runs the controller on jobs that can be suspended after each of their changes, and stores the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from django.db import DataError, transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.cluster_objects import KeptObjects, OneLook, RowsAndCluster
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.identity import is_elastic, managed_ancestor, prebuilt_workload_of, queue_name_of
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import (
    annotations_of,
    controller_of,
    is_being_deleted,
    name_of,
    uid_of,
    version_of,
)
from clusters.jobs.hot_rows import workload_rows
from clusters.jobs.integrations import job_context
from clusters.jobs.job_writes import write_job
from clusters.jobs.kinds.pod import group_name_of
from clusters.jobs.live_job import Changes, changed_spec, look_at, was_started
from clusters.jobs.looks import (
    Look,
    News,
    drops_all,
    is_admitted,
    is_plain_creation,
    taken,
    waits_for_the_job,
    with_marks,
)
from clusters.jobs.registry import ending_of
from clusters.jobs.seen_jobs import keep_seen
from clusters.jobs.settled_jobs import Recorder, SettledJobs
from clusters.jobs.submitter import submitter_of
from clusters.sync.jobs import JobSync, key_of, keys_of
from foundation.exceptions import Conflict, ManifestErrors
from foundation.transactions import unnoticed_transaction
from foundation.wake_ups import request_push, wake_scheduler
from queues.manifests import kueue_keys as keys
from queues.manifests.pod_group import POD_GROUP
from queues.manifests.workload import JobSpec, WorkloadSpec
from queues.models import Job, Workload
from queues.services.job_changes import (
    WORKLOAD_PATHS,
    change_workload,
    frozen_paths,
    remove_workloads,
)
from queues.services.pods import record_reclaimable
from queues.services.prebuilt_workloads import may_take
from queues.services.submission import create_workloads
from queues.services.workloads import delete_workloads, put_on_hold, raise_push, record_finished, take_off_hold
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_Found = TypeVar("_Found")

_ACTOR: Final = "watcher"
_MAX_ROUNDS: Final = 5
"""Passes over one job in a row: a workload that is removed is followed by another one."""
_FIRST_WAIT_SECONDS: Final = 1.0
_MAX_WAIT_SECONDS: Final = 60.0
_WHOLE_PATIENCE_SECONDS: Final = 4.0
"""The wait after which a job without a row has none: its part has been looked at twice before."""
_OWNERS_CACHED_SECONDS: Final = 30.0
"""How long the owners of running parts are known: each change of a part asks for them."""
_OF_JOBS: Final = "job_id = ANY(%s) AND (NOT job_id = ANY(%s::bigint[]) OR status <> %s) ORDER BY id"
_SLICE: Final = (keys.SLICE_NAME, keys.REPLACED_SLICE)


@dataclass(slots=True)
class _Waiting:
    """A job that needs another pass later: its workload's name is still taken, or an object that it names does not
    exist yet."""

    job: JsonObject
    due: float


class SuspendableJobSync(JobSync):
    """Keeps the workloads of one kind of job that can be suspended in step with the jobs of one cluster."""

    _remembers = True
    """Whether a list leaves out jobs over which a pass changed nothing (`SettledJobs`)."""

    def __init__(self, cluster: Cluster, kind: JobKind, client: ClusterClient, kept: KeptObjects | None = None) -> None:
        super().__init__(cluster, kind, client, kept)
        self._settled = SettledJobs(cluster)
        self._waiting: dict[str, _Waiting] = {}
        self._waited: dict[str, float] = {}
        """uid -> time at which the object was last waited for."""
        self._seen: dict[str, str] = {}
        """uid -> the version of a waiting job that the push knows."""
        self._seconds = 0.0
        self._owners = RowsAndCluster(cluster, client, _OWNERS_CACHED_SECONDS)

    def tick(self, now: float) -> None:
        """Repeat the pass over the waiting jobs (`_Waiting`) that are due."""
        due = [each.job for each in self._waiting.values() if each.due <= now]
        if due:
            self._now = datetime.fromtimestamp(now, UTC)
            self._seconds, self._defaults = now, None
            if self._kept is not None:
                self._kept.follow("")  # the cluster's row may have been read a second ago
            self._settle(due)

    def _take_in(self, jobs: Sequence[JsonObject]) -> None:
        self._seconds = (self._now or timezone.now()).timestamp()
        try:
            known = self._settle(self._unsettled(jobs))
        finally:
            self._settled.end()
        self._keep_seen(jobs)
        if any(self._kind.is_suspended(look.job) and any(map(waits_for_the_job, look.workloads)) for look in known):
            request_push(self._cluster.name)

    def _unsettled(self, jobs: Sequence[JsonObject]) -> Sequence[JsonObject]:
        try:
            return self._settled.unsettled(jobs, OneLook(self._cluster, self._looked_up, self._kept))
        except ClusterError:
            return jobs  # a pass over each reports it

    def _keep_seen(self, jobs: Iterable[JsonObject]) -> None:
        """Let the push know the jobs that wait in a queue, as they are now."""
        waiting = [
            job
            for job in jobs
            if self._kind.is_suspended(job) and queue_name_of(job) and self._seen.get(uid_of(job)) != version_of(job)
        ]
        self._seen |= {uid_of(job): version_of(job) for job in waiting}
        keep_seen(self._cluster, waiting)

    def _find_missing(self, present: Iterable[JsonObject]) -> None:
        listed = list(present)
        self._seen = {uid: self._seen[uid] for uid in map(uid_of, listed) if uid in self._seen}
        if self._remembers:
            self._settled.begin({uid_of(job): [uid for _, _, uid in keys_of(job)] for job in listed})
        super()._find_missing(listed)

    def _lose(self, jobs: Sequence[JsonObject]) -> None:
        for job in jobs:
            self._forget(job)
            self._seen.pop(uid_of(job), None)
        super()._lose(jobs)

    def _forget(self, job: JsonObject) -> None:
        uid = str(job["metadata"]["uid"])
        self._waiting.pop(uid, None)
        self._waited.pop(uid, None)

    def _settle(self, jobs: Sequence[JsonObject]) -> list[Look]:
        """Run passes over these jobs until no row changes any more, at most `_MAX_ROUNDS`; return the looks of the
        first pass at jobs with rows."""
        known: list[Look] = []
        left = list(jobs)
        for number in range(_MAX_ROUNDS):
            if not left:
                break
            looks = self._looks(left)
            if number == 0:
                known = [look for look in looks if look.row is not None]
            left = self._look_at(looks)
        return known

    def _looks(self, jobs: Sequence[JsonObject]) -> list[Look]:
        """Return the jobs that have or need rows, with the rows of their workloads, and jobs that are part of another
        one, in a few queries."""
        rows = self._rows(jobs)
        for job in jobs:
            self._waiting.pop(str(job["metadata"]["uid"]), None)
        pairs: list[tuple[JsonObject, Job | None]] = []
        others: list[JsonObject] = []
        for job in jobs:
            row = rows.get(key_of(job))
            taken = job if row is not None else self._try(job, partial(self._to_take, job))
            if taken is not None:
                pairs.append((taken, row))
            else:
                others.append(job)
        ended = [row.pk for job, row in pairs if row is not None and self._kind.outcome(job).finished]
        workloads = self._workloads([row for _, row in pairs if row is not None], ended)
        prebuilt = self._prebuilt([job for job, _ in pairs])
        looks = self._parts(others)
        for job, row in pairs:
            own = list(workloads.get(row.pk, ())) if row is not None else []
            named = [(key_of(job)[0], name) for name in self._prebuilt_names(job)]
            own += [prebuilt[key] for key in named if key in prebuilt and self._may_take(job, prebuilt[key])]
            looks.append(Look(job, row, own))
        return looks

    def _parts(self, jobs: Iterable[JsonObject]) -> list[Look]:
        """Return the running jobs that are part of another job, with the workloads of the topmost one that waits in a
        queue: they may run only while that one is admitted.

        As in Kueue, that one may be of any kind. One without a row may be new: its part is looked at again first.
        """
        context = job_context(self._cluster.configuration, self._owners)
        wholes = [(job, whole) for job in jobs if (whole := self._whole_of(job, context)) is not None]
        if not wholes:
            return []
        rows = Job.objects.filter(
            cluster=self._cluster,
            kind__in={kind for _, (kind, _, _) in wholes},
            name__in={name for _, (_, _, name) in wholes},
            managed=True,
        ).order_by("pk")
        found = {(row.kind, row.namespace, row.name): row for row in rows.defer("manifest")}
        workloads = self._workloads([found[key] for key in {key for _, key in wholes} if key in found], [])
        looks: list[Look] = []
        for job, key in wholes:
            if key in found:
                self._forget(job)
                own = workloads.get(found[key].pk, ())
                # No object stands for a group of pods, so the pass would find none of its workloads.
                if key[0] != POD_GROUP or not any(map(is_admitted, own)):
                    looks.append(Look(job, None, own, is_part=True))
            elif self._waited.get(str(job["metadata"]["uid"]), 0.0) >= _WHOLE_PATIENCE_SECONDS:
                looks.append(Look(job, None, (), is_part=True))
            else:
                self._wait(job)
        return looks

    def _whole_of(self, job: JsonObject, context: JobContext) -> tuple[str, str, str] | None:
        """Return the kind, namespace and name of the row of the topmost job that a running job is part of, or of the
        group of the pod that it is part of. None if no job above it has a queue."""
        if controller_of(job) is None or self._cluster.is_mirrored:
            return None
        if self._kind.is_suspended(job) or self._kind.outcome(job).finished:
            return None
        whole = self._try(job, partial(managed_ancestor, job, context))
        if whole is None:
            return None
        group = group_name_of(whole) if whole["kind"] == PODS.kind else ""
        return (POD_GROUP, key_of(whole)[0], group) if group else (whole["kind"], *key_of(whole))

    def _workloads(self, rows: Sequence[Job], ended: Sequence[int]) -> dict[int, list[Workload]]:
        """Return the workloads of jobs; for ended jobs, only the unfinished ones."""
        jobs = {row.pk: row for row in rows}
        if not jobs:
            return {}
        found: dict[int, list[Workload]] = defaultdict(list)
        for row in workload_rows(_OF_JOBS, [list(jobs), list(ended), WorkloadStatus.FINISHED]):
            row.job = jobs[row.job_id or 0]
            found[row.job.pk].append(row)
        return found

    def _prebuilt(self, jobs: Iterable[JsonObject]) -> dict[tuple[str, str], Workload]:
        """Workloads without a job that these jobs name, by namespace and name."""
        wanted = {(key_of(job)[0], name) for job in jobs for name in self._prebuilt_names(job)}
        if not wanted:
            return {}
        rows = Workload.objects.filter(cluster=self._cluster, name__in={name for _, name in wanted}, job=None)
        found = rows.exclude(status=WorkloadStatus.FINISHED).prefetch_related("pod_sets")
        return {(row.namespace, row.name): row for row in found if (row.namespace, row.name) in wanted}

    def _may_take(self, job: JsonObject, workload: Workload) -> bool:
        """Return whether the job may use the workload that it names.

        A pass sees no other one, because it ends a workload whose pods differ from the job's.
        """
        return may_take(workload, submitter_of(self._cluster.name, job), found_in_cluster=True)

    def _prebuilt_names(self, job: JsonObject) -> list[str]:
        name = prebuilt_workload_of(job)
        return [name] if name else []

    def _look_at(self, looks: Sequence[Look]) -> list[JsonObject]:
        """Run a pass over each job; return the jobs whose rows it changed."""
        looked_up = Recorder(OneLook(self._cluster, self._looked_up, self._kept))
        context = job_context(self._cluster.configuration, looked_up)
        news = News()
        again: list[JsonObject] = []
        passed = list(self._passes(looks, context, looked_up))
        made = self._make_together(passed)
        for look, changes in passed:
            if look.is_part:
                self._suspend(look.job, changes)
                continue
            if drops_all(look, changes) and self._suspends(changes):
                # As in Kueue, the job stops first: no row says later how its templates were.
                stopped = self._suspend(look.job, changes)
                if stopped is None or not self._kind.is_suspended(stopped) or was_started(stopped):
                    self._wait(look.job)
                    continue
                look = replace(look, job=stopped)
            news.note(look, changes)
            uid = str(look.job["metadata"]["uid"])
            stored = uid in made or self._try(look.job, partial(self._store, look, changes))
            if stored and not (uid in made and self._is_settled(look.job, changes, context)):
                again.append(look.job)
            elif not stored and all(
                each.status == WorkloadStatus.FINISHED or each.job_id is None for each in look.workloads
            ):
                self._suspend(look.job, changes)
            if changes.awaited or (look.row is None and changes.failure):
                self._wait(look.job)
            elif stored is not None:
                self._forget(look.job)
        self._store_news(news)
        return again

    def _passes(
        self, looks: Iterable[Look], context: JobContext, looked_up: Recorder
    ) -> Iterator[tuple[Look, Changes]]:
        """Run a pass over each job; yield those with changes."""
        for look in looks:
            looked_up.begin()
            changes = self._pass(look, context)
            if self._is_idle(look, changes):
                self._settled.note(look.job, looked_up.taken)
            if changes is not None:
                yield look, changes

    def _is_idle(self, look: Look, changes: Changes | None) -> bool:
        """Return whether a pass over the job and rows that have not changed would change nothing, either."""
        job, row = look.job, look.row
        if row is None or look.is_part or row.deletion_requested_at is not None or is_being_deleted(job):
            return False
        if self._prebuilt_names(job):  # the workload it names has no row of a job until it is taken over
            return False
        if changes is None:  # as after an error
            return self._kind.outcome(job).finished and not look.workloads
        awaited = self._kind.is_suspended(job) and any(map(waits_for_the_job, look.workloads))
        return changes == Changes() and not awaited

    def _is_settled(self, job: JsonObject, changes: Changes, context: JobContext) -> bool:
        """Return whether another pass over a job that has just got its first workload would change nothing: it waits,
        as it was submitted, and none of its pods is done."""
        if changes.job is not None or not self._kind.is_suspended(job) or was_started(job):
            return False
        return not self._try(job, partial(self._kind.reclaimable_pods, job, context))

    def _suspends(self, changes: Changes) -> bool:
        """Return whether the pass suspends the job, and this process may write it."""
        wanted = changes.job
        return wanted is not None and self._kind.is_suspended(wanted) and not self._cluster.kueue_is_alive

    def _suspend(self, job: JsonObject, changes: Changes) -> JsonObject | None:
        """Suspend a job for which the push has no row, and give it its templates back: a part of another job, or a job
        that gets no workload. Returns the job as it is then; None if the pass does not suspend it, or the cluster
        refuses.
        """
        wanted = changes.job
        if wanted is None or not self._suspends(changes):
            return None
        try:
            return write_job(self._client, self._kind, job, wanted)
        except ClusterError as error:  # it changed meanwhile, and is looked at again, or at the next list
            self._note(job, error)
            return None

    def _store_news(self, news: News) -> None:
        """Store changes that are equal for many jobs at once."""
        for (reason, message), names in news.finished.items():
            record_finished(self._cluster, names, FinishedReason(reason), message, actor=_ACTOR, now=self._now)
        for pod_set, amounts in news.reclaimable.items():
            record_reclaimable(self._cluster, pod_set, amounts)
        for message, names in news.held.items():
            put_on_hold(self._cluster, names, message, actor=_ACTOR, now=self._now)
        if news.unheld:
            take_off_hold(self._cluster, news.unheld, actor=_ACTOR, now=self._now)
        self._tell(news.told)

    def _pass(self, look: Look, context: JobContext) -> Changes | None:
        """Return the changes that the controller makes to a job; None if there are none."""
        job, row = look.job, look.row
        withdrawn = row is not None and row.deletion_requested_at is not None
        if withdrawn or is_being_deleted(job) or self._cluster.is_mirrored:
            ending = ending_of(self._kind, job)  # the controller has no other changes for it
            if ending is None:
                return None
            own = [each for each in look.workloads if each.job_id is not None]
            return Changes(finished={each.name: (ending[0].value, ending[1]) for each in own})
        if row is not None and not look.workloads and (not row.found_in_cluster or self._kind.outcome(job).finished):
            return None
        changes = self._try(job, partial(self._changes, look, context))
        if changes is not None and changes.failure:
            self._note(job, changes.failure)
        return changes

    def _changes(self, look: Look, context: JobContext) -> Changes:
        return look_at(self._kind, look.job, look.row, look.workloads, context)

    def _try(self, job: JsonObject, step: Callable[[], _Found]) -> _Found | None:
        """Return the result of the step; None if the job or an object that it refers to cannot be read."""
        try:
            return step()
        except (ClusterError, JobError) as error:
            self._note(job, error)
        except Conflict as conflict:
            self._note(job, conflict)
            self._wait(job)
        except (ManifestErrors, DataError) as errors:
            self._refuse(job["metadata"]["uid"], key_of(job), errors)
        return None

    def _wait(self, job: JsonObject) -> None:
        uid = str(job["metadata"]["uid"])
        seconds = min(self._waited.get(uid, _FIRST_WAIT_SECONDS / 2) * 2, _MAX_WAIT_SECONDS)
        self._waited[uid] = seconds
        self._waiting[uid] = _Waiting(job, self._seconds + seconds)

    def _tell(self, jobs: Sequence[Job]) -> None:
        """Have the push start or stop these jobs, unless that is requested already."""
        if not jobs:
            return
        with unnoticed_transaction():
            waiting = Workload.objects.filter(job__in=[row.pk for row in jobs])
            raise_push(waiting.filter(push_sequence__lte=F("pushed_sequence")))
        request_push(self._cluster.name)

    # The results of a pass are stored in rows

    def _store(self, look: Look, changes: Changes) -> bool:
        """Changes, removes and makes workloads, all or none; whether any row changed. Raises ManifestErrors, and
        Conflict where the name of a workload is not free yet."""
        row = look.row
        if row is not None and not row.found_in_cluster:
            return False  # REST changes its workloads together with it
        if not (changes.changed or changes.removed or changes.created or changes.taken):
            return False
        with transaction.atomic():
            names = {*changes.changed, *changes.removed}
            locked = self._locked([each for each in look.workloads if each.name in names])
            changed = self._change(look, changes, locked)
            removed = self._remove([locked[name] for name in changes.removed if name in locked])
            made = self._make(look, changes, {each.name for each in look.workloads})
            specs = self._specs(look.job) if row is not None and (changed or made) else ()
            if row is not None and specs:
                self._follow(row, specs[0].job)
        return changed or removed or made

    def _make_together(self, passed: Sequence[tuple[Look, Changes]]) -> set[str]:
        """Make the first workloads of new jobs, those of a submitter in one transaction; return the jobs' uids.

        If one of them is refused, its submitter's are stored one by one, which shows the reason.
        """
        by_submitter: dict[str, dict[str, list[WorkloadSpec]]] = defaultdict(dict)
        for look, changes in passed:
            if not is_plain_creation(look, changes):
                continue
            try:
                specs = self._specs_to_make(look, changes)
            except (ClusterError, JobError, ManifestErrors):
                continue
            by_submitter[submitter_of(self._cluster.name, look.job)][look.job["metadata"]["uid"]] = specs
        made: set[str] = set()
        for submitter, by_job in by_submitter.items():
            try:
                self._make_workloads([spec for specs in by_job.values() for spec in specs], submitter)
            except (ManifestErrors, Conflict, DataError):
                continue
            made.update(by_job)
        return made

    def _locked(self, rows: Sequence[Workload]) -> dict[str, Workload]:
        found = Workload.objects.filter(pk__in=[row.pk for row in rows]).order_by("pk").select_for_update()
        return {row.name: row for row in found.prefetch_related("pod_sets")} if rows else {}

    def _change(self, look: Look, changes: Changes, locked: Mapping[str, Workload]) -> bool:
        any_changed = False
        for name, obj in changes.changed.items():
            row = locked.get(name)
            if row is None:
                continue
            spec = changed_spec(row, obj, lambda: self._specs(look.job)[0].pod_sets)
            broken = frozen_paths(WORKLOAD_PATHS, row, spec)
            if broken:
                # It got quota meanwhile, or its job may not change that any more.
                self._note(look.job, f"its workload can't change: {', '.join(broken)}")
                continue
            if change_workload(row, spec, actor=_ACTOR, now=self._moment()):
                wake_scheduler(self._cluster.name)
                any_changed = True
        return any_changed

    def _remove(self, rows: Sequence[Workload]) -> bool:
        """Delete pending and finished workloads, and cancel the ones with quota. Returns whether there was one that was
        not being deleted yet. Raises Conflict if pods or devices of a finished one are left."""
        left = [row for row in rows if row.deletion_requested_at is None]
        ended = [(row.namespace, row.name) for row in left if row.status == WorkloadStatus.FINISHED]
        remove_workloads(self._cluster, left, actor=_ACTOR, now=self._moment())
        gone = delete_workloads(self._cluster, ended, actor=_ACTOR, now=self._moment()) if ended else []
        if len(gone) < len(ended):
            raise Conflict("its finished workload still has pods or devices")
        return bool(left)

    def _make(self, look: Look, changes: Changes, there: set[str]) -> bool:
        if not changes.created and not changes.taken:
            return False
        if changes.created:
            for each in changes.created:
                self._free(look, name_of(each), there)
            specs = self._specs_to_make(look, changes)
        else:
            spec = self._specs(look.job)[0]
            specs = [taken(spec, each) for each in look.workloads if each.name in changes.taken]
        if look.row is not None and specs[0].job is not None:
            job = replace(specs[0].job, row_id=look.row.pk)
            specs = [replace(spec, job=job) for spec in specs]
        self._make_workloads(specs, submitter_of(self._cluster.name, look.job))
        return True

    def _specs_to_make(self, look: Look, changes: Changes) -> list[WorkloadSpec]:
        """Return the workloads of a job as the pass has made them. Raises ManifestErrors."""
        spec = self._specs(look.job)[0]
        noted = self._noted(look.job)
        return [
            replace(
                with_marks(spec, made, look.workloads),
                name=name_of(made),
                queue_name=made["spec"].get("queueName") or "",
                annotations={
                    **spec.annotations,
                    **{key: value for key, value in annotations_of(made).items() if key in noted and value},
                },
            )
            for made in changes.created
        ]

    def _noted(self, job: JsonObject) -> Sequence[str]:
        """Return the annotations by which the pass distinguishes the workloads of one job."""
        return _SLICE if is_elastic(job) else ()

    def _make_workloads(self, specs: Sequence[WorkloadSpec], submitter: str) -> None:
        create_workloads(self._cluster, specs, actor=_ACTOR, now=self._now, limited=False, submitted_by=submitter)
        if self._cluster.serves_kueue:  # the cluster gets their objects
            request_push(self._cluster.name)

    def _free(self, look: Look, name: str, there: set[str]) -> None:
        """Deletes an earlier workload of that name, which has stopped. Raises Conflict while that can't be done."""
        if name not in there:
            return
        (earlier,) = [each for each in look.workloads if each.name == name]
        key = (earlier.namespace, earlier.name)
        if earlier.status != WorkloadStatus.FINISHED:
            if Workload.objects.filter(pk=earlier.pk).exists():
                raise Conflict("its workload is being stopped")
        elif not delete_workloads(self._cluster, [key], actor=_ACTOR, now=self._moment()):
            raise Conflict("its finished workload still has pods or devices")

    def _follow(self, row: Job, job: JobSpec | None) -> None:
        """Set the row to the job's present state."""
        assert job is not None  # it is the job's
        manifest: Any = job.manifest
        Job.objects.filter(pk=row.pk).update(
            manifest=manifest,
            labels=dict(job.labels),
            annotations=dict(job.annotations),
            generation=F("generation") + 1,
            updated_at=self._moment(),
        )

    def _moment(self) -> datetime:
        return self._now or timezone.now()
