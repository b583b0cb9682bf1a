"""The decayed use of each LocalQueue, from the records of use: the usage of Slurm's fair shares.

Use counts half once its half-life has passed, as with Slurm's PriorityDecayHalfLife: the use of a resource is the
integral of its amount, each moment weighed by 0.5^(age / half-life). It is kept with the LocalQueue together with its
time, so that later only newer use is read. Values go to the LocalQueue's row without an edit of it; a note has the
scheduler read them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from psycopg import sql

from accounts.models import Cluster
from foundation.transactions import unnoticed_transaction
from foundation.wake_ups import wake_scheduler
from history.services.reports.table import Part, Request, fetch
from history.services.reports.usage import PER_UNIT
from history.services.reports.uses import USES
from queues.kinds.multifactor import MultifactorWeights
from queues.models import ClusterQueue, Cohort, LocalQueue
from scheduler.models import Change
from scheduling.model.cohort import DEFAULT_HALF_LIFE_SECONDS

PERIOD_SECONDS: Final = 300.0
"""Slurm's PriorityCalcPeriod."""
RANKED: Final = (
    "SELECT FROM queues_clusterqueue WHERE priority_weights ->> 'fair_share' IS NOT NULL UNION ALL"
    " SELECT FROM queues_cohort WHERE priority_weights ->> 'fair_share' IS NOT NULL"
)
"""Whether any queue is ordered by fair shares."""

_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STATEMENT: Final = sql.SQL(
    """
    WITH {uses}
    SELECT uses.namespace, uses.local_queue, amount.key,
        sum(amount.value::float8 / {per_unit} * %(half_life)s / ln(2.0::float8) * (
            power(0.5::float8, least(1000, age.end / %(half_life)s))
            - power(0.5::float8, least(1000, age.start / %(half_life)s))))
    FROM uses
        CROSS JOIN LATERAL (SELECT
            extract(epoch FROM %(until)s - least(uses.ended_at, %(until)s))::float8 AS end,
            extract(epoch FROM %(until)s - greatest(uses.started_at, %(since)s))::float8 AS start) AS age
        CROSS JOIN LATERAL jsonb_each(uses.held) AS flavor
        CROSS JOIN LATERAL jsonb_each_text(flavor.value) AS amount
    WHERE least(uses.ended_at, %(until)s) > greatest(uses.started_at, %(since)s)
    GROUP BY 1, 2, 3
    """
).format(uses=USES, per_unit=PER_UNIT)

Uses = Mapping[tuple[str, str], Mapping[str, float]]
"""(namespace, LocalQueue) -> resource -> decayed seconds of one core, one GiB, one of anything else."""


def note_past_use(cluster: Cluster, now: datetime) -> int:
    """Bring the past use of all LocalQueues of a cluster up to date; returns how many there are. Without a queue that
    is ordered by fair shares nothing is computed."""
    half_lives = _half_lives(cluster)
    if half_lives is None:
        return 0
    groups: dict[tuple[datetime, int], list[LocalQueue]] = defaultdict(list)
    for queue in LocalQueue.objects.filter(cluster=cluster).order_by("pk"):
        half_life = half_lives.get(queue.cluster_queue_name, DEFAULT_HALF_LIFE_SECONDS)
        known = queue.past_use.get("halfLifeSeconds") == half_life
        since = datetime.fromtimestamp(queue.past_use["at"], UTC) if known else _EVER
        groups[min(since, now), half_life].append(queue)
    for (since, half_life), queues in groups.items():
        uses = _uses(cluster, since, now, half_life)
        for queue in queues:
            before = queue.past_use.get("used") or {} if since > _EVER else {}
            rest = 0.5 ** ((now - since).total_seconds() / half_life)
            used = {name: amount * rest for name, amount in before.items()}
            for name, amount in uses.get((queue.namespace, queue.name), {}).items():
                used[name] = used.get(name, 0.0) + amount
            queue.past_use = {"at": now.timestamp(), "halfLifeSeconds": half_life, "used": used}
    queues = [queue for group in groups.values() for queue in group]
    _write(cluster, queues)
    return len(queues)


def _write(cluster: Cluster, queues: Iterable[LocalQueue]) -> None:
    written = list(queues)
    with unnoticed_transaction():
        LocalQueue.objects.bulk_update(written, ["past_use"], batch_size=1000)
        Change.objects.bulk_create(
            Change(cluster_id=cluster.pk, kind="localqueue", object_id=queue.pk, key=f"{queue.namespace}/{queue.name}")
            for queue in written
        )
    wake_scheduler(cluster.name)


def _uses(cluster: Cluster, since: datetime, until: datetime, half_life_seconds: int) -> Uses:
    request = Request([Part(cluster.pk, cluster.name)], since, until)
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    parameters = {**request.parameters(), "half_life": float(half_life_seconds)}
    for namespace, queue, resource, amount in fetch(_STATEMENT, parameters):
        found[namespace, queue][resource] = amount
    return found


def _half_lives(cluster: Cluster) -> dict[str, int] | None:
    """Return the half-life of each ClusterQueue, by the nearest weights: its own, or those of a cohort above it. None:
    no weights of the cluster weigh the fair share."""
    cohorts = {row.name: row for row in Cohort.objects.filter(cluster=cluster)}
    queues = list(ClusterQueue.objects.filter(cluster=cluster))
    stated = [row.priority_weights for row in queues] + [row.priority_weights for row in cohorts.values()]
    if not any(weights.get("fair_share") for weights in stated):
        return None
    return {queue.name: _half_life(queue, cohorts) for queue in queues}


def _half_life(queue: ClusterQueue, cohorts: Mapping[str, Cohort]) -> int:
    stated: dict[str, Any] = queue.priority_weights
    name, passed = queue.cohort_name, set[str]()
    while not stated and name in cohorts and name not in passed:
        passed.add(name)
        stated, name = cohorts[name].priority_weights, cohorts[name].parent_name
    weights = MultifactorWeights().core(stated)
    return weights.half_life_seconds if weights is not None else DEFAULT_HALF_LIFE_SECONDS
