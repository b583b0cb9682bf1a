"""Quotas that follow the nodes of their flavor. Kueue has no field for them, so a manifest states them in an
annotation, and nominalQuota is the last computed value.
"""

import json
import re
from dataclasses import replace
from typing import Any, Final

from kinds import openapi
from kinds.declaration import KindSpec, Reading
from kinds.field_types import AnnotationType
from queues.kinds.annotated_json import read_json_annotation
from queues.kinds.quotas import QuotaSpec, ResourceGroupSpec
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion
from scheduling.manifest.syntax import dns_subdomain, qualified_name
from scheduling.model.quantity import format_amount

ANNOTATION: Final = "kueueweb.io/node-quotas"

_FIELD: Final = "node_quotas"
_MAX: Final = 512
_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)%")

NodeQuotaList = list[dict[str, str]]
"""[{flavor, resource, share, headroom}]: the cells that follow the nodes."""


class NodeQuotas(AnnotationType):
    """The cells that follow the nodes: the share of the flavor's free capacity, and the headroom."""

    @property
    def default(self) -> NodeQuotaList:
        return []

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> NodeQuotaList:
        return [_read_cell(item) for item in holder.items(key, max_items=_MAX)]

    def read_annotation(self, text: str) -> NodeQuotaList:
        """Read the value of the annotation, which is JSON. Raises ValueError with its first mistake."""
        shape = "a JSON list of {flavor, resource, share, headroom}"
        return read_json_annotation(
            text, shape, lambda holder, key: [_read_cell(item) for item in holder.items(key, max_items=_MAX)]
        )

    def schema(self) -> openapi.Schema:
        return openapi.text()

    def write_annotation(self, value: NodeQuotaList) -> str:
        return json.dumps(value)


def _read_cell(item: FieldReader) -> dict[str, str]:
    flavor = item.text("flavor", required=True, syntax=dns_subdomain)
    resource = item.text("resource", required=True, syntax=qualified_name)
    share = item.text("share", required=True)
    if share:
        match = _SHARE.fullmatch(share)
        if match is None or not 0 < float(match[1]) <= 100:
            item.error("share", 'must be a percentage above 0% and up to 100%, like "50%" or "33.33%"')
    headroom = item.amount("headroom", resource) if resource else None
    item.ignore("headroom")
    item.close()
    return {"flavor": flavor, "resource": resource, "share": share, "headroom": format_amount(resource, headroom or 0)}


def check_node_quotas(reading: Reading, *, lending_within_nominal: bool) -> None:
    """Check that each entry names a quota of this object, and no quota twice. Where Kueue keeps lendingLimit within
    nominalQuota, that quota must have no lendingLimit."""
    cells = {(cell.flavor, cell.resource): cell for group in _groups(reading.values) for cell in group.quotas}
    seen: set[tuple[str, str]] = set()
    for stated in reading.values[_FIELD]:
        key = (stated["flavor"], stated["resource"])
        name = "/".join(key)
        if key in seen:
            reading.error(_FIELD, f"Duplicate value: {name}", "Remove one.", MistakeReason.DUPLICATE)
        elif key not in cells:
            known = ["/".join(other) for other in cells]
            reading.error(_FIELD, f"{name} has no quota in resourceGroups", suggestion(name, known))
        elif lending_within_nominal and cells[key].lending_limit is not None:
            rule = f"{name} must have no lendingLimit, because nominalQuota may fall below it"
            reading.error(_FIELD, rule, "Remove lendingLimit, or the entry.", MistakeReason.FORBIDDEN)
        seen.add(key)


def keep_followed(before: KindSpec, wanted: KindSpec) -> KindSpec:
    """Return the spec with the last computed quotas instead of the author's, in cells that followed the nodes before
    and still do, so that applying a file twice changes nothing."""
    following = _keys(before) & _keys(wanted)
    if not following:
        return wanted
    amounts = {
        (cell.flavor, cell.resource): cell.nominal_quota
        for group in _groups(before.values)
        for cell in group.quotas
        if (cell.flavor, cell.resource) in following
    }
    groups = tuple(
        replace(group, quotas=tuple(_kept(cell, amounts) for cell in group.quotas)) for group in _groups(wanted.values)
    )
    return replace(wanted, values={**wanted.values, "resource_groups": groups})


def _kept(cell: QuotaSpec, amounts: dict[tuple[str, str], int]) -> QuotaSpec:
    amount = amounts.get((cell.flavor, cell.resource), cell.nominal_quota)
    return cell if amount == cell.nominal_quota else replace(cell, nominal_quota=amount)


def _keys(spec: KindSpec) -> set[tuple[str, str]]:
    return {(stated["flavor"], stated["resource"]) for stated in spec.values.get(_FIELD) or ()}


def _groups(values: Any) -> tuple[ResourceGroupSpec, ...]:
    found: tuple[ResourceGroupSpec, ...] = values.get("resource_groups") or ()
    return found
