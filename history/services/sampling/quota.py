"""Quota, and its used, borrowed and lent parts: the leader's own numbers, and their sums."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.db import connection

from history.models import Scope
from history.services.sampling.gathered import Gathered, Places, Quota, SubjectKey
from queues.services.admission_rows import CHARGED_USAGE

_OF_NAMESPACES: Final = """
    SELECT workload.namespace, pod_set.flavors ->> usage.key, usage.key, sum(CHARGED_USAGE)::bigint
    FROM queues_workload AS workload
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.resource_usage) AS usage
    WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        AND pod_set.flavors ? usage.key
    GROUP BY 1, 2, 3
""".replace("CHARGED_USAGE", CHARGED_USAGE)
Cell = Mapping[str, Any]
Place = tuple[str, str, str]
"""(root cohort, flavor, resource): within these queues lend to each other."""


def gather_quota(cluster_id: int, places: Places, found: Gathered) -> None:
    """Add an entry for each cell of a queue, a cohort and the cluster, and for the usage of each namespace."""
    gather_cells(places, found)
    with connection.cursor() as cursor:
        cursor.execute(_OF_NAMESPACES, [cluster_id])
        for namespace, flavor, resource, used in cursor.fetchall():
            found.quota[SubjectKey(Scope.NAMESPACE, namespace, "", flavor, resource)] = Quota(used)


def gather_cells(places: Places, found: Gathered) -> None:
    """Add an entry for each cell of a queue, a cohort and the cluster."""
    lent = _lent(places)
    for queue, cell in _cells(places):
        entry = _quota(cell, lent[queue, cell["flavor"], cell["resource"]])
        found.quota[_key(Scope.CLUSTER_QUEUE, queue, cell)] = entry
        above = places.above[queue]
        for ancestor in above:
            _add(found.quota[_key(Scope.COHORT, ancestor, cell)], entry, _guaranteed(cell))
        # A cohort's quota is added below, without the part that its queues do not lend.
        own = _guaranteed(cell) if above else cell["nominal"]
        _add(found.quota[_key(Scope.CLUSTER, "", cell)], entry, own)
    for name, cohort in places.cohorts.items():
        for usage in cohort["usage"]:
            _add(found.quota[_key(Scope.COHORT, name, usage)], Quota(), usage["subtree_quota"])
            if not cohort["parent"]:
                _add(found.quota[_key(Scope.CLUSTER, "", usage)], Quota(), usage["subtree_quota"])


def _cells(places: Places) -> Iterator[tuple[str, Cell]]:
    for name, queue in places.cluster_queues.items():
        for cell in queue["usage"]:
            yield name, cell


def _key(scope: Scope, name: str, cell: Cell) -> SubjectKey:
    return SubjectKey(scope, name, "", cell["flavor"], cell["resource"])


def _quota(cell: Cell, lent: int) -> Quota:
    limit = cell["borrowing_limit"]
    ceiling = None if limit is None else cell["nominal"] + limit
    return Quota(cell["used"], cell["nominal"], ceiling, cell["borrowed"], lent)


def _guaranteed(cell: Cell) -> int:
    """Return the quota that a queue never lends, which does not count into its cohort's."""
    return 0 if cell["lending_limit"] is None else max(0, cell["nominal"] - cell["lending_limit"])


def _add(to: Quota, more: Quota, nominal: int) -> None:
    to.used += more.used
    to.borrowed = (to.borrowed or 0) + (more.borrowed or 0)
    to.lent = (to.lent or 0) + (more.lent or 0)
    to.nominal = (to.nominal or 0) + nominal


def _lent(places: Places) -> Mapping[tuple[str, str, str], int]:
    """(queue, flavor, resource) -> its part of the amount that others borrow, in proportion to each queue's lendable
    rest."""
    borrowed: dict[Place, int] = defaultdict(int)
    lendable: dict[Place, int] = defaultdict(int)
    shares: dict[tuple[str, str, str], tuple[Place, int]] = {}
    for queue, cell in _cells(places):
        above = places.above[queue]
        place = (above[-1] if above else "", cell["flavor"], cell["resource"])
        idle = max(0, cell["nominal"] - cell["used"]) if above else 0
        idle = idle if cell["lending_limit"] is None else min(idle, cell["lending_limit"])
        borrowed[place] += cell["borrowed"]
        lendable[place] += idle
        shares[queue, cell["flavor"], cell["resource"]] = (place, idle)
    return {
        key: round(idle * min(1.0, borrowed[place] / lendable[place])) if lendable[place] else 0
        for key, (place, idle) in shares.items()
    }
