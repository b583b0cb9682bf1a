"""Reads `topologyRequest` of a Workload's pod set."""

from collections.abc import Mapping
from typing import Any, Final

from scheduling.manifest import FieldReader, MistakeReason, ValidationReport
from scheduling.manifest.syntax import qualified_name

_MAX_LEVEL: Final = 63
_MAX_INDEX_LABEL: Final = 317
_MAX_GROUP: Final = 256
_MAX_CONSTRAINTS: Final = 3
_LEVELS: Final = ("required", "preferred")


def read_topology_request(pod_set: FieldReader) -> dict[str, Any]:
    """Read `topologyRequest` of a pod set, without omitted fields."""
    request = pod_set.fields("topologyRequest")
    if request is None:
        return {}
    found: dict[str, Any] = {
        "required": request.text("required", max_length=_MAX_LEVEL, syntax=qualified_name),
        "preferred": request.text("preferred", max_length=_MAX_LEVEL, syntax=qualified_name),
        "unconstrained": request.boolean("unconstrained"),
        "podIndexLabel": request.text("podIndexLabel", max_length=_MAX_INDEX_LABEL),
        "subGroupIndexLabel": request.text("subGroupIndexLabel", max_length=_MAX_INDEX_LABEL),
        "subGroupCount": request.optional_integer("subGroupCount"),
        "podSetGroupName": request.text("podSetGroupName", max_length=_MAX_GROUP),
        "podSetSliceRequiredTopology": request.text("podSetSliceRequiredTopology", syntax=qualified_name),
        "podSetSliceSize": request.optional_integer("podSetSliceSize", minimum=1),
        "podsetSliceRequiredTopologyConstraints": _read_constraints(request),
    }
    request.close()
    found = {key: value for key, value in found.items() if value not in (None, "", False, [])}
    _check(request.report, request.path, found)
    return found


def _read_constraints(request: FieldReader) -> list[dict[str, Any]]:
    constraints = []
    for item in request.items("podsetSliceRequiredTopologyConstraints", max_items=_MAX_CONSTRAINTS):
        topology = item.text("topology", required=True, syntax=qualified_name)
        item.require("size")
        constraints.append({"topology": topology, "size": item.integer("size", 1, minimum=1)})
        item.close()
    return constraints


def _check(report: ValidationReport, path: str, found: Mapping[str, Any]) -> None:
    main = [key for key in (*_LEVELS, "unconstrained") if key in found]
    if len(main) > 1:
        rule = f"must set at most one of required, preferred and unconstrained, sets {' and '.join(main)}"
        report.error(path, None, rule, "Keep one.", MistakeReason.FORBIDDEN)
    slice_level, size = "podSetSliceRequiredTopology" in found, "podSetSliceSize" in found
    if slice_level != size:
        report.error(path, None, "must set both the slice's topology and its size, or neither")
    if "podsetSliceRequiredTopologyConstraints" in found and (slice_level or size):
        rule = "must not set slice constraints together with a single slice topology"
        report.error(path, None, rule, "Keep one form.", MistakeReason.FORBIDDEN)
    if "podSetGroupName" in found and not any(level in found for level in _LEVELS):
        report.error(path, found["podSetGroupName"], "a pod set group needs a required or preferred topology")
