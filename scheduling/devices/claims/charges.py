"""The charges of the claims of a workload's pods by Kueue's rules, and Kueue's messages for refused claims.

ResourceClaimTemplates count: devices by their class, as `deviceClassMappings` name them, or a shared counter or a part
of the capacity of theirs. Extended resources that a class serves count as that class. ResourceClaims by name are
refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from scheduling.devices.claims.cel import compile_selector
from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.consumed_capacity import Dimension
from scheduling.devices.claims.evaluations import DeviceKind, EvaluationLimit, Evaluations, StepsSpent
from scheduling.devices.claims.objects import (
    ClaimSpec,
    DeviceClass,
    DeviceId,
    DeviceObjects,
    DeviceRequest,
    PublishedDevice,
)
from scheduling.devices.claims.places import DevicePlaces
from scheduling.model.configuration import CapacitySource, Configuration, CounterSource
from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import NANOS, UNLIMITED
from scheduling.model.workload import PodSet

CLAIMS_BY_NAME: Final = "KueueDRAIntegration feature does not support use of resource claims"
INTEGRATION_OFF: Final = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
_REQUEUED: Final = {CLAIMS_BY_NAME: "DRA resource claims not supported"}
_NATIVE: Final = re.compile(r"[^/]*|(?:.*\.)?kubernetes\.io/.*|requests\..*", re.DOTALL)
"""Resources that are not extended ones."""


class ClaimRefusal(ValueError):
    """The reason why the claims make a workload inadmissible, in Kueue's words."""

    @property
    def requeued_message(self) -> str:
        """The message of the condition Requeued."""
        return _REQUEUED.get(str(self), str(self))


class ClaimsNotCounted(ClaimRefusal):
    """The claims need more evaluations than their namespace may make now. `goes_on`: they only need more time."""

    def __init__(self, limit: EvaluationLimit) -> None:
        super().__init__(f"The workload's claims cannot be counted: {limit}")
        self.goes_on = isinstance(limit, StepsSpent)


@dataclass(frozen=True, slots=True)
class ClaimCharge:
    """The requests that the claims of one pod add.

    `quota` are amounts by resource. `replaced` are extended resources that are charged as their class instead.
    `devices` are resources of nodes (`places`); `not_placeable` is the reason why these claims cannot be placed in this
    cluster. `kinds` are the kinds of devices with selectors or capacity that they request.
    """

    quota: Mapping[str, int] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    devices: Mapping[str, int] = field(default_factory=dict)
    not_placeable: str = ""
    kinds: frozenset[DeviceKind] = field(default=frozenset(), compare=False)


NOTHING: Final = ClaimCharge()
_MAX_KEPT: Final = 1_000
Source = CounterSource | CapacitySource
T = TypeVar("T")


def uses_claims(template: PodTemplate) -> bool:
    """Return whether the pods name claims or templates of claims."""
    return bool((template.manifest.get("spec") or {}).get("resourceClaims"))


class ClaimRules:
    """The rules for one state of a cluster's classes, slices, templates and claims."""

    def __init__(
        self, objects: DeviceObjects, configuration: Configuration, evaluations: Evaluations | None = None
    ) -> None:
        """`evaluations` may have results of earlier devices."""
        self.objects = objects
        self._evaluations = evaluations or Evaluations()
        self._evaluations.set_devices(objects.pools)
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
        self._capacities = {
            name: mapping.capacities
            for mapping in reversed(configuration.device_class_mappings)
            for name in mapping.device_class_names
        }
        self._serving = _serving(objects.classes.values())
        self.places = DevicePlaces(objects, self._evaluations)
        for each in self._serving.values():
            self.places.add(DeviceKind(each.name))
        self._new_kinds: set[DeviceKind] = set()
        self._kept: dict[tuple[Source, str, tuple[str, ...]], tuple[int, frozenset[Any]]] = {}
        """By source, class and selectors: how many devices match, and the different values read from them."""

    def set_templates(self, objects: DeviceObjects) -> None:
        """Replace templates of claims that no known workload names."""
        self.objects = objects

    def take_new_kinds(self) -> set[DeviceKind]:
        """Return the kinds of devices that were counted since the last call. Nodes do not list them among their
        resources yet."""
        if not self._new_kinds:
            return set()
        found, self._new_kinds = self._new_kinds, set()
        return found

    def concerns(self, pod_sets: Sequence[PodSet]) -> bool:
        """Return whether the pods name claims, or extended resources that a class serves."""
        return any(uses_claims(each.template) or self._served_by(each.template) for each in pod_sets)

    def templates_of(self, namespace: str, pod_sets: Sequence[PodSet]) -> set[str]:
        """Return the templates that the pods name, as `namespace/name`."""
        return {key for each in pod_sets for _, key in self._keys(namespace, each)}

    def charges(
        self, namespace: str, pod_sets: Sequence[PodSet], *, holds: bool = False, fixed: bool = False
    ) -> dict[str, ClaimCharge]:
        """Return the charge of one pod of each pod set. Raises ClaimRefusal.

        A workload that holds quota is charged without the limits, because it was charged before. `fixed`: the nodes'
        resources must not change now, so no new kind of device can be counted.
        """
        if not self.concerns(pod_sets):
            return {}
        if not self._configuration.integrates_claims:
            if self._configuration.rejects_claims and any(uses_claims(each.template) for each in pod_sets):
                raise ClaimRefusal(INTEGRATION_OFF)
            return {}
        if any(claim.get("resourceClaimName") for each in pod_sets for claim in _claims(each.template)):
            raise ClaimRefusal(CLAIMS_BY_NAME)
        try:
            return self._counted_charges(namespace, pod_sets, None if holds else namespace, fixed=fixed)
        except EvaluationLimit as limit:
            raise (ClaimsNotCounted(limit) if limit.passes else ClaimRefusal(str(limit))) from limit

    def _counted_charges(
        self, namespace: str, pod_sets: Sequence[PodSet], payer: str | None, *, fixed: bool
    ) -> dict[str, ClaimCharge]:
        if payer is not None:
            asked = _kinds(
                [
                    self.objects.templates[key]
                    for key in self.templates_of(namespace, pod_sets)
                    if key in self.objects.templates
                ]
            )
            self._evaluations.check_number(payer, [kind for kind in asked if kind.is_of_tenants])
        quotas = [self._templates(namespace, index, each, payer) for index, each in enumerate(pod_sets)]
        extended = [self._extended(index, each) for index, each in enumerate(pod_sets)]
        for index, pod_set in enumerate(pod_sets):
            quotas[index] += self._counters_of(namespace, index, pod_set, payer)
        for index, pod_set in enumerate(pod_sets):
            quotas[index] += self._capacity_of(namespace, index, pod_set, payer)
        specs_of = [[self.objects.templates[key] for _, key in self._keys(namespace, each)] for each in pod_sets]
        for specs, (_, _, kinds) in zip(specs_of, extended, strict=True):
            kinds.update(_kinds(specs))
            self._count_new(kinds, payer, fixed=fixed)
        found: dict[str, ClaimCharge] = {}
        for pod_set, specs, quota, (added, replaced, kinds) in zip(pod_sets, specs_of, quotas, extended, strict=True):
            amounts = {name: min(amount, UNLIMITED) for name, amount in (quota + added).items()}
            own = frozenset(kind for kind in kinds if kind.is_of_tenants)
            found[pod_set.name] = ClaimCharge(
                amounts, replaced, self._on_nodes(kinds), self._not_placeable(specs, kinds), own
            )
        return found

    # -- templates

    @staticmethod
    def _keys(namespace: str, pod_set: PodSet) -> Iterator[tuple[int, str]]:
        for place, claim in enumerate(_claims(pod_set.template)):
            if claim.get("resourceClaimTemplateName"):
                yield place, f"{namespace}/{claim['resourceClaimTemplateName']}"

    def _templates(self, namespace: str, index: int, pod_set: PodSet, payer: str | None) -> Counter[str]:
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
            self._check_selectors(spec, path, f"ResourceClaimTemplate {name}: ", payer)
            for device_class, count in counts.items():
                if device_class not in self._resource_of:
                    raise ClaimRefusal(
                        f'{path}.resourceClaimTemplateName: Not found: "DeviceClass {device_class} is not mapped in '
                        f'DRA configuration for podset {pod_set.name}"'
                    )
                if not self._counters.get(device_class) and not self._capacities.get(device_class):
                    quota[self._resource_of[device_class]] += count
        return quota

    def _check_selectors(self, spec: ClaimSpec, path: str, whose: str, payer: str | None) -> None:
        """Check that the cluster has as many devices that match a request's selectors, free or not."""
        problems: list[str] = []
        matched: set[DeviceId] = set()
        for place, request in enumerate(spec.requests):
            if request.alternatives or not request.selectors:
                continue
            try:
                number = self._matching(request, matched, f"{path}.devices.requests[{place}]", whose, payer)
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

    def _matching(
        self, request: DeviceRequest, matched: set[DeviceId], path: str, whose: str, payer: str | None
    ) -> int:
        selectors = self._selectors_of_class(request.device_class, path, whose)
        number = 0
        for device in self._devices():
            if number >= request.count:
                break
            if device.id in matched:
                continue
            try:
                if not self._selects(selectors, request, device, payer):
                    continue
            except CelError as error:
                raise ClaimRefusal(
                    f'{path}.exactly.selectors: Invalid value: "null": {whose}CEL evaluation failed for DeviceClass '
                    f"{request.device_class}: {error}"
                ) from error
            matched.add(device.id)
            number += 1
        return number

    def _selects(
        self, of_class: Sequence[str], request: DeviceRequest, device: PublishedDevice, payer: str | None
    ) -> bool:
        """Cluster admins write classes, so they cost no namespace anything."""
        selects = self._evaluations.selects
        return selects(of_class, device, None) and selects(request.selectors, device, payer)

    def _devices(self) -> Iterator[PublishedDevice]:
        return (device for pool in self.objects.pools for device in pool.devices)

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

    def _counters_of(self, namespace: str, index: int, pod_set: PodSet, payer: str | None) -> Counter[str]:
        quota: Counter[str] = Counter()
        for path, request in self._requests(namespace, index, pod_set):
            for resource, source in self._counters.get(request.device_class, ()):
                quota[resource] += self._counter_charge(request, source, path, payer)
        return quota

    def _requests(self, namespace: str, index: int, pod_set: PodSet) -> Iterator[tuple[str, DeviceRequest]]:
        """Yield the requests that are charged, each with its path."""
        for place, key in self._keys(namespace, pod_set):
            for number, request in enumerate(self.objects.templates[key].requests):
                if not request.admin_access:
                    yield f"{_claim_path(index, place)}.devices.requests[{number}]", request

    def _counter_charge(self, request: DeviceRequest, source: CounterSource, path: str, payer: str | None) -> int:
        """Return the largest value of the counter among matching devices, for each requested device."""

        def values_of(device: PublishedDevice) -> Iterator[int]:
            return (value for (_, counter), value in device.consumes.items() if counter == source.name)

        values = self._found("counter", source, request, path, payer, values_of)
        if not values:
            raise ClaimRefusal(
                f'{path}: Internal error: matched devices have no consumesCounters entry for counter "{source.name}"'
            )
        return _charge(max(values), request)

    def _found(
        self,
        kind: str,
        source: Source,
        request: DeviceRequest,
        path: str,
        payer: str | None,
        read: Callable[[PublishedDevice], Iterable[T]],
    ) -> frozenset[T]:
        """Return the different values that are read from the devices that match, in complete pools of the source's
        driver.

        They are kept, because every workload with an equal request needs them. Raises ClaimRefusal if the devices are
        too few.
        """
        of_class = self._selectors_of_class(request.device_class, path)
        key = (source, request.device_class, request.selectors)
        if key not in self._kept:
            matched = [device for device in self._counted_devices(source.driver)
                       if self._matches(source, of_class, request, device, path, payer)]  # fmt: skip
            if len(self._kept) >= _MAX_KEPT:
                self._kept.clear()
            self._kept[key] = len(matched), frozenset(value for device in matched for value in read(device))
        number, values = self._kept[key]
        if number < request.count:
            raise ClaimRefusal(
                f"{path}: Internal error: insufficient matching devices for {kind} driver: {number} device(s) "
                f"match but {request.count} requested"
            )
        return cast("frozenset[T]", values)

    def _counted_devices(self, driver: str) -> Iterator[PublishedDevice]:
        complete = {(pool.driver, pool.name) for pool in self.objects.pools if pool.complete and pool.driver == driver}
        return (device for device in self._devices() if device.id[:2] in complete)

    def _matches(
        self,
        source: Source,
        of_class: Sequence[str],
        request: DeviceRequest,
        device: PublishedDevice,
        path: str,
        payer: str | None,
    ) -> bool:
        """Administrators write the selectors of sources and classes, so those cost no namespace anything."""
        selects = self._evaluations.selects
        for name, selectors, pays in (
            ("deviceSelector", (source.selector,), None),
            ("DeviceClass selector", of_class, None),
            ("request selector", request.selectors, payer),
        ):
            try:
                if not selects(selectors, device, pays):
                    return False
            except CelError as error:
                raise ClaimRefusal(
                    f"{path}: Internal error: CEL evaluation error in {name} for device {device.id.name}: {error}"
                ) from error
        return True

    # -- capacity of devices with several claims

    def _capacity_of(self, namespace: str, index: int, pod_set: PodSet, payer: str | None) -> Counter[str]:
        quota: Counter[str] = Counter()
        for path, request in self._requests(namespace, index, pod_set):
            for source in self._capacities.get(request.device_class, ()):
                resource = self._resource_of[request.device_class]
                quota[resource] += self._capacity_charge(request, source, path, payer)
        return quota

    def _capacity_charge(self, request: DeviceRequest, source: CapacitySource, path: str, payer: str | None) -> int:
        """Return the largest part that a claim could consume among matching devices, for each requested device."""

        def dimensions_of(device: PublishedDevice) -> Iterator[Dimension]:
            return (found for name, found in device.dimensions.items() if name == source.name)

        dimensions = self._found("capacity", source, request, path, payer, dimensions_of)
        if not dimensions:
            raise ClaimRefusal(f'{path}: Internal error: matched devices have no capacity dimension "{source.name}"')
        amounts = [each.consumed(request.capacity.get(source.name)) for each in dimensions]
        largest = max((amount for amount in amounts if amount is not None), default=None)
        if largest is None:
            raise ClaimRefusal(
                f'{path}: Invalid value: "null": capacity request cannot be satisfied by any matched device\'s '
                f'RequestPolicy for dimension "{source.name}"'
            )
        return _charge(largest, request)

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
            elif self._capacities.get(device_class.name):
                problems.append(
                    f'{asked.path}: Invalid value: "{name}": extended resource {name} resolves to DeviceClass '
                    f"{device_class.name} with capacity sources configured; use ResourceClaimTemplates with "
                    "capacity.requests for capacity-based quota"
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

    def _count_new(self, kinds: Collection[DeviceKind], payer: str | None, *, fixed: bool) -> None:
        new = [kind for kind in kinds if kind not in self.places.kinds]
        if new and fixed:
            raise StepsSpent
        for kind in new:
            self.places.add(kind, payer)
            self._new_kinds.add(kind)

    def _on_nodes(self, kinds: Mapping[DeviceKind, int]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for kind, count in kinds.items():
            total.update(self.places.charge(kind, count))
        return dict(total)

    def _not_placeable(self, specs: Sequence[ClaimSpec], kinds: Mapping[DeviceKind, int]) -> str:
        for spec in specs:
            devices = sum(request.count for request in spec.requests)
            if spec.constraints and devices > 1:
                return (
                    "a claim for several devices has constraints (matchAttribute, distinctAttribute), which are not "
                    "supported here: request one device, or select devices by a class or selector"
                )
        elsewhere = sorted(kind.resource for kind in kinds if kind in self.places.elsewhere)
        if elsewhere:
            return f"{elsewhere[0]} are not bound to a single node, and such devices are not counted here"
        return ""


def _charge(nanos: int, request: DeviceRequest) -> int:
    """Return an amount of each requested device in whole units."""
    return min(max(0, -(-nanos // NANOS)) * request.count, UNLIMITED)


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


def _kinds(specs: Sequence[ClaimSpec]) -> Counter[DeviceKind]:
    kinds: Counter[DeviceKind] = Counter()
    for spec in specs:
        for request in spec.requests:
            if not request.admin_access:
                kinds[_kind(request)] += request.count
    return kinds


def _kind(request: DeviceRequest) -> DeviceKind:
    return DeviceKind(request.device_class, request.selectors, tuple(sorted(request.capacity.items())))


def _serving(classes: Any) -> dict[str, DeviceClass]:
    """Return the DeviceClass that serves each extended resource: the newest, and among equally new ones the first by
    name."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name, reverse=True):
        before = found.get(each.extended_resource)
        if each.extended_resource and (before is None or each.created_at >= before.created_at):
            found[each.extended_resource] = each
    return found


@dataclass(slots=True)
class _Extended:
    """A pod's request of an extended resource: init containers by their largest, the others by their sum."""

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
    """Return a fraction as Kubernetes writes it."""
    return next(f"{nanos // step}{unit}" for step, unit in ((10**6, "m"), (10**3, "u"), (1, "n")) if nanos % step == 0)
