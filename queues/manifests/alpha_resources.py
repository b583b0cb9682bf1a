"""`spec.resources` of v1alpha2 ClusterQueues: flavors per resource, before there were resource groups."""

from dataclasses import dataclass
from typing import Final

from queues.manifests.resource_groups import QuotaSpec, ResourceGroupSpec
from scheduling.manifest import Fields, MistakeReason
from scheduling.manifest.syntax import dns_subdomain, qualified_name

_MOST: Final = 16


@dataclass(slots=True)
class _Group:
    flavors: tuple[str, ...]
    resources: list[str]
    cells: dict[tuple[str, str], QuotaSpec]


def read_alpha_resources(spec: Fields, *, in_cohort: bool) -> tuple[ResourceGroupSpec, ...]:
    """Resource groups from `resources[].flavors[].quota {min, max}`.

    Resources with the same flavors in the same order form one group, as in Kueue's conversion; `min` is the nominal
    quota and `max` - `min` the borrowing limit. A quota without `min` counts from 0, with a warning.
    """
    groups: list[_Group] = []
    for item in spec.items("resources", most=_MOST):
        resource = item.text("name", required=True, syntax=qualified_name)
        cells = [_read_flavor(flavor, resource, in_cohort) for flavor in item.items("flavors", least=1, most=_MOST)]
        item.close()
        names = tuple(cell.flavor for cell in cells)
        group = _group_with(groups, names)
        if any(resource in other.resources for other in groups):
            item.error("name", "is there twice", "Remove one.", MistakeReason.DUPLICATE)
        elif any(other is not group and set(names) & set(other.flavors) for other in groups):
            item.error("flavors", "uses a flavor of another resource but not all of them", "List the same flavors.")
        group.resources.append(resource)
        group.cells |= {(cell.flavor, resource): cell for cell in cells}
    return tuple(_finished(group) for group in groups)


def _group_with(groups: list[_Group], flavors: tuple[str, ...]) -> _Group:
    for group in groups:
        if group.flavors == flavors:
            return group
    groups.append(_Group(flavors, [], {}))
    return groups[-1]


def _finished(group: _Group) -> ResourceGroupSpec:
    cells = tuple(group.cells[flavor, resource] for flavor in group.flavors for resource in group.resources)
    return ResourceGroupSpec(tuple(group.resources), group.flavors, cells)


def _read_flavor(flavor: Fields, resource: str, in_cohort: bool) -> QuotaSpec:
    name = flavor.text("name", required=True, syntax=dns_subdomain)
    quota = flavor.required_fields("quota")
    least = quota.amount("min", resource)
    most = quota.amount("max", resource)
    quota.close()
    flavor.close()
    if least is None:
        quota.warn("min", "is missing, which Kueue would refuse: 0 is taken")
        least = 0
    if most is None:
        return QuotaSpec(name, resource, least)
    if most < least:
        quota.error("max", "must be at least min")
        return QuotaSpec(name, resource, least)
    if not in_cohort:
        quota.warn("max", "has no effect without a cohort: there is nobody to borrow from")
    return QuotaSpec(name, resource, least, borrowing_limit=most - least)
