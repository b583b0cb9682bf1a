"""Computes the quotas that follow the nodes of their flavor.

The result is written to the quota's row like an edit: rules, pages and manifests do not depend on nodes, and the audit
has each change. While no node of the cluster is known, quotas stay unchanged.
"""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any, Final

from django.db import transaction
from django.db.models import Model

from accounts.models import Cluster
from foundation.wake_ups import wake_scheduler
from queues.models import ClusterQueue, Cohort, FlavorQuota, ResourceFlavor
from scheduler.store.flavor_capacities import capacities
from scheduling.devices.capacity import FlavorCapacity
from scheduling.model.quantity import parse_amount

_log = logging.getLogger(__name__)

_OWNERS: Final[tuple[tuple[type[Model], str], ...]] = ((Cohort, "cohort"), (ClusterQueue, "cluster_queue"))

Stated = dict[tuple[str, str], dict[str, str]]
"""(flavor, resource) -> {share, headroom}."""


def follow_nodes(cluster: Cluster) -> int:
    """Bring each quota that follows the nodes up to date; return how many have changed."""
    changed = 0
    with transaction.atomic():
        stated = {
            key: {row.pk: _by_cell(row.node_quotas) for row in _followers(model, cluster)} for model, key in _OWNERS
        }
        if not any(stated.values()):
            return 0
        named = {flavor for owners in stated.values() for cells in owners.values() for flavor, _ in cells}
        flavors = ResourceFlavor.objects.filter(cluster=cluster, name__in=named)
        found = {
            (flavor, each.resource): each for flavor, known in capacities(cluster, flavors).items() for each in known
        }
        for key, owners in stated.items():
            quotas = FlavorQuota.objects.filter(**{f"resource_group__{key}__in": owners.keys()})
            for quota in quotas.select_related("resource_group").order_by("pk"):
                cells = owners[getattr(quota.resource_group, f"{key}_id")]
                changed += _follow(quota, cells, found)
    if changed:
        _log.info("%d quotas of cluster %s were updated from its nodes", changed, cluster.name)
        wake_scheduler(cluster.name)
    return changed


def _followers(model: Any, cluster: Cluster) -> Any:
    """Lock the rows in the common order, so that an edit of the same object comes before or after."""
    return model.objects.filter(cluster=cluster).exclude(node_quotas=[]).order_by("pk").select_for_update(no_key=True)


def _by_cell(stated: list[dict[str, str]]) -> Stated:
    return {(cell["flavor"], cell["resource"]): cell for cell in stated}


def _follow(quota: FlavorQuota, cells: Stated, found: dict[tuple[str, str], FlavorCapacity]) -> bool:
    key = (quota.flavor, quota.resource)
    if key not in cells or key not in found:
        return False
    basis_points = int(Decimal(cells[key]["share"].rstrip("%")) * 100)
    amount = found[key].share(basis_points, parse_amount(quota.resource, cells[key]["headroom"]))
    if amount == quota.nominal_quota:
        return False
    quota.nominal_quota = amount
    quota.save(update_fields=["nominal_quota"])
    return True
