"""Pod sets of a workload: built from a kind's templates, compared, and the requests of one of their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.manifest import JsonObject, copied
from clusters.jobs.framework.topology import NO_LABELS, PodLabels, topology_request
from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.pod import PodTemplate
from scheduling.model.pod_defaults import PodDefaults, RuntimeClass
from scheduling.model.quantity import InvalidQuantity, parse_quantity, to_amount
from scheduling.model.workload import PodSet

MAIN: Final = "main"
_QUANTITIES: Final = ("requests", "limits")


def make_pod_set(
    name: str,
    count: int,
    template: Mapping[str, Any],
    labels: PodLabels = NO_LABELS,
    *,
    minimum: int | None = None,
    annotated: Mapping[str, Any] | None = None,
) -> JsonObject:
    """Build a pod set with a copy of the template; `annotated` is the object that states the topology if the template
    does not. Raises JobError if the topology cannot be read."""
    request = topology_request(template if annotated is None else annotated, labels)
    pod_set: JsonObject = {"name": name.lower(), "count": count, "template": copied(dict(template))}
    for container in _containers(pod_set["template"]):
        if container.get("env"):
            container["env"] = _last_of_each_name(container["env"])
    if minimum is not None:
        pod_set["minCount"] = minimum
    if request is not None:
        pod_set["topologyRequest"] = request
    return pod_set


def _containers(template: Mapping[str, Any]) -> Iterable[JsonObject]:
    spec = template.get("spec") or {}
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _last_of_each_name(variables: Sequence[JsonObject]) -> list[JsonObject]:
    """Keep only the last value of repeated environment variables, in the place of the first: a server-side apply of the
    workload would refuse a duplicate name.
    """
    return list({variable.get("name", ""): variable for variable in variables}.values())


def same_pods(one: Sequence[JsonObject], other: Sequence[JsonObject], *, tolerations: bool) -> bool:
    """Return whether two lists of pod sets would create the same pods, as far as a workload depends on them."""
    compared = ("containers", "initContainers", "tolerations") if tolerations else ("containers", "initContainers")
    return len(one) == len(other) and all(_alike(mine, its, compared) for mine, its in zip(one, other, strict=True))


def _alike(mine: JsonObject, its: JsonObject, compared: Sequence[str]) -> bool:
    """Return whether two pod sets have the same size and, in these fields of their pods' spec, the same values."""
    if (mine["count"], mine.get("minCount")) != (its["count"], its.get("minCount")):
        return False
    my_spec, its_spec = ((each.get("template") or {}).get("spec") or {} for each in (mine, its))
    pairs = [(my_spec.get(field), its_spec.get(field)) for field in compared]
    return all(one == other or canonical(one) == canonical(other) for one, other in pairs)


def canonical(value: Any, key: str = "") -> Any:
    """Return a value in which absent, null and empty are equal, and quantities are amounts."""
    if isinstance(value, Mapping):
        amounts = key in _QUANTITIES
        items = {name: _amount(item) if amounts else canonical(item, name) for name, item in value.items()}
        return {name: item for name, item in items.items() if item is not None} or None
    if isinstance(value, list):
        return [canonical(item) for item in value] or None
    return None if value == "" else value


def _amount(text: Any) -> Any:
    try:
        return parse_quantity(text)
    except InvalidQuantity:
        return text


def counts_of(pod_sets: Iterable[JsonObject]) -> dict[str, int]:
    return {pod_set["name"]: pod_set["count"] for pod_set in pod_sets}


def pod_defaults(limit_ranges: Iterable[JsonObject], runtime_classes: Iterable[JsonObject]) -> PodDefaults:
    """Return the defaults that the cluster adds to pods, from its manifests."""
    defaults = PodDefaults()
    for manifest in limit_ranges:
        metadata = manifest["metadata"]
        items = tuple(LimitRangeItem.from_manifest(item) for item in manifest["spec"].get("limits") or ())
        defaults.set_limit_range(LimitRange(metadata.get("namespace", ""), metadata["name"], items))
    for manifest in runtime_classes:
        overhead = (manifest.get("overhead") or {}).get("podFixed") or {}
        defaults.set_runtime_class(RuntimeClass(manifest["metadata"]["name"], overhead))
    return defaults


def requests_per_pod(namespace: str, pod_set: JsonObject, defaults: PodDefaults) -> dict[str, int]:
    """Return the requests of one pod against quota, in base units. Raises JobError for an invalid quantity."""
    try:
        template = PodTemplate.from_manifest(pod_set["template"])
        completed = defaults.completed(namespace, PodSet(pod_set["name"], pod_set["count"], template))
    except InvalidQuantity as mistake:
        raise JobError(str(mistake)) from mistake
    effective = completed.template.effective_requests()
    return {name: to_amount(name, nanos) for name, nanos in effective.items()}
