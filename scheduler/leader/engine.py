"""Keeps a World in step with the database, lets the core decide, and saves the decisions.

One run, by one process per database (see `scheduler.store.lease`):

1. Catch up. Triggers note every row that another process changed. The engine reads the present rows and updates the
  World. Notes are kept until a batch includes them, so that a crash between reading and writing loses nothing.
2. Decide. Behind a savepoint: timers, the release of stopped workloads' quota, and cycles until nothing more happens or
  the time slice is over (it is short while more than one tenant has changes: `scheduler.leader.pace`). The clock is
  read once: all cycles of a batch happen at one instant, as in Kueue's tests.
3. Save. One transaction: hold the lease row of our epoch, compare the generations of all objects that the decisions
  used, write, delete the notes. If any of them changed meanwhile, nothing is written: the World returns to the
  savepoint, step 1 first reads the changed objects, and step 2 decides again with fewer cycles, so that under a storm
  of edits a small batch succeeds. If three in a row are refused, the next one first locks the cluster's row and the
  workloads that refused them: edits then wait for it, so that no stream of them keeps the leader from deciding.
4. Announce. Only after COMMIT: a push is requested if the cluster is affected, and the live stream gets the numbers.

What makes it safe:

- A crash at any point loses nothing: before COMMIT the notes are still there and a new leader loads everything; after
  COMMIT the rows show which decisions are not pushed yet, and the push worker's sweep finds them.
- Two leaders cannot both write: an older epoch finds no lease row. The paused one notices at its next batch and exits.
- A quota that was cut, or a workload that was cancelled, between reading and COMMIT fails the comparison in step 3.
- A decision that violates a constraint of the database, even alone, is set aside, so that it does not block others.
- An unexpected error discards the World (`scheduler.leader.recovery`).
- An eviction frees nothing: the World charges an evicted workload until its row reports that the pods have stopped.
- The engine's own writes are not noted (`kueueweb.unnoticed`), so it never reads back its own decisions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from django.db import connection, transaction

from accounts.models import Cluster
from foundation.wake_ups import request_push
from gpus.manifests import configured_policies, configured_vendors
from gpus.vendors import VENDORS
from queues.services.configuration import finish_deletions
from queues.services.workloads import record_stopped, set_aside
from scheduler.housekeeping.variants import Families
from scheduler.leader.pace import Pacing
from scheduler.leader.timers import Timers
from scheduler.leader.traces import DecisionTraces
from scheduler.live.gauges import QueueGauges
from scheduler.live.publisher import LiveFrames, Send, send_in_background
from scheduler.store.batch import Batch
from scheduler.store.batch_builder import BatchBuilder
from scheduler.store.changes import Changes, forget_all_changes, read_changes
from scheduler.store.configuration import cluster_configuration
from scheduler.store.lease import begin_epoch, renew
from scheduler.store.row_index import RowIndex
from scheduler.store.saving import BatchRefused, RowsLocked, hold_rows, offenders, save
from scheduling.model.configuration import Configuration
from scheduling.run_until_idle import run_until_idle
from scheduling.world import Savepoint, World

_log = logging.getLogger(__name__)

RUN_SECONDS = 1.0
"""A run ends after this long and asks for the next one, so that the worker's other tasks get time."""
_ALMOST_DUE_SECONDS: Final = 0.1
HOUSEKEEPING_SECONDS = 2.0
REFUSALS_BY_RULE = 3
"""After this many refusals in a row an error is logged and the refused workload is set aside; before that, the next
run tries again."""
REFUSALS_BY_EDITS = 3
"""After this many refusals in a row, the rows that edits change are locked before the next batch reads them."""
SET_ASIDE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run. `more` requests another run at once."""

    batches: int
    cycles: int
    admitted: int
    preempted: int
    refused: int
    more: bool


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A batch that was decided, and saved unless there is a `refusal`."""

    point: Savepoint
    changes: Changes
    builder: BatchBuilder
    due: list[str]
    batch: Batch
    refusal: BatchRefused | None


class Engine:
    """The scheduler of one cluster, for as long as this process leads."""

    def __init__(
        self,
        cluster: Cluster,
        holder: str,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        send: Send = send_in_background,
        save: Callable[[Batch], None] = save,
        batch_seconds: float | None = None,
        aside: Collection[str] = (),
        progress: Callable[[], object] = lambda: None,
    ) -> None:
        """`aside` are the keys of workloads that are left out (see `scheduler.leader.recovery`). `progress` is called
        after each batch, and after each look that found nothing.
        """
        self.cluster_id = cluster.pk
        self.cluster_name = cluster.name
        self.epoch = begin_epoch(cluster.pk, holder)
        self.world = World()
        self.rows = RowIndex(self.cluster_id, self.world, aside)
        self.frames = LiveFrames(self.cluster_name, self.epoch, steady, send)
        self._gauges = QueueGauges(self.cluster_name, self.epoch, steady)
        self._clock = clock
        self._steady = steady
        self._save = save
        self._progress = progress
        self._batch_seconds = batch_seconds
        self._cycle_limit: int | None = None
        self._refused_in_a_row = 0
        self._refused_by_rule = 0
        self._outdated: Mapping[int, str] = {}
        self._keep_house_at = 0.0
        self._batch_at = 0.0
        self._settled = False
        self._generation = 0
        self._timers = Timers()
        self._families = Families()
        self._pacing = Pacing()
        self._traces = DecisionTraces(cluster.pk)
        self._configuration = Configuration()
        self._concerned: dict[str, None] = {}
        self._builder: BatchBuilder | None = None
        self._load()

    def _load(self) -> None:
        """Load everything in one snapshot, and delete the notes that this makes redundant."""
        started = time.perf_counter()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cluster = Cluster.objects.get(pk=self.cluster_id)
            self._generation = cluster.configuration_generation
            self._configure(cluster)
            self.rows.load(self._clock())
            forget_all_changes(self.cluster_id)
        _log.info(
            "cluster %s: epoch %d, loaded %d workloads in %.2f s",
            self.cluster_name, self.epoch, len(self.rows.workloads), time.perf_counter() - started,
        )  # fmt: skip

    def _configure(self, cluster: Cluster) -> None:
        self._configuration = cluster_configuration(cluster)
        self.world.set_configuration(self._configuration)
        settings = cluster.device_plugin_configuration.get("settings", {})
        self.rows.vendors = configured_vendors(settings, VENDORS)
        self.world.set_vendors(self.rows.vendors)
        self.world.set_placement_policies(*configured_policies(settings))
        self.rows.set_features(self._configuration.features, self._clock())
        self.rows.everyone_is_due()

    def run(self, run_seconds: float = RUN_SECONDS) -> Run:
        """Catch up with the rows, and decide until nothing more happens or the time is over. Raises `LeaseLost`."""
        deadline = time.monotonic() + run_seconds
        batches = cycles = admitted = preempted = refused = 0
        self.world.advance(self._clock())
        self.rows.due.update(dict.fromkeys(self.world.take_counted()))
        # Workloads left active (such as a head that blocks its queue) or whose pause has ended get another try.
        self._settled = self._settled and not self.world.has_active()
        more, waited = True, False
        while more:
            builder = self._batch(deadline)
            self._progress()
            if builder is None:
                refused += 1
                more = self._refused_by_rule < REFUSALS_BY_RULE
            else:
                batches += 1
                cycles += builder.cycles
                admitted += builder.admitted
                preempted += builder.preempted
                more = builder.unfinished
                self.frames.publish(self.world, self.rows, self._clock())
            if more and time.monotonic() >= deadline:
                break
            if not more and not waited:
                more = waited = self._wait_for_a_timer()
        self._keep_house()
        self.frames.publish(self.world, self.rows, self._clock())
        self._gauges.publish(self.world)
        return Run(batches, cycles, admitted, preempted, refused, more)

    def _wait_for_a_timer(self) -> bool:
        """Sleep until a timer that is almost due; return whether there was one. The next tick would be too late for it:
        pods may be ready a moment after their time is over.
        """
        first = self._timers.first()
        if first is None or first <= self._batch_at or first - self._clock() > _ALMOST_DUE_SECONDS:
            return False
        time.sleep(max(0.0, first - self._clock()))
        return True

    def concerned(self) -> dict[str, int]:
        """Return the workloads of the present batch, key -> row id: those that changed, take steps or are decided."""
        touched = self._builder.touched if self._builder is not None else ()
        return self._known({*self._concerned, *touched})

    def everything(self) -> dict[str, int]:
        """Return every workload, key -> row id."""
        return self._known(self.rows.workloads)

    def _known(self, keys: Collection[str]) -> dict[str, int]:
        return {key: self.rows.workloads[key].id for key in keys if key in self.rows.workloads}

    def readmit(self, workloads: Mapping[str, int]) -> None:
        """Add workloads that were left out, key -> row id, with their present rows."""
        self.rows.readmit(workloads, self._clock())
        self._settled = False

    def _batch(self, deadline: float) -> BatchBuilder | None:
        """Run one batch; None if it was refused and undone."""
        now = self._batch_at = self._clock()
        try:
            with self._held():
                attempt = self._attempt(now, deadline)
        except RowsLocked as refusal:
            self._refused(refusal)
            return None
        builder, changes = attempt.builder, attempt.changes
        if attempt.refusal is not None:
            self._undo(attempt.point, attempt.refusal)
            if self._refused_by_rule >= REFUSALS_BY_RULE:
                self._set_aside(attempt.batch, attempt.refusal)
            return None
        self.world.commit(attempt.point)
        if attempt.batch or changes:
            self._traces.decided(attempt.batch, self._clock())
            self._saved(builder)
            self.frames.touch(changes.by_kind.get("workload", {}).values())
            self.frames.touch(write.workload.key for write in builder.writes)
        self._taken(builder, attempt.due)
        if not builder.unfinished:
            self._forget_refusals()  # though nothing was left to save: an idle leader holds no rows
        return builder

    def _held(self) -> AbstractContextManager[object]:
        """After several refusals in a row, edits wait for the batch: else a stream of them would refuse each one."""
        if self._refused_in_a_row < REFUSALS_BY_EDITS:
            return nullcontext()
        return hold_rows(self.cluster_id, self._outdated)

    def _attempt(self, now: float, deadline: float) -> _Attempt:
        """Read the changes, decide and save. Only the World and the rows are changed."""
        pace = self._pacing.pace(now)
        changes = read_changes(self.cluster_id, pace.notes_of_a_line, self._outdated)
        self._pacing.hear(changes, now)
        self._builder, self._concerned = None, dict.fromkeys(changes.by_kind.get("workload", {}).values())
        self._catch_up(changes, now)
        # The changes are true whether or not the batch is saved: only its decisions are undone with the savepoint.
        point = self.world.savepoint()
        builder = self._builder = BatchBuilder(self.world, self.rows, self._configuration, now)
        due = self._due(changes, now, pace.steps)
        self._concerned.update(dict.fromkeys(due))
        seconds = pace.seconds if self._batch_seconds is None else self._batch_seconds
        self._decide(builder, due, now, min(deadline, time.monotonic() + seconds))
        builder.unfinished = not self._settled or len(changes.ids) > 0
        batch = builder.batch(self.cluster_id, self.cluster_name, self.epoch, self._generation, changes.ids)
        batch.refusals = self._refused_in_a_row
        refusal = None
        if batch or changes:
            try:
                self._save(batch)
            except BatchRefused as found:
                refusal = found
        return _Attempt(point, changes, builder, due, batch, refusal)

    def _catch_up(self, changes: Changes, now: float) -> None:
        """Apply the changed rows to the World. Repeating this does no harm, because the present rows are read."""
        self._generation = changes.configuration_generation
        if not changes:
            return
        self._settled = False
        if "cluster" in changes.by_kind:
            self._configure(Cluster.objects.get(pk=self.cluster_id))
        self.rows.apply(changes, now)
        self._traces.took_in(changes.by_kind.get("workload", {}).keys(), now)

    def _due(self, changes: Changes, now: float, limit: int) -> list[str]:
        """Return the workloads that may have a step due: those that just changed, those whose time has come, and then
        as many of the others (which a change of configuration may affect) as fit a short batch."""
        due = self.rows.due
        taken = self._timers.due(now)
        taken.update(key for key in changes.by_kind.get("workload", {}).values() if key in due)
        taken.update(islice(due, limit))
        return sorted(taken)

    def _taken(self, builder: BatchBuilder, due: list[str]) -> None:
        """Note that the steps of these workloads are saved. The remaining workloads follow in later batches."""
        self._timers.replace(builder.deadlines)
        self.rows.variants.changed.update(builder.families)
        for key in due:
            self.rows.due.pop(key, None)
        builder.unfinished = builder.unfinished or bool(self.rows.due)

    def _decide(self, builder: BatchBuilder, due: list[str], now: float, deadline: float) -> None:
        """Releases and timers first, then cycles until one changes nothing."""
        if builder.reconcile(due) + builder.release_ended():
            self._settled = False
        builder.sample_usage()
        if self._settled:
            return
        started = time.perf_counter()
        had_a_cycle = False
        for result in run_until_idle(self.world, now):
            builder.record(result, time.perf_counter() - started)
            had_a_cycle = had_a_cycle or result.heads > 0 or result.read > 0
            if self._cycle_limit is not None and builder.cycles >= self._cycle_limit:
                return
            # Writing reasons to a flood of workloads must not delay the next cycle, so it is spread over batches.
            if time.monotonic() >= deadline and (had_a_cycle or not self.world.has_active()):
                return
            started = time.perf_counter()
        self._settled = True

    def _undo(self, point: Savepoint, refusal: BatchRefused) -> None:
        self.world.undo(point)
        self._refused(refusal)

    def _refused(self, refusal: BatchRefused) -> None:
        # Those of earlier refusals are kept: the rows of all of them are held in the end.
        self._outdated = {**self._outdated, **refusal.outdated}
        self._settled = False
        self._refused_in_a_row += 1
        # The next batch has one cycle: the shorter it is, the fewer edits come in between.
        self._cycle_limit = 1 if self._cycle_limit is None or self._refused_in_a_row > 1 else self._cycle_limit
        self._refused_by_rule = self._refused_by_rule + 1 if refusal.by_rule else 0
        level = logging.ERROR if self._refused_by_rule >= REFUSALS_BY_RULE else logging.INFO
        _log.log(level, "cluster %s: batch refused, deciding again: %s", self.cluster_name, refusal)

    def _set_aside(self, batch: Batch, refusal: BatchRefused) -> None:
        """Set aside the decisions that cannot be stored, so that they do not block all others."""
        keys = [(write.workload.namespace, write.workload.name) for write in offenders(batch)]
        if not keys:
            return
        now = datetime.fromtimestamp(self._clock(), UTC)
        why = f"The decision could not be stored: {str(refusal).splitlines()[0]}"
        set_aside(Cluster.objects.get(pk=self.cluster_id), keys, now + SET_ASIDE, why, now=now)
        self._refused_by_rule = 0

    def _saved(self, builder: BatchBuilder) -> None:
        self._forget_refusals()
        self.rows.saved(builder.writes, builder.released_ids, builder.replaced)
        self._finish_cancelled(builder)
        if builder.pushes:
            request_push(self.cluster_name)

    def _forget_refusals(self) -> None:
        self._refused_in_a_row = self._refused_by_rule = 0
        self._outdated = {}
        self._cycle_limit = None

    def _finish_cancelled(self, builder: BatchBuilder) -> None:
        """Finish cancelled workloads that no longer hold anything: their pods have stopped, or never ran."""
        stopped = [
            (write.workload.namespace, write.workload.name)
            for write in builder.writes
            if write.workload.admission is None and self.rows.workloads[write.workload.key].deletion_requested
        ]
        if stopped:
            record_stopped(Cluster.objects.get(pk=self.cluster_id), stopped, actor="scheduler")

    def _keep_house(self) -> None:
        """Every few seconds, renew the lease and delete rows whose deletion waited for what they held. Create and
        delete variants as soon as those of a workload differ from its ClusterQueue's policy."""
        wanted = self._families.unkept(self.rows, self._clock())
        if wanted or self._steady() >= self._keep_house_at:
            renew(self.cluster_id, self.epoch)
            cluster = Cluster.objects.get(pk=self.cluster_id)
            finish_deletions(cluster)
            self._families.keep(cluster, wanted, self._clock())
            self._keep_house_at = self._steady() + HOUSEKEEPING_SECONDS
