"""Single quotas, changed on the locked row, so that no edit undoes another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from accounts.models import Cluster
from accounts.services.precondition import Precondition
from foundation.exceptions import ManifestErrors, NotFound
from kinds.declaration import Kind
from queues.services.configuration import apply_json, objects
from scheduling.manifest import FieldReader, LocatedError, ValidationReport
from scheduling.manifest.field_reader import suggestion

_AMOUNTS: Final = ("nominal_quota", "borrowing_limit", "lending_limit")
_GROUPS: Final = "resource_groups"


def change_cells(
    cluster: Cluster,
    kind: Kind,
    name: str,
    flavor: str,
    body: Mapping[str, Any],
    *,
    actor: str,
    precondition: Precondition | None = None,
) -> Any:
    """Change the amounts that `body` names, `{"resources": {resource: {amount: quantity}}}`; return the object's row.
    Raises as `apply_json` does, with paths that start at the body, and `NotFound` if the object lacks the flavor."""
    with transaction.atomic():
        row = objects(cluster, kind).filter(name=name).select_for_update().first()
        if row is None:
            raise NotFound(f"There is no {kind.name} {name} in cluster {cluster.name}.")
        groups = kind.to_json(row)[_GROUPS]
        places = _update(_cells(kind, row, groups, flavor), body)
        try:
            apply_json(cluster, kind, {_GROUPS: groups}, name=name, actor=actor, merge=True, precondition=precondition)
        except ManifestErrors as mistakes:
            raise ManifestErrors([_relocated(error, places) for error in mistakes.errors]) from mistakes
        return objects(cluster, kind).get(pk=row.pk)


def flavor_cells(kind: Kind, row: Any, flavor: str) -> dict[str, dict[str, Any]]:
    """Return the quotas of the row in a flavor, by resource, in the form of our JSON. Raises `NotFound`."""
    cells = _cells(kind, row, kind.to_json(row)[_GROUPS], flavor)
    return {cell["name"]: {key: cell[key] for key in _AMOUNTS} for _, cell in cells}


def _cells(kind: Kind, row: Any, groups: list[dict[str, Any]], flavor: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the cells of a flavor, each with its path in the object."""
    for group_index, group in enumerate(groups):
        for flavor_index, listed in enumerate(group["flavors"]):
            if listed["name"] == flavor:
                path = f"{_GROUPS}[{group_index}].flavors[{flavor_index}].resources"
                return [(f"{path}[{index}]", cell) for index, cell in enumerate(listed["resources"])]
    raise NotFound(f"{kind.name} {row.name} has no quota in flavor {flavor}.")


def _update(cells: list[tuple[str, dict[str, Any]]], body: Mapping[str, Any]) -> dict[str, str]:
    """Write the body's amounts into the cells; return the path of each cell in the body."""
    report = ValidationReport()
    top = FieldReader(report, "", body)
    resources = top.required_fields("resources")
    known = {cell["name"]: (path, cell) for path, cell in cells}
    places: dict[str, str] = {}
    for resource in resources.content:
        if resource not in known:
            resources.error(resource, "has no quota in this flavor", suggestion(resource, known))
            continue
        change = resources.fields(resource)
        if change is None:
            continue
        path, cell = known[resource]
        places[path] = change.path
        change.ignore(*_AMOUNTS)
        change.close()
        cell.update(change.content)
    top.close()
    if report.errors:
        raise ManifestErrors(report.errors)
    return places


def _relocated(error: LocatedError, places: Mapping[str, str]) -> LocatedError:
    for path, place in places.items():
        if error.path.startswith(f"{path}."):
            return replace(error, path=f"{place}{error.path.removeprefix(path)}")
    return error
