"""One upgrade: the old release with tenants and an admin at work, the migration, the new processes, and the verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.acceptance.crash.run import TIME_SCALE, at_work, stamped
from tests.acceptance.crash.stack import Stack
from tests.acceptance.crash.verdict import faults

_WORKLOADS: Final = """
    SELECT uid::text, namespace || '/' || name, created_at, status, finished_at, reason FROM queues_workload
    WHERE name NOT LIKE 'old-%'
"""
_DECISIONS: Final = """
    SELECT count(*), coalesce(max(id), 0),
        md5(coalesce(string_agg(concat_ws(' ', id, action, workload_uid, reason), ',' ORDER BY id), ''))
    FROM scheduler_decision WHERE id <= %s
"""
_MAX_ID: Final = 2**62
# A copy of a workload that has ended, whose job it is not: by the columns that its release has. In the list of columns,
# the function would be called once for each of them.
_OLD: Final = """
    INSERT INTO queues_workload SELECT old.* FROM generate_series(1, %s) AS number
    CROSS JOIN (SELECT found AS whole FROM queues_workload AS found WHERE status = 'Finished' LIMIT 1) AS ended
    CROSS JOIN LATERAL jsonb_populate_record(ended.whole, jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('queues_workload', 'id')), 'uid', gen_random_uuid(),
        'namespace', 'old', 'name', 'old-' || number, 'job_id', NULL
    )) AS old
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """The rows that an upgrade must not change."""

    workloads: dict[str, tuple[Any, ...]]
    """uid -> key, creation, status, end, reason."""
    decisions: tuple[int, int, str]
    """How many, the last id, and a digest of all."""


def upgrade(
    before: Path, folder: Path, seconds: float, seed: int, finished: int, say: Callable[[str], None]
) -> list[str]:
    """Upgrade the release in `before` and say what is wrong then."""
    say = stamped(say)
    (folder / "stack").mkdir()
    with Stack(folder / "stack", say, TIME_SCALE, root=before) as stack:
        with at_work(stack, seed) as work:
            time.sleep(seconds)
            if finished:
                _add_finished(stack, finished)
                say(f"{finished} finished workloads were added")
            picture = _picture(stack)
            began = time.monotonic()
            migrated = stack.manage("migrate")
            say(f"migrated in {time.monotonic() - began:.1f} s, with the processes of the release before at work")
            if migrated.returncode:
                return [f"migrate failed: {migrated.stdout}{migrated.stderr}"]
            time.sleep(seconds / 4)
            between = _picture(stack)
            stack.upgrade()
            time.sleep(seconds)
        say("No more load: everything settles.")
        found = [*_differences(picture, _picture(stack, picture)), *_pauses(stack, between)]
        return [*found, *faults(stack, work.admin, work.tenants)]


def _picture(stack: Stack, earlier: Picture | None = None) -> Picture:
    """The rows as they are; decisions up to those of an earlier picture."""
    with psycopg.connect(stack.postgres.url(), autocommit=True) as session:
        rows = session.execute(_WORKLOADS).fetchall()
        decisions = session.execute(_DECISIONS, [earlier.decisions[1] if earlier else _MAX_ID]).fetchone()
    assert decisions is not None
    return Picture({uid: tuple(values) for uid, *values in rows}, decisions)


def _differences(before: Picture, after: Picture) -> Iterator[str]:
    """What the upgrade lost or changed. A tenant may delete a workload meanwhile, but none that has ended comes back,
    and none is another."""
    if before.decisions != after.decisions:
        yield f"decisions from before the upgrade: {before.decisions} were there, and {after.decisions} are"
    for uid, (key, created_at, status, finished_at, reason) in before.workloads.items():
        now = after.workloads.get(uid)
        if now is not None and now[:2] != (key, created_at):
            yield f"{key} of {created_at} is {now[0]} of {now[1]}"
        elif now is not None and status == "Finished" and now[2:] != (status, finished_at, reason):
            yield f"{key} ended at {finished_at} with {reason}, and now is {now[2:]}"


def _pauses(stack: Stack, before: Picture) -> Iterator[str]:
    with psycopg.connect(stack.postgres.url(), autocommit=True) as session:
        row = session.execute(
            "SELECT count(*) FROM scheduler_decision WHERE id > %s AND action = 'Admit'", [before.decisions[1]]
        ).fetchone()
    if row is None or not row[0]:
        yield "the new release admitted no workload"


def _add_finished(stack: Stack, count: int) -> None:
    with psycopg.connect(stack.postgres.url()) as session:
        session.execute("SET LOCAL kueueweb.unnoticed = 'on'")
        session.execute(_OLD, [count])
