"""Limits of a tenant: unfinished workloads per namespace, LocalQueue and user, and submissions per minute."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from django.conf import settings
from django.db.models import Count, QuerySet
from redis import RedisError

from accounts.models import Cluster
from foundation.exceptions import LimitReached
from foundation.redis_client import redis_client
from queues.manifests.workload import WorkloadSpec
from queues.models import Workload

_RETRY_SECONDS: Final = 30
"""The end of workloads is unknown; this is often enough, and not too often."""
_MINUTE: Final = 60

_log = logging.getLogger(__name__)


def check_limits(cluster: Cluster, specs: Sequence[WorkloadSpec], user: str, *, rate_is_checked: bool = False) -> None:
    """Raise `LimitReached` if these workloads would be too many.

    Workloads without a user, such as those of Jobs found in the cluster, are not limited here. Concurrent calls do not
    see each other's workloads, so they may exceed a limit together.
    """
    if not user:
        return
    if not rate_is_checked:
        check_rate(len(specs), user)
    check_unfinished(cluster, Counter((spec.namespace, spec.queue_name) for spec in specs), user)


def check_unfinished(cluster: Cluster, new: Counter[tuple[str, str]], user: str) -> None:
    """Raise `LimitReached` if these numbers of new workloads, by namespace and LocalQueue, would exceed a limit. A user
    that is named is held to the user's own limit too.
    """
    _check_namespaces(cluster, new)
    if user:
        _check_user(cluster, new.total(), user)


def _check_namespaces(cluster: Cluster, new: Counter[tuple[str, str]]) -> None:
    if not (settings.MAX_UNFINISHED_PER_LOCAL_QUEUE or settings.MAX_UNFINISHED_PER_NAMESPACE):
        return
    new_by_namespace = Counter[str]()
    for (namespace, _), count in new.items():
        new_by_namespace[namespace] += count
    unfinished = jobs_of(cluster).filter(namespace__in=new_by_namespace)
    rows = unfinished.order_by().values_list("namespace", "queue_name").annotate(count=Count("id"))
    there = {(namespace, queue): count for namespace, queue, count in rows}
    for (namespace, queue), count in new.items():
        whose = f"LocalQueue {namespace}/{queue}"
        limit = settings.MAX_UNFINISHED_PER_LOCAL_QUEUE
        _check(whose, there.get((namespace, queue), 0), count, limit, "MAX_UNFINISHED_PER_LOCAL_QUEUE")
    there_by_namespace = Counter[str]()
    for (namespace, _), count in there.items():
        there_by_namespace[namespace] += count
    for namespace, count in new_by_namespace.items():
        limit = settings.MAX_UNFINISHED_PER_NAMESPACE
        _check(f"Namespace {namespace}", there_by_namespace[namespace], count, limit, "MAX_UNFINISHED_PER_NAMESPACE")


def _check_user(cluster: Cluster, new: int, user: str) -> None:
    limit = settings.MAX_UNFINISHED_PER_USER
    if limit:
        there = jobs_of(cluster).filter(submitted_by=user).count()
        _check(f"User {user}", there, new, limit, "MAX_UNFINISHED_PER_USER")


def jobs_of(cluster: Cluster) -> QuerySet[Workload]:
    """Return the unfinished workloads that users submitted; without variants (concurrent admission)."""
    return Workload.objects.filter(cluster=cluster, parent_name="").exclude(status="Finished")


def _check(whose: str, there: int, new: int, limit: int, setting: str) -> None:
    if limit and there + new > limit:
        raise LimitReached(
            f"{whose} has {there:,} unfinished workloads and may have {limit:,}: {new:,} more would be too "
            "many. Nothing was stored. Wait until some have finished, or cancel some; an operator of "
            f"kueueweb can raise {setting}.",
            _RETRY_SECONDS,
        )


def check_rate(new: int, user: str, now: float | None = None) -> None:
    """Count submissions.

    Raises `LimitReached`, without counting, if they are too many for one minute. Called before documents are read,
    because refusals of many documents must be cheap. The count is in Redis; while Redis does not answer, nothing is
    refused, and the other limits still apply.
    """
    limit = settings.MAX_SUBMISSIONS_PER_MINUTE
    if not limit:
        return
    minute, second = divmod(int(time.time() if now is None else now), _MINUTE)
    key = f"kueueweb:submissions:{minute}:{user}"
    try:
        with redis_client().pipeline() as pipeline:
            pipeline.incrby(key, new)
            pipeline.expire(key, 2 * _MINUTE)
            count = int(pipeline.execute()[0])
        if count > limit:
            redis_client().decrby(key, new)
    except RedisError as error:
        _log.warning("Submissions of %s could not be counted: %s", user, error)
        return
    if count > limit:
        raise LimitReached(
            f"User {user} may submit {limit:,} workloads a minute and has submitted {count - new:,} in this "
            f"one: {new:,} more would be too many. Nothing was stored. Wait, or submit fewer at a time; an "
            "operator of kueueweb can raise MAX_SUBMISSIONS_PER_MINUTE.",
            _MINUTE - second,
        )
