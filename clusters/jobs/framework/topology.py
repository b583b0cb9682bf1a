"""The topology annotations of a pod template: checked, and read into a pod set's topology request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusters.jobs.framework.errors import FieldErrors, JobError, duplicate, forbidden, invalid, required
from clusters.jobs.framework.go_syntax import BadSyntax, is_unsigned, parse_boolean, parse_int32, parse_json
from clusters.jobs.framework.manifest import JsonObject, annotations_of
from clusters.jobs.framework.syntax import check_label_name
from queues.manifests import kueue_keys as keys

_MAX_CONSTRAINTS: Final = 3
_MODES: Final = (keys.REQUIRED_TOPOLOGY, keys.PREFERRED_TOPOLOGY, keys.UNCONSTRAINED_TOPOLOGY)
_COUNT_RULE: Final = "topology constraints must contain between 1 and 3 entries"
_GROUP_SIZE: Final = 2


@dataclass(frozen=True, slots=True)
class PodLabels:
    """How a kind's pods state their ranks: labels with the index of the pod and of its subgroup, and how many subgroups
    there are."""

    pod_index: str = ""
    subgroup_index: str = ""
    subgroup_count: int | None = None


NO_LABELS: Final = PodLabels()


class BadConstraints(ValueError):
    """The annotation with slice constraints is no list of constraints."""


def _read_constraints(text: str) -> list[JsonObject]:
    try:
        entries = parse_json(text)
    except ValueError as mistake:
        raise BadConstraints(str(mistake)) from mistake
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise BadConstraints("must be a list")
    return [_constraint(entry) for entry in entries]


def _constraint(entry: Any) -> JsonObject:
    if entry is None:
        entry = {}
    if not isinstance(entry, dict):
        raise BadConstraints("each entry must be an object")
    topology, size = entry.get("topology") or "", entry.get("size") or 0
    if not isinstance(topology, str) or isinstance(size, bool) or not isinstance(size, int) or abs(size) >= 2**31:
        raise BadConstraints("each entry must have a topology (a string) and a size (an integer)")
    return {"topology": topology, "size": size}


def topology_request(template: Mapping[str, Any], labels: PodLabels = NO_LABELS) -> JsonObject | None:
    """Return the topology request of a pod set with this template; None if there is none. Raises JobError."""
    annotations = annotations_of(template)
    request = _mode(annotations)
    if request is None:
        sliced = keys.SLICE_TOPOLOGY in annotations and keys.SLICE_SIZE in annotations
        if not (sliced or keys.SLICE_CONSTRAINTS in annotations or labels != NO_LABELS):
            return None
        request = {}
    request |= _slices(annotations)
    request |= {
        key: value
        for key, value in (
            ("podIndexLabel", labels.pod_index or None),
            ("subGroupIndexLabel", labels.subgroup_index or None),
            ("subGroupCount", labels.subgroup_count),
        )
        if value is not None
    }
    if keys.POD_SET_GROUP in annotations and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = annotations[keys.POD_SET_GROUP]
    return request


def _mode(annotations: Mapping[str, str]) -> JsonObject | None:
    if keys.REQUIRED_TOPOLOGY in annotations:
        return {"required": annotations[keys.REQUIRED_TOPOLOGY]}
    if keys.PREFERRED_TOPOLOGY in annotations:
        return {"preferred": annotations[keys.PREFERRED_TOPOLOGY]}
    if keys.UNCONSTRAINED_TOPOLOGY not in annotations:
        return None
    try:
        return {"unconstrained": parse_boolean(annotations[keys.UNCONSTRAINED_TOPOLOGY])}
    except BadSyntax as mistake:
        raise JobError(str(mistake)) from mistake


def _slices(annotations: Mapping[str, str]) -> JsonObject:
    if keys.SLICE_CONSTRAINTS in annotations:
        try:
            constraints = _read_constraints(annotations[keys.SLICE_CONSTRAINTS])
        except BadConstraints as mistake:
            raise JobError(f"failed to parse multi-layer topology constraints annotation: {mistake}") from mistake
        if not 1 <= len(constraints) <= _MAX_CONSTRAINTS:
            raise JobError(f"{_COUNT_RULE}: got {len(constraints)}")
        return {"podsetSliceRequiredTopologyConstraints": constraints}
    if keys.SLICE_TOPOLOGY not in annotations or keys.SLICE_SIZE not in annotations:
        return {}
    try:
        size = parse_int32(annotations[keys.SLICE_SIZE])
    except BadSyntax as mistake:
        raise JobError(str(mistake)) from mistake
    return {"podSetSliceRequiredTopology": annotations[keys.SLICE_TOPOLOGY], "podSetSliceSize": size}


def check_topology(path: str, template: Mapping[str, Any]) -> FieldErrors:
    """Check the annotations of one template; `path` is the path of its metadata."""
    annotations, place = annotations_of(template), f"{path}.annotations"
    errors: FieldErrors = []
    if sum(mode in annotations for mode in _MODES) > 1:
        named = ", ".join(f'"{mode}"' for mode in _MODES)
        errors.append(invalid(place, "", f"must not contain more than one topology annotation: [{named}]"))
    for key in (keys.REQUIRED_TOPOLOGY, keys.PREFERRED_TOPOLOGY, keys.SLICE_TOPOLOGY):
        if key in annotations:
            errors += check_label_name(f"{place}[{key}]", annotations[key])
    return [
        *errors,
        *_check_group_name(place, annotations),
        *_check_unconstrained(place, annotations),
        *_check_slice_size(place, annotations),
        *_check_constraints(place, annotations),
    ]


def _check_group_name(place: str, annotations: Mapping[str, str]) -> FieldErrors:
    if keys.POD_SET_GROUP not in annotations:
        return []
    path, name = f"{place}[{keys.POD_SET_GROUP}]", annotations[keys.POD_SET_GROUP]
    errors = [invalid(path, name, "must not be a number")] if is_unsigned(name) else []
    errors += [
        forbidden(path, f"may not be set when '{key}' is specified")
        for key in (keys.SLICE_SIZE, keys.SLICE_TOPOLOGY)
        if key in annotations
    ]
    if keys.PREFERRED_TOPOLOGY not in annotations and keys.REQUIRED_TOPOLOGY not in annotations:
        modes = f"neither '{keys.PREFERRED_TOPOLOGY}' nor '{keys.REQUIRED_TOPOLOGY}'"
        errors.append(forbidden(path, f"may not be set when {modes} is specified"))
    return errors


def _check_unconstrained(place: str, annotations: Mapping[str, str]) -> FieldErrors:
    text = annotations.get(keys.UNCONSTRAINED_TOPOLOGY)
    if text is None:
        return []
    try:
        parse_boolean(text)
    except BadSyntax:
        return [invalid(f"{place}[{keys.UNCONSTRAINED_TOPOLOGY}]", text, "must be a boolean value")]
    return []


def _check_slice_size(place: str, annotations: Mapping[str, str]) -> FieldErrors:
    path, text = f"{place}[{keys.SLICE_SIZE}]", annotations.get(keys.SLICE_SIZE)
    if text is None:
        if keys.SLICE_TOPOLOGY in annotations:
            return [required(path, f"must be set when '{keys.SLICE_TOPOLOGY}' is specified")]
        return []
    errors: FieldErrors = []
    try:
        if parse_int32(text) < 1:
            errors.append(invalid(path, text, "must be greater than or equal to 1"))
    except BadSyntax:
        errors.append(invalid(path, text, "must be a numeric value"))
    if keys.SLICE_TOPOLOGY not in annotations:
        errors.append(forbidden(path, f"may not be set when '{keys.SLICE_TOPOLOGY}' is not specified"))
    return errors


def _check_constraints(place: str, annotations: Mapping[str, str]) -> FieldErrors:
    text = annotations.get(keys.SLICE_CONSTRAINTS)
    if text is None:
        return []
    path = f"{place}[{keys.SLICE_CONSTRAINTS}]"
    errors = [
        forbidden(path, f"may not be set when '{key}' is specified")
        for key in (keys.SLICE_TOPOLOGY, keys.SLICE_SIZE)
        if key in annotations
    ]
    if keys.POD_SET_GROUP in annotations:
        rule = f"may not be set when '{keys.SLICE_CONSTRAINTS}' is specified"
        errors.append(forbidden(f"{place}[{keys.POD_SET_GROUP}]", rule))
    try:
        constraints = _read_constraints(text)
    except BadConstraints as mistake:
        return [*errors, invalid(path, text, f"must be a valid JSON array: {mistake}")]
    if not 1 <= len(constraints) <= _MAX_CONSTRAINTS:
        return [*errors, invalid(path, text, _COUNT_RULE)]
    return [*errors, *_check_layers(path, constraints)]


def _check_layers(path: str, constraints: Sequence[JsonObject]) -> FieldErrors:
    errors: FieldErrors = []
    seen: dict[str, int] = {}
    for index, constraint in enumerate(constraints):
        topology, size = constraint["topology"], constraint["size"]
        errors += check_label_name(f"{path}[{index}].topology", topology)
        if size < 1:
            errors.append(invalid(f"{path}[{index}].size", size, "must be greater than or equal to 1"))
        if topology in seen:
            value = f"{topology} (also at index {seen[topology]})"
            errors.append(duplicate(f"{path}[{index}].topology", value))
        seen.setdefault(topology, index)
        parent = constraints[index - 1]["size"] if index else 0
        if index and size > 0 and parent % size != 0:
            rule = f"must evenly divide the parent layer size {parent}"
            errors.append(invalid(f"{path}[{index}].size", size, rule))
    return errors


def check_slice_bound(path: str, template: Mapping[str, Any], count: int) -> FieldErrors:
    """Check that a slice is not larger than its pod set."""
    annotations, place = annotations_of(template), f"{path}.annotations"
    rule = f"must not be greater than pod set count {count}"
    errors: FieldErrors = []
    text = annotations.get(keys.SLICE_SIZE)
    if text is not None:
        try:
            if parse_int32(text) > count:
                errors.append(invalid(f"{place}[{keys.SLICE_SIZE}]", text, rule))
        except BadSyntax:
            return [invalid(f"{place}[{keys.SLICE_SIZE}]", text, "must be a numeric value")]
    try:
        constraints = _read_constraints(annotations.get(keys.SLICE_CONSTRAINTS, "[]"))
    except BadConstraints:
        return errors  # the annotation itself is reported elsewhere
    if constraints and constraints[0]["size"] > count:
        errors.append(invalid(f"{place}[{keys.SLICE_CONSTRAINTS}]", constraints[0]["size"], rule))
    return errors


def check_groups(pod_sets: Sequence[JsonObject], paths: Mapping[str, str]) -> FieldErrors:
    """Check that pod sets that are placed together come in pairs. `paths` has each pod set's template metadata
    by name."""
    groups: dict[str, list[JsonObject]] = {}
    for pod_set in pod_sets:
        name = (pod_set.get("topologyRequest") or {}).get("podSetGroupName")
        if name is not None:
            groups.setdefault(name, []).append(pod_set)
    return [error for name, members in groups.items() for error in _check_group(name, members, paths)]


def _check_group(name: str, members: Sequence[JsonObject], paths: Mapping[str, str]) -> FieldErrors:
    places = [f"{paths[pod_set['name']]}.annotations" for pod_set in members]
    fields = [f"{place}[{keys.POD_SET_GROUP}]" for place in places]
    if len(members) != _GROUP_SIZE:
        rule = f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"
        return [invalid(field, name, rule) for field in fields]
    errors: FieldErrors = []
    first, second = members
    if first["count"] != 1 and second["count"] != 1:
        counts = f"{first['count']} replica(s) and {second['count']} replica(s)"
        rule = f"can only define groups where at least one pod set has only 1 replica, got: {counts} in the group"
        errors += [invalid(field, name, rule) for field in fields]
    if _levels(first) != _levels(second):
        rule = f"must specify '{keys.REQUIRED_TOPOLOGY}' or '{keys.PREFERRED_TOPOLOGY}' topology consistent with "
        for place, other in (places, reversed(places)):
            errors.append(invalid(place, "", f"{rule}'{other}' in group '{name}'"))
    return errors


def _levels(pod_set: JsonObject) -> tuple[str | None, str | None]:
    return pod_set["topologyRequest"].get("required"), pod_set["topologyRequest"].get("preferred")
