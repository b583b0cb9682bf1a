"""Writes resource groups and quotas of ClusterQueues and Cohorts from specs to rows."""

from collections.abc import Sequence
from typing import Any

from queues.kinds.quotas import ResourceGroupSpec
from queues.models import ClusterQueue, Cohort, FlavorQuota, ResourceGroup


def replace_groups(owners: Sequence[tuple[Any, tuple[ResourceGroupSpec, ...]]]) -> None:
    """Replace the groups of these rows: four statements for any number of rows."""
    for model, key in ((ClusterQueue, "cluster_queue"), (Cohort, "cohort")):
        rows = [(owner, groups) for owner, groups in owners if isinstance(owner, model)]
        if rows:
            ResourceGroup.objects.filter(**{f"{key}__in": [owner for owner, _ in rows]}).delete()
            _store_groups(key, rows)


def _store_groups(key: str, owners: Sequence[tuple[Any, tuple[ResourceGroupSpec, ...]]]) -> None:
    specs: list[ResourceGroupSpec] = []
    rows: list[ResourceGroup] = []
    for owner, groups in owners:
        for position, group in enumerate(groups):
            specs.append(group)
            rows.append(
                ResourceGroup(
                    **{key: owner},
                    position=position,
                    covered_resources=list(group.covered_resources),
                    flavors=list(group.flavors),
                )
            )
    stored = ResourceGroup.objects.bulk_create(rows)
    FlavorQuota.objects.bulk_create(
        FlavorQuota(
            resource_group=row,
            flavor=cell.flavor,
            resource=cell.resource,
            nominal_quota=cell.nominal_quota,
            borrowing_limit=cell.borrowing_limit,
            lending_limit=cell.lending_limit,
            spellings=dict(cell.spellings),
        )
        for row, group in zip(stored, specs, strict=True)
        for cell in group.quotas
    )
