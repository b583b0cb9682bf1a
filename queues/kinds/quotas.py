"""`resourceGroups` of ClusterQueues and Cohorts: the resources, their flavors, and the amounts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Reading
from kinds.field_types import FieldType
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion
from scheduling.manifest.syntax import dns_subdomain, qualified_name
from scheduling.model.cohort import FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.quantity import format_amount, parse_amount

MAX_GROUPS: Final = 16
_MAX_RESOURCES: Final = 64
_MAX_FLAVORS: Final = 64
_MAX_PER_QUEUE: Final = 256
_MAX_CELLS: Final = 512


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """One cell, in base units; no limit is None.

    `spellings` has the author's spelling of amounts by key, if it is not canonical: `800Gi` of a device's memory is
    kept. The spelling does not affect the amount.
    """

    flavor: str
    resource: str
    nominal_quota: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    spellings: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ResourceGroupSpec:
    """Resources that share one flavor. A covered resource without a quota in a flavor is not limited in that flavor."""

    covered_resources: tuple[str, ...]
    flavors: tuple[str, ...]
    quotas: tuple[QuotaSpec, ...]


Naming = Callable[[str], str]


def camel_case(name: str) -> str:
    """Convert a key to Kubernetes' spelling, which is also its spelling here."""
    return name


def snake_case(name: str) -> str:
    """Convert a key to the spelling of our JSON."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


@dataclass(frozen=True)
class ResourceGroups(FieldType):
    """Resource groups; `parent` is the field that puts the object into a cohort."""

    parent: str
    lending_within_nominal: bool

    @property
    def default(self) -> tuple[ResourceGroupSpec, ...]:
        return ()

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> tuple[ResourceGroupSpec, ...]:
        """Read the groups. Two inputs that Kueue refuses are accepted with a warning: a flavor that leaves out a
        covered resource (not limited there), and limits of an object without a cohort (no effect)."""
        naming = snake_case if reading.in_json else camel_case
        reader = _GroupReader(bool(reading.values[self.parent]), self.lending_within_nominal, naming)
        groups = tuple(reader.read(item) for item in holder.items(key, max_items=MAX_GROUPS))
        reader.check_totals(holder, key)
        return groups

    def schema(self) -> openapi.Schema:
        quota = openapi.tree(
            {
                "name": openapi.text("The resource, one of coveredResources."),
                "nominalQuota": openapi.quantity("The amount that workloads of this queue may use at any time."),
                "borrowingLimit": openapi.quantity("The most that may be borrowed from the cohort; empty: no limit."),
                "lendingLimit": openapi.quantity("The most that may be lent to the cohort; empty: the nominal quota."),
            },
            ("name", "nominalQuota"),
        )
        flavor = openapi.tree(
            {
                "name": openapi.text("The ResourceFlavor."),
                "resources": openapi.listing(quota, "The quota of each resource in the flavor."),
            },
            ("name", "resources"),
        )
        group = openapi.tree(
            {
                "coveredResources": openapi.listing(openapi.text(), "The resources that use the same flavor."),
                "flavors": openapi.listing(flavor, "The flavors and their quotas, in the order of trial."),
            },
            ("coveredResources", "flavors"),
        )
        return openapi.listing(group)

    def of_row(self, row: Any, column: str) -> tuple[ResourceGroupSpec, ...]:
        """Return the groups of a row whose `resource_groups__quotas` are prefetched."""
        return tuple(
            ResourceGroupSpec(
                tuple(group.covered_resources),
                tuple(group.flavors),
                tuple(
                    QuotaSpec(
                        cell.flavor,
                        cell.resource,
                        cell.nominal_quota,
                        cell.borrowing_limit,
                        cell.lending_limit,
                        cell.spellings,
                    )
                    for cell in group.quotas.all()
                ),
            )
            for group in row.resource_groups.all()
        )

    def write(self, value: tuple[ResourceGroupSpec, ...]) -> list[dict[str, Any]]:
        return [_write_group(group, camel_case, with_none=False) for group in value]

    def to_json(self, value: tuple[ResourceGroupSpec, ...]) -> list[dict[str, Any]]:
        return [_write_group(group, snake_case, with_none=True) for group in value]

    def core(self, value: tuple[ResourceGroupSpec, ...]) -> tuple[ResourceGroup, ...]:
        return tuple(
            ResourceGroup(
                group.covered_resources,
                tuple(
                    FlavorQuotas(
                        flavor,
                        {
                            cell.resource: ResourceQuota(cell.nominal_quota, cell.borrowing_limit, cell.lending_limit)
                            for cell in cells
                        },
                    )
                    for flavor, cells in _by_flavor(group)
                ),
            )
            for group in value
        )


def _by_flavor(group: ResourceGroupSpec) -> list[tuple[str, list[QuotaSpec]]]:
    return [(flavor, [cell for cell in group.quotas if cell.flavor == flavor]) for flavor in group.flavors]


class _GroupReader:
    """Reads the groups of one object: a resource and a flavor may be in one group only."""

    def __init__(self, in_cohort: bool, lending_within_nominal: bool, naming: Naming) -> None:
        self._named = naming
        self._in_cohort = in_cohort
        self._lending_within_nominal = lending_within_nominal
        self._resources: set[str] = set()
        self._flavors: set[str] = set()

    def read(self, item: FieldReader) -> ResourceGroupSpec:
        covered = item.texts(
            self._named("coveredResources"), min_items=1, max_items=_MAX_RESOURCES, syntax=qualified_name
        )
        for index, resource in enumerate(covered):
            if resource in self._resources:
                path = f"{item.at(self._named('coveredResources'))}[{index}]"
                rule = "is already covered by another resource group"
                item.report.error(path, resource, rule, "Keep it in one group.", MistakeReason.DUPLICATE)
        self._resources.update(covered)
        flavors: list[str] = []
        quotas: list[QuotaSpec] = []
        for flavor in item.items("flavors", min_items=1, max_items=_MAX_FLAVORS):
            name = self._read_flavor_name(flavor)
            flavors.append(name)
            quotas += self._read_cells(flavor, name, covered)
            flavor.close()
        if len(quotas) > _MAX_CELLS:
            item.error("flavors", f"must have at most {_MAX_CELLS} quotas in all", "", MistakeReason.TOO_MANY)
        item.close()
        return ResourceGroupSpec(tuple(covered), tuple(flavors), tuple(quotas))

    def check_totals(self, holder: FieldReader, key: str) -> None:
        for what, count in (("flavors", len(self._flavors)), ("covered resources", len(self._resources))):
            if count > _MAX_PER_QUEUE:
                rule = f"must have at most {_MAX_PER_QUEUE} {what} in all, has {count}"
                holder.report.error(holder.at(key), count, rule, "", MistakeReason.TOO_MANY)

    def _read_flavor_name(self, flavor: FieldReader) -> str:
        name = flavor.text("name", required=True, syntax=dns_subdomain)
        if name and name in self._flavors:
            flavor.error("name", "is used already", "Keep a flavor in one group.", MistakeReason.DUPLICATE)
        self._flavors.add(name)
        return name

    def _read_cells(self, flavor: FieldReader, name: str, covered: list[str]) -> list[QuotaSpec]:
        cells: list[QuotaSpec] = []
        seen: list[str] = []
        for cell in flavor.items("resources", max_items=_MAX_RESOURCES):
            resource = cell.text("name", required=True)
            self._check_resource(cell, resource, covered, seen)
            seen.append(resource)
            cells.append(self._read_cell(cell, name, resource))
            cell.close()
        left_out = [resource for resource in covered if resource not in seen]
        if left_out:
            flavor.warn(
                "resources",
                f"leaves out {', '.join(left_out)}, which Kueue would reject: these are unlimited in this flavor",
            )
        return cells

    def _check_resource(self, cell: FieldReader, resource: str, covered: list[str], seen: list[str]) -> None:
        if not resource:
            return
        if resource in seen:
            cell.error("name", "Duplicate value", "Remove one.", MistakeReason.DUPLICATE)
        elif resource not in covered:
            cell.error("name", "must be one of coveredResources", suggestion(resource, covered))
        elif seen and seen[-1] in covered and covered.index(seen[-1]) > covered.index(resource):
            cell.error(
                "name",
                "must be in the order of coveredResources",
                f"Use the order {', '.join(covered)} in each flavor.",
            )

    def _read_cell(self, cell: FieldReader, flavor: str, resource: str) -> QuotaSpec:
        cell.require(self._named("nominalQuota"), "Add it; 0 means that the queue has no quota itself.")
        nominal = cell.amount(self._named("nominalQuota"), resource) or 0
        borrowing = cell.amount(self._named("borrowingLimit"), resource)
        lending = cell.amount(self._named("lendingLimit"), resource)
        if self._lending_within_nominal and lending is not None and lending > nominal:
            cell.error(
                self._named("lendingLimit"), "must be at most nominalQuota", "Lower lendingLimit or raise nominalQuota."
            )
        if not self._in_cohort:
            for key, limit in (("borrowingLimit", borrowing), ("lendingLimit", lending)):
                if limit is not None:
                    cell.warn(self._named(key), "has no effect without a cohort, and Kueue rejects it")
        amounts = {"nominalQuota": nominal, "borrowingLimit": borrowing, "lendingLimit": lending}
        texts = {key: str(cell.content.get(self._named(key))) for key, amount in amounts.items() if amount is not None}
        spellings = {key: text for key, text in texts.items() if text != format_amount(resource, amounts[key] or 0)}
        return QuotaSpec(flavor, resource, nominal, borrowing, lending, spellings)


def _write_group(group: ResourceGroupSpec, naming: Naming, *, with_none: bool) -> dict[str, Any]:
    return {
        naming("coveredResources"): list(group.covered_resources),
        "flavors": [
            {"name": flavor, "resources": [_write_cell(cell, naming, with_none) for cell in cells]}
            for flavor, cells in _by_flavor(group)
        ],
    }


def _write_cell(cell: QuotaSpec, naming: Naming, with_none: bool) -> dict[str, str | None]:
    """Amounts in the author's spelling, or as canonical quantities."""
    amounts = {
        "nominalQuota": cell.nominal_quota,
        "borrowingLimit": cell.borrowing_limit,
        "lendingLimit": cell.lending_limit,
    }
    written: dict[str, str | None] = {"name": cell.resource}
    for key, amount in amounts.items():
        if amount is not None or with_none:
            written[naming(key)] = None if amount is None else _spelt(cell, key, amount)
    return written


def _spelt(cell: QuotaSpec, key: str, amount: int) -> str:
    text = cell.spellings.get(key)
    return text if text and parse_amount(cell.resource, text) == amount else format_amount(cell.resource, amount)


_MAX_ALPHA: Final = 16


@dataclass(slots=True)
class _AlphaGroup:
    flavors: tuple[str, ...]
    resources: list[str]
    cells: dict[tuple[str, str], QuotaSpec]


@dataclass(frozen=True)
class AlphaResources(ResourceGroups):
    """`spec.resources` of v1alpha2: flavors per resource, before there were resource groups."""

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> tuple[ResourceGroupSpec, ...]:
        """Resource groups from `resources[].flavors[].quota {min, max}`.

        Resources with the same flavors in the same order form one group, as in Kueue's conversion; `min` is the nominal
        quota and `max` - `min` the borrowing limit. A quota without `min` counts from 0, with a warning.
        """
        return _read_alpha(holder, key, in_cohort=bool(reading.values[self.parent]))

    def schema(self) -> openapi.Schema:
        quota = openapi.tree(
            {
                "min": openapi.quantity("The nominal quota."),
                "max": openapi.quantity("The most that may be used with borrowed quota; empty: no limit."),
            }
        )
        quota = {**quota, "description": "The quota of the resource in the flavor."}
        flavor = openapi.tree({"name": openapi.text("The ResourceFlavor."), "quota": quota}, ("name", "quota"))
        flavors = openapi.listing(flavor, "The flavors, in the order in which they are tried.")
        return openapi.listing(openapi.tree({"name": openapi.text("The resource."), "flavors": flavors}, ("name",)))


def _read_alpha(spec: FieldReader, key: str, *, in_cohort: bool) -> tuple[ResourceGroupSpec, ...]:
    groups: list[_AlphaGroup] = []
    for item in spec.items(key, max_items=_MAX_ALPHA):
        resource = item.text("name", required=True, syntax=qualified_name)
        flavors = item.items("flavors", min_items=1, max_items=_MAX_ALPHA)
        cells = [_read_flavor(flavor, resource, in_cohort) for flavor in flavors]
        item.close()
        names = tuple(cell.flavor for cell in cells)
        group = _group_with(groups, names)
        if any(resource in other.resources for other in groups):
            item.error("name", "Duplicate value", "Remove one.", MistakeReason.DUPLICATE)
        elif any(other is not group and set(names) & set(other.flavors) for other in groups):
            item.error("flavors", "uses a flavor of another resource but not all of them", "List the same flavors.")
        group.resources.append(resource)
        group.cells |= {(cell.flavor, resource): cell for cell in cells}
    return tuple(_finished(group) for group in groups)


def _group_with(groups: list[_AlphaGroup], flavors: tuple[str, ...]) -> _AlphaGroup:
    for group in groups:
        if group.flavors == flavors:
            return group
    groups.append(_AlphaGroup(flavors, [], {}))
    return groups[-1]


def _finished(group: _AlphaGroup) -> ResourceGroupSpec:
    cells = tuple(group.cells[flavor, resource] for flavor in group.flavors for resource in group.resources)
    return ResourceGroupSpec(tuple(group.resources), group.flavors, cells)


def _read_flavor(flavor: FieldReader, resource: str, in_cohort: bool) -> QuotaSpec:
    name = flavor.text("name", required=True, syntax=dns_subdomain)
    quota = flavor.required_fields("quota")
    least = quota.amount("min", resource)
    most = quota.amount("max", resource)
    quota.close()
    flavor.close()
    if least is None:
        quota.warn("min", "is missing, which Kueue would reject: 0 is used")
        least = 0
    if most is None:
        return QuotaSpec(name, resource, least)
    if most < least:
        quota.error("max", "must be at least min")
        return QuotaSpec(name, resource, least)
    if not in_cohort:
        quota.warn("max", "has no effect without a cohort to borrow from")
    return QuotaSpec(name, resource, least, borrowing_limit=most - least)
