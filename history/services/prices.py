"""Prices of an hour: one list per cluster, replaced as a whole."""

import zlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction

from accounts.models import Cluster
from accounts.services.precondition import Precondition
from history.models import Price


def read_prices(cluster: Cluster) -> dict[str, Any]:
    """{currency, prices: [{flavor, resource, per_hour}]}."""
    rows = list(Price.objects.filter(cluster=cluster))
    return {
        "currency": rows[0].currency if rows else "",
        "prices": [{"flavor": row.flavor, "resource": row.resource, "per_hour": f"{row.per_hour:.6f}"} for row in rows],
    }


def generation_of(prices: Mapping[str, Any]) -> int:
    """Return a value that changes with every change of the list."""
    return zlib.crc32(repr(prices).encode())


def replace_prices(
    cluster: Cluster, currency: str, prices: Sequence[Mapping[str, Any]], precondition: Precondition | None
) -> None:
    """Raises `PreconditionFailed` if the list is not the one that was read."""
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if precondition is not None:
            precondition.check("Prices", cluster.name, generation_of(read_prices(cluster)))
        Price.objects.filter(cluster=cluster).delete()
        Price.objects.bulk_create(
            Price(
                cluster=cluster,
                flavor=price["flavor"],
                resource=price["resource"],
                per_hour=Decimal(price["per_hour"]),
                currency=currency,
            )
            for price in prices
        )
