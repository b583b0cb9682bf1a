"""The engine's list of changed rows, which are read in their present state.

A note is read as soon as it is visible, and deleted by id in the transaction of the batch that includes it. There is no
"last id read": transactions commit in any order, so ids become visible out of order and may have gaps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.db import connection

from foundation.postgresql.instances import fetched_rows

LIMIT = 20_000
"""At most this many notes on configuration, nodes and devices per batch; the rest follows in the next one."""
LIMIT_OF_TENANTS = 500
"""At most this many notes on workloads per batch if very many tenants have some; each has two lines, workloads that
hold quota and all others, and each line an equal part."""
MIN_OF_A_LINE = 5

# Step from line to line by the index and take the oldest notes of each: the cost depends on the notes taken, not on the
# length of the list. Workloads that hold quota have a line of their own, so that released quota is noticed before
# thousands of later submissions.
_OLDEST_OF_EACH_LINE: Final = """
    WITH RECURSIVE lines (tenant, holds_quota) AS (
        (
            SELECT tenant, holds_quota FROM scheduler_change
            WHERE cluster_id = %(cluster)s ORDER BY tenant, holds_quota LIMIT 1
        )
        UNION ALL
        SELECT later.tenant, later.holds_quota FROM lines CROSS JOIN LATERAL (
            SELECT tenant, holds_quota FROM scheduler_change
            WHERE cluster_id = %(cluster)s AND (tenant, holds_quota) > (lines.tenant, lines.holds_quota)
            ORDER BY tenant, holds_quota LIMIT 1
        ) AS later
    )
    SELECT cluster.configuration_generation, taken.* FROM accounts_cluster AS cluster LEFT JOIN (
        SELECT note.* FROM lines CROSS JOIN LATERAL (
            SELECT id, kind, object_id, key FROM scheduler_change
            WHERE cluster_id = %(cluster)s AND tenant = lines.tenant AND holds_quota = lines.holds_quota ORDER BY id
            LIMIT CASE WHEN lines.tenant = '' THEN %(limit)s ELSE least(%(line_limit)s, greatest(
                %(min_of_a_line)s,
                %(limit_of_tenants)s / greatest(1, (SELECT count(*) FROM lines WHERE tenant <> ''))
            )) END
        ) AS note
    ) AS taken ON true
    WHERE cluster.id = %(cluster)s ORDER BY taken.id
"""
FORGET_CHANGES: Final = "DELETE FROM scheduler_change WHERE id = ANY(%s)"
"""Deletes notes that a batch has seen."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed rows as kind -> row id -> key, in order, and the configuration's generation from before they were
    read."""

    configuration_generation: int
    ids: tuple[int, ...] = ()
    by_kind: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_kind)


def read_changes(cluster_id: int, notes_of_a_line: int, outdated: Mapping[int, str] | None = None) -> Changes:
    """Return the current notes. Per namespace, these are at most `notes_of_a_line` notes on workloads that hold quota,
    and as many on other workloads; fewer if very many namespaces have notes. A batch must be short, or a flood from one
    or many namespaces would delay all others.

    Workloads in `outdated` (row id -> key) are among the changes wherever their notes are, because a batch was refused
    for them. Otherwise the same batch would be decided and refused until all older notes are deleted, which happens
    only when a batch is saved.

    The generation is that of the moment of the notes: an edit commits both. Rows are read later, and an edit in between
    fails the batch's check instead of slipping past it.
    """
    values = {
        "cluster": cluster_id,
        "limit": LIMIT,
        "line_limit": notes_of_a_line,
        "limit_of_tenants": LIMIT_OF_TENANTS,
        "min_of_a_line": MIN_OF_A_LINE,
    }
    found = fetched_rows(_OLDEST_OF_EACH_LINE, values)
    if not found:
        raise LookupError(f"cluster {cluster_id} was deleted")
    notes = [note for _, *note in found if note[0] is not None]
    by_kind: dict[str, dict[int, str]] = defaultdict(dict)
    for _, kind, object_id, key in notes:
        by_kind[kind][object_id] = key
    if outdated:
        by_kind["workload"].update(outdated)
    return Changes(int(found[0][0]), tuple(note[0] for note in notes), by_kind)


def forget_all_changes(cluster_id: int) -> None:
    """Delete every note visible to this transaction. A full load in the same snapshot has read the rows."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM scheduler_change WHERE cluster_id = %s", [cluster_id])
