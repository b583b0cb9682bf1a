"""Rows of the configuration kinds -> the rules' objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, TypeVar

from django.db.models import Model, QuerySet

from queues.kinds import KINDS

Ids = Collection[int] | None

_BY_LOWER_NAME: Final = {name.lower(): kind for name, kind in KINDS.items()}

Row = TypeVar("Row", bound=Model)


def rows_of(queryset: QuerySet[Row], cluster_id: int, ids: Ids) -> Iterable[Row]:
    """Return the rows of a cluster, or only those with these ids."""
    selected = queryset.filter(cluster_id=cluster_id)
    return selected if ids is None else selected.filter(pk__in=ids)


def read_objects(kind: str, cluster_id: int, ids: Ids = None) -> dict[int, Any]:
    """Read the objects of a kind (its name in lower case, as in a Change) by row id; without `ids`, all of the cluster.

    A deleted row is absent from the result.
    """
    found = _BY_LOWER_NAME[kind]
    rows = rows_of(found.model.objects.prefetch_related(*found.prefetch), cluster_id, ids)
    return {row.pk: found.core_value(row) for row in rows}


def read_objects_of(kind: str, cluster_ids: Collection[int]) -> dict[int, list[Any]]:
    """Read the objects of a kind by cluster: as many queries for several clusters as for one."""
    found = _BY_LOWER_NAME[kind]
    objects: dict[int, list[Any]] = {pk: [] for pk in cluster_ids}
    for row in found.model.objects.prefetch_related(*found.prefetch).filter(cluster__in=cluster_ids):
        objects[row.cluster_id].append(found.core_value(row))
    return objects
