"""What must be so when the killing has stopped."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

import psycopg

from scheduling.model.vocabulary import WorkloadStatus
from tests.acceptance.crash.logs import tracebacks
from tests.acceptance.crash.rest import Account
from tests.acceptance.crash.stack import Stack
from tests.acceptance.crash.tenants import CRON_JOB, ENDLESS, AdminAtWork, Fate, Promise, TenantAtWork, key_of, owner_of

_SETTLE_SECONDS: Final = 120.0
_LIST_SECONDS: Final = 300.0
_DRAIN_SECONDS: Final = 600.0
_UNFINISHED: Final = ",".join(status for status in WorkloadStatus if status != WorkloadStatus.FINISHED)
_ENDED_BY: Final = (Fate.CANCELLED, Fate.DELETED)
_UNSETTLED: Final = {
    "notes": "SELECT count(*) FROM scheduler_change",
    "untold decisions": (
        "SELECT count(*) FROM queues_workload WHERE push_sequence > pushed_sequence AND job_id IS NOT NULL"
    ),
    "workloads that are being cancelled": (
        "SELECT count(*) FROM queues_workload WHERE deletion_requested_at IS NOT NULL AND status <> 'Finished'"
    ),
}
_ON_THEIR_WAY: Final = {"notes": 5, "untold decisions": 5}
"""Jobs go on, so that there are always some of these."""
_CANCELLED: Final = """
    SELECT workload.namespace, workload.name, workload.status, workload.reason, job.kind, workload.push_sequence,
        workload.pushed_sequence, workload.push_error
    FROM queues_workload AS workload LEFT JOIN queues_job AS job ON job.id = workload.job_id
    WHERE workload.deletion_requested_at IS NOT NULL AND workload.status <> 'Finished' LIMIT 10
"""
_Rows = dict[tuple[str, str, str], list[dict[str, Any]]]


def faults(stack: Stack, admin: AdminAtWork, tenants: list[TenantAtWork]) -> Iterator[str]:
    """Every promise that was not kept, what the auditor finds (while jobs run, and when all have ended), tracebacks."""
    yield from _settle(stack)
    rows = _rows_once_listed(admin.account, _promises(tenants))
    for promise in _promises(tenants):
        yield from _broken(promise, rows.get(key_of(promise), []))
    admin.check()
    yield from admin.lost
    yield from _audit(stack, "while jobs run")
    yield from _drain(admin, tenants)
    yield from _audit(stack, "when all have ended")
    yield from (f"held at the end: {line}" for line in _held(stack))
    yield from (f"traceback of {name}:\n{text}" for name, text in tracebacks(stack.logs))


def _promises(tenants: list[TenantAtWork]) -> list[Promise]:
    return [promise for tenant in tenants for promise in tenant.promises]


def _rows(account: Account, namespaces: set[str]) -> _Rows:
    """The workloads of the tenants' namespaces: an upgrade has a million in another one."""
    found: _Rows = defaultdict(list)
    for namespace in namespaces:
        for row in account.every("workloads/", namespace=namespace):
            found[owner_of(row)].append(row)
    return found


def _rows_once_listed(account: Account, promises: list[Promise]) -> _Rows:
    """All rows, when the watcher has listed again what it lists after its last kill: jobs of the cluster come by it."""
    deadline = time.monotonic() + _LIST_SECONDS
    while True:
        rows = _rows(account, {promise.namespace for promise in promises})
        if all(key_of(each) in rows for each in promises if _must_be_there(each)) or time.monotonic() > deadline:
            return rows
        time.sleep(5.0)


def _must_be_there(promise: Promise) -> bool:
    return promise.fate not in (Fate.DELETED, Fate.UNKNOWN) and promise.kind != CRON_JOB


def _settle(stack: Stack) -> Iterator[str]:
    """Notes are seen, and the cluster has heard everything. A slow machine takes longer, and comes nearer all the
    time."""
    stack.wait_until_up()
    fewest, nearer_at = sys.maxsize, time.monotonic()
    while left := _unsettled(stack):
        if left.total() < fewest:
            fewest, nearer_at = left.total(), time.monotonic()
        if time.monotonic() - nearer_at > _SETTLE_SECONDS:
            counts = ", ".join(f"{count} {name}" for name, count in left.items())
            yield f"no nearer to rest for {_SETTLE_SECONDS:.0f} s, without a kill: {counts}: {_ending(stack)}"
            return
        time.sleep(1.0)


def _unsettled(stack: Stack) -> Counter[str]:
    """Count the unsettled rows by kind; empty once everything has settled."""
    with psycopg.connect(stack.postgres.url(), autocommit=True) as session:
        counts = {name: session.execute(text).fetchone() for name, text in _UNSETTLED.items()}
    return Counter({name: row[0] for name, row in counts.items() if row and row[0] > _ON_THEIR_WAY.get(name, 0)})


def _ending(stack: Stack) -> list[Any]:
    """The workloads that are being cancelled, with what is known of them."""
    with psycopg.connect(stack.postgres.url(), autocommit=True) as session:
        return session.execute(_CANCELLED).fetchall()


def _broken(promise: Promise, rows: list[dict[str, Any]]) -> Iterator[str]:
    name = f"{promise.kind} {promise.namespace}/{promise.name}"
    if not rows and _must_be_there(promise):
        yield f"{name} is gone: {promise.fate}"
    for row in rows:
        ended = row["status"] == "Finished"
        said = f"{name}: workload {row['name']} is {row['status']} ({row['reason']}: {row['message']})"
        if ended and not row["reason"]:
            yield f"{said}: no reason"
        if promise.fate in _ENDED_BY and not ended:
            yield f"{said}: {promise.fate}"
        if promise.fate == Fate.HELD and row["active"] and not ended:
            yield f"{said}: {promise.fate}"
        if promise.priority is not None and row["priority"] != promise.priority and not ended:
            yield f"{said}: its priority is {row['priority']}, and was set to {promise.priority}"


def _audit(stack: Stack, when: str) -> Iterator[str]:
    done = stack.manage("audit_state", "--seconds", "15")
    if done.returncode:
        yield f"audit {when}: {done.stdout}{done.stderr}"


def _drain(admin: AdminAtWork, tenants: list[TenantAtWork]) -> Iterator[str]:
    """Everything ends: what is held is released, what runs forever is cancelled, the rest runs to its end."""
    while not admin.edit("192"):
        time.sleep(0.5)
    for promise in _promises(tenants):
        if promise.kind == CRON_JOB:
            admin.account.patiently("DELETE", f"manifests/{CRON_JOB}/{promise.namespace}/{promise.name}/")
    deadline = time.monotonic() + _DRAIN_SECONDS
    left: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        left = admin.account.every("workloads/", status=_UNFINISHED)
        if not left:
            return
        for row in left:
            path = f"workloads/{row['namespace']}/{row['name']}"
            if row["owner"] and row["owner"]["kind"] in ENDLESS:
                admin.account.patiently("POST", f"{path}/cancel/")
            elif not row["active"]:
                admin.account.patiently("POST", f"{path}/release/")
        time.sleep(5.0)
    for row in left[:10]:
        said = f"{row['namespace']}/{row['name']} {row['status']} {row['message']}"
        yield f"not ended after {_DRAIN_SECONDS:.0f} s: {said}"


def _held(stack: Stack) -> list[str]:
    """Quota, slices and pods that are held although no workload is left."""
    statements = {
        "decided slices": "SELECT count(*) FROM gpus_deviceallocation WHERE source = 'decided'",
        "found slices": "SELECT count(*) FROM gpus_deviceallocation WHERE source = 'external'",
        "device slots": "SELECT coalesce(sum(used_slots), 0) FROM gpus_device",
        "live pods": "SELECT count(*) FROM queues_pod WHERE phase NOT IN ('Succeeded', 'Failed')",
    }
    with psycopg.connect(stack.postgres.url(), autocommit=True) as session:
        counts = {name: session.execute(text).fetchone() for name, text in statements.items()}
    return [f"{row[0]} {name}" for name, row in counts.items() if row and row[0]]
