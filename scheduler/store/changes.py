"""The engine's to-do list: which rows changed, to be read as they are now.

Notes are taken as they become visible and deleted by id in the transaction of the batch that has seen them. There is no
"last id read": ids become visible out of order, since transactions commit in any order, and gaps mean nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.db import connection

LIMIT = 20_000
"""Notes on configuration, nodes and devices taken at once; the rest is taken by the next batch."""

# From one tenant to the next by the index, and of each its oldest: the cost is that of what is taken, however long the
# list has become.
_OLDEST_OF_EACH_TENANT: Final = """
    WITH RECURSIVE tenants (tenant) AS (
        (SELECT tenant FROM scheduler_change WHERE cluster_id = %(cluster)s ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (
            SELECT tenant FROM scheduler_change
            WHERE cluster_id = %(cluster)s AND tenant > tenants.tenant ORDER BY tenant LIMIT 1
        ) FROM tenants WHERE tenants.tenant IS NOT NULL
    )
    SELECT note.* FROM tenants CROSS JOIN LATERAL (
        SELECT id, kind, object_id, key FROM scheduler_change
        WHERE cluster_id = %(cluster)s AND tenant = tenants.tenant ORDER BY id
        LIMIT CASE WHEN tenants.tenant = '' THEN %(limit)s ELSE %(tenant_limit)s END
    ) AS note ORDER BY note.id
"""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed: kind -> row id -> key, in the order noted; and the configuration's generation before that."""

    configuration_generation: int
    ids: tuple[int, ...] = ()
    by_kind: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.ids)


def read_changes(cluster_id: int, notes_of_a_tenant: int) -> Changes:
    """What is there now, and of one namespace's workloads no more than so many notes: a batch must be short, or all
    others wait for one's flood.

    The generation comes first: an edit between the two fails the batch's check, never passes.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT configuration_generation FROM accounts_cluster WHERE id = %s", [cluster_id])
        row = cursor.fetchone()
        if row is None:
            raise LookupError(f"cluster {cluster_id} is gone")
        cursor.execute(
            _OLDEST_OF_EACH_TENANT, {"cluster": cluster_id, "limit": LIMIT, "tenant_limit": notes_of_a_tenant}
        )
        notes = cursor.fetchall()
    by_kind: dict[str, dict[int, str]] = defaultdict(dict)
    for _, kind, object_id, key in notes:
        by_kind[kind][object_id] = key
    return Changes(int(row[0]), tuple(note[0] for note in notes), by_kind)


def forget_changes(ids: tuple[int, ...]) -> None:
    """Delete the notes that have been seen."""
    if ids:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM scheduler_change WHERE id = ANY(%s)", [list(ids)])


def forget_all_changes(cluster_id: int) -> None:
    """Delete every note visible to this transaction: a full load in the same snapshot has seen the rows."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM scheduler_change WHERE cluster_id = %s", [cluster_id])
