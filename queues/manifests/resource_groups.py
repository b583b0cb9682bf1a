"""`resourceGroups` of ClusterQueues and Cohorts: which resources are counted in which flavors, and how much of them."""

from dataclasses import dataclass
from typing import Any, Final

from scheduling.manifest import Fields, MistakeReason
from scheduling.manifest.fields import suggestion
from scheduling.manifest.syntax import dns_subdomain, qualified_name
from scheduling.model.quantity import format_amount

MOST_GROUPS: Final = 16
_MOST_RESOURCES: Final = 64
_MOST_FLAVORS: Final = 64
_MOST_PER_QUEUE: Final = 256
_MOST_CELLS: Final = 512


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """One cell, in base units; no limit is None."""

    flavor: str
    resource: str
    nominal_quota: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceGroupSpec:
    """Resources that get one flavor together. A covered resource without a cell in a flavor is not limited there."""

    covered_resources: tuple[str, ...]
    flavors: tuple[str, ...]
    quotas: tuple[QuotaSpec, ...]


def read_resource_groups(
    spec: Fields, *, in_cohort: bool, lending_within_nominal: bool
) -> tuple[ResourceGroupSpec, ...]:
    """Read `resourceGroups`.

    Two things that Kueue refuses are taken with a warning: a flavor that leaves out a covered resource (not limited
    there), and limits of something that is in no cohort (no effect).
    """
    reader = _GroupReader(in_cohort, lending_within_nominal)
    groups = tuple(reader.read(item) for item in spec.items("resourceGroups", most=MOST_GROUPS))
    reader.check_totals(spec)
    return groups


class _GroupReader:
    """Reads the groups of one object: a resource and a flavor may be in one group only."""

    def __init__(self, in_cohort: bool, lending_within_nominal: bool) -> None:
        self._in_cohort = in_cohort
        self._lending_within_nominal = lending_within_nominal
        self._resources: set[str] = set()
        self._flavors: set[str] = set()

    def read(self, item: Fields) -> ResourceGroupSpec:
        covered = item.texts("coveredResources", least=1, most=_MOST_RESOURCES, syntax=qualified_name)
        for index, resource in enumerate(covered):
            if resource in self._resources:
                path = f"{item.at('coveredResources')}[{index}]"
                rule = "is covered by another resource group already"
                item.report.error(path, resource, rule, "Keep it in one group.", MistakeReason.DUPLICATE)
        self._resources.update(covered)
        flavors: list[str] = []
        quotas: list[QuotaSpec] = []
        for flavor in item.items("flavors", least=1, most=_MOST_FLAVORS):
            name = self._read_flavor_name(flavor)
            flavors.append(name)
            quotas += self._read_cells(flavor, name, covered)
            flavor.close()
        if len(quotas) > _MOST_CELLS:
            item.error("flavors", f"must have at most {_MOST_CELLS} quotas in all", "", MistakeReason.TOO_MANY)
        item.close()
        return ResourceGroupSpec(tuple(covered), tuple(flavors), tuple(quotas))

    def check_totals(self, spec: Fields) -> None:
        for what, count in (("flavors", len(self._flavors)), ("covered resources", len(self._resources))):
            if count > _MOST_PER_QUEUE:
                rule = f"must have at most {_MOST_PER_QUEUE} {what} in all, has {count}"
                spec.report.error(spec.at("resourceGroups"), count, rule, "", MistakeReason.TOO_MANY)

    def _read_flavor_name(self, flavor: Fields) -> str:
        name = flavor.text("name", required=True, syntax=dns_subdomain)
        if name and name in self._flavors:
            flavor.error("name", "is used already", "Keep a flavor in one group.", MistakeReason.DUPLICATE)
        self._flavors.add(name)
        return name

    def _read_cells(self, flavor: Fields, name: str, covered: list[str]) -> list[QuotaSpec]:
        cells: list[QuotaSpec] = []
        seen: list[str] = []
        for cell in flavor.items("resources", most=_MOST_RESOURCES):
            resource = cell.text("name", required=True)
            self._check_resource(cell, resource, covered, seen)
            seen.append(resource)
            cells.append(self._read_cell(cell, name, resource))
            cell.close()
        left_out = [resource for resource in covered if resource not in seen]
        if left_out:
            flavor.warn(
                "resources",
                f"leaves out {', '.join(left_out)}, which Kueue would refuse: there is no limit on that in this flavor",
            )
        return cells

    def _check_resource(self, cell: Fields, resource: str, covered: list[str], seen: list[str]) -> None:
        if not resource:
            return
        if resource in seen:
            cell.error("name", "is there twice", "Remove one.", MistakeReason.DUPLICATE)
        elif resource not in covered:
            cell.error("name", "must be one of coveredResources", suggestion(resource, covered))
        elif seen and seen[-1] in covered and covered.index(seen[-1]) > covered.index(resource):
            cell.error(
                "name",
                "must stand in the order of coveredResources",
                f"Use the order {', '.join(covered)} in each flavor.",
            )

    def _read_cell(self, cell: Fields, flavor: str, resource: str) -> QuotaSpec:
        cell.require("nominalQuota", "Add it; 0 gives no quota of its own.")
        nominal = cell.amount("nominalQuota", resource) or 0
        borrowing = cell.amount("borrowingLimit", resource)
        lending = cell.amount("lendingLimit", resource)
        if self._lending_within_nominal and lending is not None and lending > nominal:
            cell.error("lendingLimit", "must be at most nominalQuota", "One can't lend what one does not have.")
        if not self._in_cohort:
            for key, limit in (("borrowingLimit", borrowing), ("lendingLimit", lending)):
                if limit is not None:
                    cell.warn(key, "has no effect without a cohort; Kueue would refuse it")
        return QuotaSpec(flavor, resource, nominal, borrowing, lending)


def write_resource_groups(groups: tuple[ResourceGroupSpec, ...]) -> list[dict[str, Any]]:
    """`resourceGroups` of a manifest; amounts as canonical quantities."""
    return [
        {
            "coveredResources": list(group.covered_resources),
            "flavors": [
                {"name": flavor, "resources": [_write_cell(cell) for cell in group.quotas if cell.flavor == flavor]}
                for flavor in group.flavors
            ],
        }
        for group in groups
    ]


def _write_cell(cell: QuotaSpec) -> dict[str, str]:
    written = {"name": cell.resource, "nominalQuota": format_amount(cell.resource, cell.nominal_quota)}
    if cell.borrowing_limit is not None:
        written["borrowingLimit"] = format_amount(cell.resource, cell.borrowing_limit)
    if cell.lending_limit is not None:
        written["lendingLimit"] = format_amount(cell.resource, cell.lending_limit)
    return written
