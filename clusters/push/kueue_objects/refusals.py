"""Notes that the cluster refused an object, and when to try it again."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from queues.models import ServedObject

_log = logging.getLogger(__name__)

_MAX_PROBLEM: Final = 1024
_MAX_RETRY_SECONDS: Final = 300.0
_MAX_DOUBLINGS: Final = 9


def note_refusal(cluster: Cluster, entry: ServedObject, refusal: ClusterError, now: datetime) -> None:
    """Store the refusal, and try the object again after 1 s, 2 s, 4 s ... 5 minutes."""
    problem = " ".join(str(refusal).split())[:_MAX_PROBLEM]
    wait = min(2.0 ** min(entry.failures, _MAX_DOUBLINGS), _MAX_RETRY_SECONDS)
    if problem != entry.problem:
        _log.warning("Cluster %s refuses %s: %s; retrying in %.0f s", cluster.name, entry, refusal, wait)
    entry.problem = problem
    entry.failures += 1
    entry.retry_at = now + timedelta(seconds=wait)
    entry.keep()
