"""What the claims of a workload's pods are charged, by Kueue's rules; and what Kueue says of those that it refuses.

ResourceClaimTemplates count: devices by their class, as `deviceClassMappings` name them, or a shared counter of
theirs. Extended resources that a class serves count as that class. ResourceClaims by name are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduling.devices.claims.cel import CelError, compile_selector
from scheduling.devices.claims.matching import selects, variables
from scheduling.devices.claims.objects import ClaimSpec, DeviceClass, DeviceObjects, DeviceRequest, PublishedDevice
from scheduling.devices.claims.places import DeviceKind, DevicePlaces
from scheduling.model.configuration import Configuration, CounterSource
from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import NANOS, UNLIMITED
from scheduling.model.workload import PodSet

CLAIMS_BY_NAME: Final = "KueueDRAIntegration feature does not support use of resource claims"
INTEGRATION_OFF: Final = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
_REQUEUED: Final = {CLAIMS_BY_NAME: "DRA resource claims not supported"}
_NATIVE: Final = re.compile(r"[^/]*|(?:.*\.)?kubernetes\.io/.*|requests\..*", re.DOTALL)
"""Resources that are not extended ones."""


class ClaimRefusal(ValueError):
    """Why the claims make a workload inadmissible, in Kueue's words."""

    @property
    def requeued_message(self) -> str:
        """The message of the condition Requeued."""
        return _REQUEUED.get(str(self), str(self))


@dataclass(frozen=True, slots=True)
class ClaimCharge:
    """What one pod's claims add to its requests.

    `quota` are amounts by resource. `replaced` are extended resources that are charged as their class instead.
    `devices` are resources of nodes (`places`); `not_placeable` says why these claims find no place here.
    """

    quota: Mapping[str, int] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    devices: Mapping[str, int] = field(default_factory=dict)
    not_placeable: str = ""


NOTHING: Final = ClaimCharge()


def uses_claims(template: PodTemplate) -> bool:
    """Whether the pods name claims or templates of claims."""
    return bool((template.manifest.get("spec") or {}).get("resourceClaims"))


class ClaimRules:
    """The rules for one state of a cluster's classes, slices, templates and claims."""

    def __init__(self, objects: DeviceObjects, configuration: Configuration) -> None:
        self.objects = objects
        self._configuration = configuration
        self._resource_of = {
            name: mapping.name
            for mapping in reversed(configuration.device_class_mappings)
            for name in mapping.device_class_names
        }
        self._counters: dict[str, list[tuple[str, CounterSource]]] = {}
        for mapping in configuration.device_class_mappings:
            for name in mapping.device_class_names:
                self._counters.setdefault(name, []).extend((mapping.name, each) for each in mapping.counters)
        self._serving = _serving(objects.classes.values())
        kinds = {
            DeviceKind(request.device_class, request.selectors)
            for spec in objects.templates.values()
            for request in spec.requests
            if request.mode == "ExactCount" and not request.admin_access
        }
        self.places = DevicePlaces(objects, kinds | {DeviceKind(each.name) for each in self._serving.values()})
        self._devices = [(device, variables(device)) for pool in objects.pools for device in pool.devices]

    def concerns(self, pod_sets: Sequence[PodSet]) -> bool:
        """Whether the pods name claims, or extended resources that a class serves."""
        return any(uses_claims(each.template) or self._served_by(each.template) for each in pod_sets)

    def charges(self, namespace: str, pod_sets: Sequence[PodSet]) -> dict[str, ClaimCharge]:
        """What one pod of each pod set is charged. Raises ClaimRefusal."""
        if not self.concerns(pod_sets):
            return {}
        if not self._configuration.integrates_claims:
            if self._configuration.rejects_claims and any(uses_claims(each.template) for each in pod_sets):
                raise ClaimRefusal(INTEGRATION_OFF)
            return {}
        if any(claim.get("resourceClaimName") for each in pod_sets for claim in _claims(each.template)):
            raise ClaimRefusal(CLAIMS_BY_NAME)
        quotas = [self._templates(namespace, index, each) for index, each in enumerate(pod_sets)]
        extended = [self._extended(index, each) for index, each in enumerate(pod_sets)]
        for index, pod_set in enumerate(pod_sets):
            quotas[index] += self._counted(namespace, index, pod_set)
        found: dict[str, ClaimCharge] = {}
        for pod_set, quota, (added, replaced, kinds) in zip(pod_sets, quotas, extended, strict=True):
            specs = [self.objects.templates[key] for _, key in self._keys(namespace, pod_set)]
            devices, problem = self._on_nodes(specs, kinds)
            amounts = {name: min(amount, UNLIMITED) for name, amount in (quota + added).items()}
            found[pod_set.name] = ClaimCharge(amounts, replaced, devices, problem)
        return found

    # -- templates

    @staticmethod
    def _keys(namespace: str, pod_set: PodSet) -> Iterator[tuple[int, str]]:
        for place, claim in enumerate(_claims(pod_set.template)):
            if claim.get("resourceClaimTemplateName"):
                yield place, f"{namespace}/{claim['resourceClaimTemplateName']}"

    def _templates(self, namespace: str, index: int, pod_set: PodSet) -> Counter[str]:
        """Whole devices, by the resource that their class is mapped to."""
        quota: Counter[str] = Counter()
        for place, key in self._keys(namespace, pod_set):
            path, name = _claim_path(index, place), key.partition("/")[2]
            spec = self.objects.templates.get(key)
            if spec is None:
                raise ClaimRefusal(
                    f"{path}: Internal error: failed to get claim spec for ResourceClaimTemplate {name} in podset "
                    f'{pod_set.name}: ResourceClaimTemplate.resource.k8s.io "{name}" not found'
                )
            counts = _counts_per_class(spec, path, f"ResourceClaimTemplate {name}: ")
            self._check_selectors(spec, path, f"ResourceClaimTemplate {name}: ")
            for device_class, count in counts.items():
                if device_class not in self._resource_of:
                    raise ClaimRefusal(
                        f'{path}.resourceClaimTemplateName: Not found: "DeviceClass {device_class} is not mapped in '
                        f'DRA configuration for podset {pod_set.name}"'
                    )
                if not self._counters.get(device_class):
                    quota[self._resource_of[device_class]] += count
        return quota

    def _check_selectors(self, spec: ClaimSpec, path: str, whose: str) -> None:
        """Requests with selectors need as many matching devices in the cluster, whoever holds them."""
        problems: list[str] = []
        matched: set[int] = set()
        for place, request in enumerate(spec.requests):
            if request.alternatives or not request.selectors:
                continue
            try:
                number = self._matching(request, matched, f"{path}.devices.requests[{place}]", whose)
            except ClaimRefusal as refusal:
                problems.append(str(refusal))
                continue
            if number < request.count:
                problems.append(
                    f"{path}.devices.requests[{place}].exactly.selectors: Internal error: {whose}insufficient matching "
                    f"devices for CEL selector in DeviceClass {request.device_class}: {number} device(s) match in the "
                    f"cluster but {request.count} requested"
                )
        _raise(problems)

    def _matching(self, request: DeviceRequest, matched: set[int], path: str, whose: str) -> int:
        selectors = self._selectors_of_class(request.device_class, path, whose)
        number = 0
        for place, (_, names) in enumerate(self._devices):
            if number >= request.count:
                break
            if place in matched:
                continue
            try:
                if not selects((*selectors, *request.selectors), names):
                    continue
            except CelError as error:
                raise ClaimRefusal(
                    f'{path}.exactly.selectors: Invalid value: "null": {whose}CEL evaluation failed for DeviceClass '
                    f"{request.device_class}: {error}"
                ) from error
            matched.add(place)
            number += 1
        return number

    def _selectors_of_class(self, name: str, path: str, whose: str = "") -> tuple[str, ...]:
        if not name:
            return ()
        found = self.objects.classes.get(name)
        if found is None:
            raise ClaimRefusal(
                f"{path}: Internal error: {whose}failed to get DeviceClass {name}: "
                f'DeviceClass.resource.k8s.io "{name}" not found'
            )
        for place, selector in enumerate(found.selectors):
            _compile(selector, f"{path}[{place}].cel.expression", f"{whose}DeviceClass {name} has invalid CEL selector")
        return found.selectors

    # -- counters of partitionable devices

    def _counted(self, namespace: str, index: int, pod_set: PodSet) -> Counter[str]:
        quota: Counter[str] = Counter()
        for place, key in self._keys(namespace, pod_set):
            for number, request in enumerate(self.objects.templates[key].requests):
                sources = self._counters.get(request.device_class, ()) if not request.admin_access else ()
                path = f"{_claim_path(index, place)}.devices.requests[{number}]"
                for resource, source in sources:
                    quota[resource] += self._counter_charge(request, source, path)
        return quota

    def _counter_charge(self, request: DeviceRequest, source: CounterSource, path: str) -> int:
        """The largest value of the counter among matching devices, for each device asked for."""
        selectors = (*self._selectors_of_class(request.device_class, path), *request.selectors)
        matched = [
            device for device, names in self._counted_devices(source.driver)
            if _evaluated((source.selector, *selectors), names, device, path)
        ]  # fmt: skip
        if len(matched) < request.count:
            raise ClaimRefusal(
                f"{path}: Internal error: insufficient matching devices for counter driver: {len(matched)} device(s) "
                f"match but {request.count} requested"
            )
        values = [
            value for device in matched for (_, counter), value in device.consumes.items() if counter == source.name
        ]
        if not values:
            raise ClaimRefusal(
                f'{path}: Internal error: matched devices have no consumesCounters entry for counter "{source.name}"'
            )
        return min(max(0, -(-max(values) // NANOS)) * request.count, UNLIMITED)

    def _counted_devices(self, driver: str) -> Iterator[tuple[PublishedDevice, Mapping[str, Any]]]:
        complete = {(pool.driver, pool.name) for pool in self.objects.pools if pool.complete and pool.driver == driver}
        return ((device, names) for device, names in self._devices if device.id[:2] in complete)

    # -- extended resources

    def _served_by(self, template: PodTemplate) -> bool:
        containers = (*template.init_containers, *template.containers)
        return bool(self._serving) and any(
            amount and name in self._serving for container in containers for name, amount in container.requests.items()
        )

    def _extended(self, index: int, pod_set: PodSet) -> tuple[Counter[str], frozenset[str], Counter[DeviceKind]]:
        """Extended resources of a pod as devices of the class that serves them."""
        quota: Counter[str] = Counter()
        kinds: Counter[DeviceKind] = Counter()
        path = f"spec.podSets[{index}].template.spec"
        problems: list[str] = []
        replaced: set[str] = set()
        for name, asked in sorted(_extended_requests(pod_set.template, path).items()):
            device_class = self._serving.get(name)
            if device_class is None:
                continue
            if self._counters.get(device_class.name):
                problems.append(
                    f'{asked.path}: Invalid value: "{name}": extended resource {name} resolves to DeviceClass '
                    f"{device_class.name} with counters configured; use ResourceClaimTemplates with CEL selectors for "
                    "counter-based quota"
                )
            elif asked.fractions:
                problems += asked.fractions
            else:
                replaced.add(name)
                kinds[DeviceKind(device_class.name)] += asked.count
                quota[self._resource_of.get(device_class.name, name)] += asked.count
        _raise(problems)
        return quota, frozenset(replaced), kinds

    # -- nodes

    def _on_nodes(self, specs: Sequence[ClaimSpec], extended: Counter[DeviceKind]) -> tuple[dict[str, int], str]:
        kinds = Counter(extended)
        for spec in specs:
            for request in spec.requests:
                if not request.admin_access:
                    kinds[DeviceKind(request.device_class, request.selectors)] += request.count
        total: Counter[str] = Counter()
        for kind, count in kinds.items():
            total.update(self.places.charge(kind, count))
        return dict(total), self._not_placeable(specs, kinds)

    def _not_placeable(self, specs: Sequence[ClaimSpec], kinds: Mapping[DeviceKind, int]) -> str:
        for spec in specs:
            devices = sum(request.count for request in spec.requests)
            if spec.constraints and devices > 1:
                return (
                    "a claim for several devices has constraints (matchAttribute, distinctAttribute), which are not "
                    "read here: ask for one device, or let a class or selector say which ones"
                )
        elsewhere = sorted(kind.resource for kind in kinds if kind in self.places.elsewhere)
        if elsewhere:
            return f"{elsewhere[0]} are not bound to one node each, and such devices are not counted here"
        return ""


def _raise(problems: Sequence[str]) -> None:
    told = list(dict.fromkeys(problems))
    if told:
        raise ClaimRefusal(told[0] if len(told) == 1 else f"[{', '.join(told)}]")


def _claims(template: PodTemplate) -> Sequence[Mapping[str, Any]]:
    return (template.manifest.get("spec") or {}).get("resourceClaims") or ()


def _claim_path(index: int, place: int) -> str:
    return f"spec.podSets[{index}].template.spec.resourceClaims[{place}]"


def _compile(selector: str, path: str, what: str) -> None:
    try:
        compile_selector(selector)
    except CelError as error:
        raise ClaimRefusal(f'{path}: Invalid value: "{selector}": {what}: {error}') from error


def _counts_per_class(spec: ClaimSpec, path: str, whose: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for place, request in enumerate(spec.requests):
        at = f"{path}.devices.requests[{place}]"
        if request.alternatives:
            raise ClaimRefusal(f'{at}: Invalid value: "null": {whose}FirstAvailable device selection is not supported')
        if not request.mode:
            raise ClaimRefusal(f'{at}: Invalid value: "null": {whose}Exactly must be set if FirstAvailable is nil')
        for number, selector in enumerate(request.selectors):
            try:
                compile_selector(selector)
            except CelError as error:
                inner = f"devices.requests[{place}].exactly.selectors[{number}].cel.expression"
                raise ClaimRefusal(
                    f'{at}.exactly.selectors: Invalid value: "null": {whose}{inner}: Invalid value: "{selector}": CEL '
                    f"compilation failed: {error}"
                ) from error
        if request.admin_access:
            continue
        if request.mode != "ExactCount":
            what = "AllocationMode 'All' is not supported"
            unknown = f"unsupported allocation mode: {request.mode}"
            said = what if request.mode == "All" else unknown
            raise ClaimRefusal(f'{at}.exactly.allocationMode: Invalid value: "{request.mode}": {whose}{said}')
        if request.device_class:
            counts[request.device_class] += request.count
    return counts


def _evaluated(selectors: Sequence[str], names: Mapping[str, Any], device: PublishedDevice, path: str) -> bool:
    try:
        return selects(selectors, names)
    except CelError as error:
        raise ClaimRefusal(
            f"{path}: Internal error: CEL evaluation error in request selector for device {device.id.name}: {error}"
        ) from error


def _serving(classes: Any) -> dict[str, DeviceClass]:
    """The class that serves each extended resource: the latest made, of those the first by name."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name, reverse=True):
        before = found.get(each.extended_resource)
        if each.extended_resource and (before is None or each.created_at >= before.created_at):
            found[each.extended_resource] = each
    return found


@dataclass(slots=True)
class _Extended:
    """What a pod asks of an extended resource: init containers by their largest, the others by their sum."""

    path: str
    largest: int = 0
    total: int = 0
    fractions: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return max(self.largest, self.total)


def _extended_requests(template: PodTemplate, path: str) -> dict[str, _Extended]:
    found: dict[str, _Extended] = {}
    for kind, containers in (("initContainers", template.init_containers), ("containers", template.containers)):
        for place, container in enumerate(containers):
            for name, nanos in container.requests.items():
                if nanos <= 0 or _NATIVE.fullmatch(name):
                    continue
                asked = found.setdefault(name, _Extended(f"{path}.{kind}[{place}]"))
                if nanos % NANOS:
                    asked.fractions.append(
                        f'{path}.{kind}[{place}].resources.requests.{name}: Invalid value: "{_written(nanos)}": '
                        "extended resource quantity must be an integer"
                    )
                elif kind == "containers":
                    asked.total += nanos // NANOS
                else:
                    asked.largest = max(asked.largest, nanos // NANOS)
    return found


def _written(nanos: int) -> str:
    """A fraction as Kubernetes writes it."""
    return next(f"{nanos // step}{unit}" for step, unit in ((10**6, "m"), (10**3, "u"), (1, "n")) if nanos % step == 0)
