"""Creates namespaces that submissions name before they exist, and notes which of them the cluster has."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from django.db import connection

from accounts.kinds.namespace import namespace_labels
from accounts.models import Cluster, Namespace
from accounts.services.apply_result import Submitted

_NOTED: Final = """
    UPDATE accounts_namespace SET in_cluster = NOT in_cluster
    WHERE cluster_id = %(cluster)s AND CASE WHEN in_cluster
        THEN name <> ALL(%(present)s::text[]) AND (%(listed)s OR name = ANY(%(gone)s::text[]))
        ELSE name = ANY(%(present)s::text[]) END
"""


def create_missing_namespaces(
    cluster: Cluster, submissions: Sequence[tuple[str, Submitted[Any]]], *, now: datetime
) -> list[str]:
    """Create the namespaces that are missing, with a warning to the first submission that names each; returns them."""
    wanted: dict[str, Submitted[Any]] = {}
    for namespace, submitted in submissions:
        wanted.setdefault(namespace, submitted)
    there = set(Namespace.objects.filter(cluster=cluster, name__in=wanted).values_list("name", flat=True))
    missing = [namespace for namespace in wanted if namespace not in there]
    Namespace.objects.bulk_create(
        Namespace(cluster=cluster, name=namespace, labels=namespace_labels(namespace), created_at=now)
        for namespace in missing
    )
    for namespace in missing:
        submitted = wanted[namespace]
        submitted.report.warn(
            submitted.at("metadata.namespace"), f"namespace {namespace} did not exist and was created"
        )
    return missing


def note_namespaces(cluster: Cluster, present: Collection[str], gone: Collection[str], *, listed: bool) -> None:
    """Record which namespaces the cluster has. `listed`: the list is complete."""
    if not (present or gone or listed):
        return
    with connection.cursor() as cursor:
        cursor.execute(_NOTED, {"cluster": cluster.pk, "present": list(present), "gone": list(gone), "listed": listed})
