"""Rows of one configuration kind with the data that both sides of a served object need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Func, QuerySet

from accounts.models import Cluster
from clusters.served.agreement import Side
from clusters.served.contents import row_content
from foundation.postgresql.instances import fetched_rows
from kinds.declaration import Kind
from queues.models import ServedObject
from queues.services.configuration import objects


def row_version(model: Any) -> Func:
    """Return PostgreSQL's own version of a row, which every change replaces."""
    return Func(template=f'"{model._meta.db_table}".xmin::text::bigint', output_field=BigIntegerField())


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its version and its content."""

    row: Any
    version: int
    side: Side


def row_versions(cluster: Cluster, kinds: Iterable[Kind]) -> dict[tuple[str, str, str], int]:
    """Return, by one query, the version of each row of these kinds, by (kind, namespace, name)."""
    tables = [
        f"SELECT '{kind.name}', {'namespace' if kind.namespaced else repr('')}, name, xmin::text::bigint "  # noqa: S608
        f"FROM {kind.model._meta.db_table} WHERE cluster_id = %(cluster)s"
        for kind in kinds
    ]
    if not tables:
        return {}
    rows = fetched_rows(" UNION ALL ".join(tables), {"cluster": cluster.pk})
    return {(kind, namespace, name): version for kind, namespace, name, version in rows}


def read_rows(cluster: Cluster, kind: Kind, keys: Collection[str]) -> dict[str, Row]:
    """Read the rows of these keys."""
    names = {key.rpartition("/")[2] for key in keys}
    rows = objects(cluster, kind).filter(name__in=names).annotate(row_version=row_version(kind.model))
    found = {(row.key if kind.namespaced else row.name): row for row in rows}
    return {
        key: Row(row, row.row_version, Side(row_content(kind, row), row.updated_at))
        for key, row in found.items()
        if key in keys
    }


def entries(cluster: Cluster, kind: str) -> QuerySet[ServedObject]:
    """Return the entries of the objects of a kind."""
    return ServedObject.objects.filter(cluster=cluster, kind=kind)


def split(key: str) -> tuple[str, str]:
    """Return the namespace and the name of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name
