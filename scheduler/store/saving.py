"""Saves the decisions of a batch of cycles in one transaction.

The transaction first locks the lease row of our epoch (an older leader finds none). Then it compares the
generations of the configuration and of each touched workload with the generations at the time of the decisions. If any
changed, nothing is written and `BatchRefused` names the changes; the caller undoes the World, reads that and
decides again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from django.db import DataError, IntegrityError, OperationalError, connection, transaction

from accounts.models import Cluster
from foundation.postgresql.joined_statements import JoinedStatements
from foundation.transactions import unnoticed_transaction
from queues.services.workloads import record_replaced
from scheduler.store.batch import Batch, WorkloadWrite
from scheduler.store.changes import FORGET_CHANGES
from scheduler.store.counts import write_counts
from scheduler.store.lease import fence, forget_changes_in
from scheduler.store.placements import held_slices
from scheduler.store.rows import delete_workloads, write_devices, write_log, write_pod_sets, write_workloads

LOCK_TIMEOUT: Final = "2s"
"""How long a batch waits for a locked row before it is refused and tried again."""

_LOCK_WORKLOADS: Final = "SELECT id, generation FROM queues_workload WHERE id = ANY(%s) ORDER BY id FOR UPDATE"


class BatchRefused(Exception):
    """The decisions are outdated; nothing was written. `by_rule`: a database constraint rejects them, and may do so
    again. `outdated`: the workloads that changed since they were read, or may be locked, row id -> namespace/name.
    """

    def __init__(self, message: str, *, by_rule: bool = False, outdated: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.by_rule = by_rule
        self.outdated = dict(outdated or {})


class RowsLocked(BatchRefused):
    """The rows that a batch was to hold were locked for too long, so it was not decided."""


@contextmanager
def hold_rows(cluster_id: int, workloads: Collection[int]) -> Iterator[None]:
    """Ensure that no edit of quotas, queues, nodes or devices is committed within the block, nor an edit of these
    workloads (row ids). Raises RowsLocked. Locks are taken in the order of `foundation.transactions`."""
    with transaction.atomic(), connection.cursor() as cursor:
        try:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            cursor.execute("SELECT FROM accounts_cluster WHERE id = %s FOR SHARE", [cluster_id])
            cursor.execute("SELECT FROM queues_workload WHERE id = ANY(%s) ORDER BY id FOR UPDATE", [list(workloads)])
        except OperationalError as error:
            if _is_temporary(error):
                raise RowsLocked(f"a row was locked for too long: {error}") from error
            raise
        yield


def _is_temporary(error: OperationalError) -> bool:
    """Return whether it is a lock timeout, a deadlock or a serialisation failure."""
    return getattr(error.__cause__, "sqlstate", None) in {"55P03", "40P01", "40001"}


def save(batch: Batch) -> None:
    """Write the batch.

    Raises `BatchRefused` (a row has changed, and nothing was written) or `LeaseLost` (another process leads). Within
    `hold_rows`, some workloads are already locked, and workloads of the batch may come before them in the lock order.
    Waiting for one of these could deadlock with a transaction that holds it and waits for a locked one. So the batch is
    refused at once, and the next batch locks all of them, in order.
    """
    rows_are_held = connection.in_atomic_block
    try:
        if not batch and not rows_are_held:
            forget_changes_in(batch.cluster_id, batch.epoch, batch.change_ids, LOCK_TIMEOUT)
            return
        with unnoticed_transaction(LOCK_TIMEOUT) as cursor:
            generation = fence(batch.cluster_id, batch.epoch, configuration=bool(batch))
            statements = JoinedStatements(cursor)
            if batch:
                _check(cursor, batch, generation, may_wait=not rows_are_held)
                _write(statements, batch)
            statements.execute(FORGET_CHANGES, [list(batch.change_ids)])
            if rows_are_held:
                # Foreign keys are checked here and not at the end of `hold_rows`, where no batch is refused any more.
                statements.execute("SET CONSTRAINTS ALL IMMEDIATE", [])
            statements.send()
    except (IntegrityError, DataError) as error:
        raise BatchRefused(f"it violates a database constraint: {error}", by_rule=True) from error
    except OperationalError as error:
        if _is_temporary(error):
            waited_for = {write.id: write.workload.key for write in batch.workloads}
            raise BatchRefused(f"a row was locked for too long: {error}", outdated=waited_for) from error
        raise


def _write(statements: JoinedStatements, batch: Batch) -> None:
    write_workloads(statements, batch.workloads)
    write_pod_sets(statements, batch.workloads)
    write_devices(statements, batch)
    write_log(statements, batch)
    write_counts(statements, batch)
    if batch.replaced:
        statements.send()
        _finish_replaced(batch)
    delete_workloads(statements, batch.deleted_ids)


def offenders(batch: Batch) -> list[WorkloadWrite]:
    """Return the admissions of the batch that a database constraint rejects even on their own. Nothing is written."""
    return [write for write in batch.workloads if write.workload.admission is not None and _is_refused(batch, write)]


def _is_refused(batch: Batch, write: WorkloadWrite) -> bool:
    held = {(part.slice.node, part.slice.uuid) for part in held_slices(write.workload)}
    devices = {place: device for place, device in batch.devices.items() if place in held}
    alone = replace(batch, workloads=[write], released_ids=[], deleted_ids=[], devices=devices)
    try:
        with unnoticed_transaction(LOCK_TIMEOUT) as cursor:
            statements = JoinedStatements(cursor)
            write_workloads(statements, alone.workloads)
            write_pod_sets(statements, alone.workloads)
            write_devices(statements, alone)
            statements.execute("SET CONSTRAINTS ALL IMMEDIATE", [])
            statements.send()
            transaction.set_rollback(True)
    except (IntegrityError, DataError):
        return True
    except OperationalError:
        return False  # a locked row says nothing about the write itself
    return False


def _finish_replaced(batch: Batch) -> None:
    cluster = Cluster.objects.get(pk=batch.cluster_id)
    for key, (reason, message) in batch.replaced.items():
        namespace, _, name = key.partition("/")
        record_replaced(cluster, (namespace, name), reason, message)


def _check(cursor: Any, batch: Batch, generation: int, *, may_wait: bool) -> None:
    """Refuse the batch if the configuration, now of that generation, or one of its workloads has changed."""
    if generation != batch.configuration_generation:
        raise BatchRefused("quotas, queues, nodes or devices have been edited since")
    expected = {write.id: write for write in batch.workloads}
    if not expected:
        return
    cursor.execute(_LOCK_WORKLOADS if may_wait else f"{_LOCK_WORKLOADS} NOWAIT", [list(expected)])
    found = dict(cursor.fetchall())
    outdated = {id_: write.workload.key for id_, write in expected.items() if found.get(id_) != write.generation}
    if outdated:
        what = f"{len(outdated)} of {len(expected)} workloads have been changed or deleted since"
        raise BatchRefused(what, outdated=outdated)
