"""The lists of checks: all that must hold before an installation starts, and all that must hold while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from django.db import DatabaseError
from redis import RedisError

from accounts.models import Cluster
from clusters.api_errors import ClusterUnreachable
from clusters.connection import writing_client_for
from kueueweb.checkup.cluster_checks import cluster_checks
from kueueweb.checkup.database_checks import database_checks
from kueueweb.checkup.finding import Finding, Status, fail, warn
from kueueweb.checkup.installation_checks import engine_checks, process_checks, settings_checks
from kueueweb.checkup.redis_checks import redis_checks
from kueueweb.checkup.webhook_checks import webhook_checks
from queues.models import LocalQueue

_MAX_TENANTS: Final = 20
"""Rights are checked in at most this many namespaces of a cluster."""


def preflight(names: Sequence[str], namespace: str) -> Iterator[Finding]:
    """Yield the findings that need neither `migrate` nor running processes: settings, servers, and each cluster.

    * names: clusters, all of the database if empty; `default` if none exists yet.
    * namespace: of the installation.
    """
    yield from settings_checks()
    yield from database_checks(before_migrate=True)
    yield from redis_checks()
    for cluster in _clusters(names) or [Cluster(name=name) for name in names or ("default",)]:
        yield from _cluster(cluster)


def doctor(names: Sequence[str], namespace: str) -> Iterator[Finding]:
    """Yield the findings of `preflight`, and whether the processes work: tables, heartbeats, leaders, webhook, quota
    audits."""
    yield from settings_checks()
    database = list(database_checks(before_migrate=False))
    yield from database
    redis = list(redis_checks())
    yield from redis
    if any(each.status is Status.FAIL for each in database):
        return  # without its tables nothing else can be checked
    clusters = _clusters(names)
    for name in sorted(set(names) - {cluster.name for cluster in clusters}):
        yield fail(
            f"cluster/{name}", "this cluster does not exist", "python manage.py set_cluster, or another --cluster."
        )
    try:
        yield from process_checks(clusters)
    except RedisError as error:
        yield fail("process", f"not known: {error}", "See the check of Redis.")
    for cluster in clusters:
        yield from engine_checks(cluster)
        yield from _cluster(cluster, namespace)


def _clusters(names: Sequence[str]) -> list[Cluster]:
    rows = Cluster.objects.order_by("name")
    try:
        return list(rows.filter(name__in=names) if names else rows)
    except DatabaseError:
        return []


def _cluster(cluster: Cluster, webhook_namespace: str = "") -> Iterator[Finding]:
    check = f"cluster/{cluster.name}"
    try:
        client = writing_client_for(cluster)
    except ClusterUnreachable as error:
        yield warn(
            check, str(error), "Run it where a role's account or kubeconfig is available: kubectl exec deploy/push."
        )
        return
    found = list(cluster_checks(cluster, client, _tenants(cluster)))
    yield from found
    if webhook_namespace and not any(each.check == check and each.status is Status.FAIL for each in found):
        yield from webhook_checks(cluster, client, webhook_namespace)


def _tenants(cluster: Cluster) -> list[str]:
    if cluster.pk is None:
        return []
    queues = LocalQueue.objects.filter(cluster=cluster).order_by("namespace").values_list("namespace", flat=True)
    return list(queues.distinct()[:_MAX_TENANTS])
