"""The accuracy of past estimates: how often starts lay in their intervals, and how far off the estimates were."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from accounts.models import Cluster
from scheduling.estimates.estimator import STAGES_SECONDS
from scheduling.estimates.judgement import JudgedEstimate, accuracy
from studio.models import EstimateRound
from studio.services.kept_estimates import judged_seconds

MAX_JUDGED: Final = 20_000
"""The newest estimates that one answer is about."""


def accuracy_json(
    cluster: Cluster, since: datetime, cluster_queues: frozenset[str] | None, max_judged: int = MAX_JUDGED
) -> dict[str, Any]:
    """Return the accuracy of estimates whose workloads started since then: by age of waiting, and of those at
    submission by ClusterQueue.

    It is about the newest `max_judged` estimates of these ClusterQueues, which the reader may see; None means all.
    """
    by_stage: dict[int, list[JudgedEstimate]] = {stage: [] for stage in STAGES_SECONDS}
    by_queue: dict[str, list[JudgedEstimate]] = defaultdict(list)
    for queue, stage, p10, p50, p90, waited in judged_seconds(cluster, since, cluster_queues, max_judged):
        judged = JudgedEstimate(waited.total_seconds(), p10, p50, p90)
        by_stage[stage].append(judged)
        if stage == 0:
            by_queue[queue].append(judged)
    renewed = EstimateRound.objects.filter(cluster=cluster).values_list("renewed_at", flat=True).first()
    return {
        "since": since,
        "renewed_at": renewed,
        "stages": [{"stage_seconds": stage, **asdict(accuracy(found))} for stage, found in by_stage.items()],
        "cluster_queues": [
            {"cluster_queue": name, **asdict(accuracy(found))} for name, found in sorted(by_queue.items())
        ],
    }
