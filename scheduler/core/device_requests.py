"""From a pod's resource limits and annotations to what it asks of devices, as HAMi's webhook and parser do it.

The webhook completes the limits first (a missing count, the cores of a whole card); the parser then reads limits, or
requests where a limit is missing. What HAMi would refuse or silently ignore is reported as a problem, so that a caller
can refuse it with a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler.core.device import HAMI_CORE_MODE, PERCENTAGE_UNSET, DeviceRequest
from scheduler.core.device_vendor import CardModel, DeviceVendor, MemoryRounding, VendorAnnotations
from scheduler.core.placement_model import (
    DeviceConstraints,
    DeviceRequestProblem,
    PodDeviceRequest,
    ScoringWeights,
)
from scheduler.core.quantity import NANOS, InvalidQuantity, parse_quantity

NODE_POLICY_ANNOTATION = "hami.io/node-scheduler-policy"
DEVICE_POLICY_ANNOTATION = "hami.io/gpu-scheduler-policy"
SCORING_WEIGHTS_ANNOTATION = "hami.io/device-scoring-weights"

_MAX_INT32 = 2**31 - 1
_MIB = 2**20
_TRUE_WORDS = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def pod_device_request(pod: Mapping[str, Any], vendors: Iterable[DeviceVendor]) -> PodDeviceRequest:
    """What a pod (a `v1.Pod` or a pod template, in manifest form) asks of the vendors' devices.

    Vendors are taken in the order of their words. Memory of a request is in MiB, cores in percent points.
    """
    spec = pod.get("spec") or {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    ordered = sorted(vendors, key=lambda vendor: vendor.word)
    problems: list[DeviceRequestProblem] = []
    init_containers = _requests_per_container(spec.get("initContainers") or (), annotations, ordered, problems)
    containers = _requests_per_container(spec.get("containers") or (), annotations, ordered, problems)
    asked = {request.vendor for container in (*init_containers, *containers) for request in container}
    return PodDeviceRequest(
        init_containers,
        containers,
        annotations.get(NODE_POLICY_ANNOTATION) or None,
        annotations.get(DEVICE_POLICY_ANNOTATION) or None,
        _weights(annotations.get(SCORING_WEIGHTS_ANNOTATION), problems),
        tuple(
            (vendor.word, _constraints(annotations, vendor.annotations)) for vendor in ordered if vendor.word in asked
        ),
        tuple(problems),
    )


def device_resource_names(vendors: Iterable[DeviceVendor]) -> frozenset[str]:
    """The resource names that vendors manage: a node's allocatable amounts don't limit them, its devices do."""
    return frozenset().union(*(vendor.resources.names for vendor in vendors))


def parse_scoring_weights(text: str) -> ScoringWeights:
    """Read `slot=1,core=1,memory=1`. Raises ValueError unless all three are given once, >= 0, and one is above 0."""
    weights: dict[str, int] = {}
    for entry in text.split(","):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name not in ("slot", "core", "memory") or name in weights:
            raise ValueError(f"expected slot, core and memory once each, not {entry!r}")
        if not re.fullmatch(r"[0-9]+", value):
            raise ValueError(f"the weight of {name} must be a non-negative integer, not {value!r}")
        weights[name] = int(value)
    if len(weights) != 3 or not any(weights.values()):
        raise ValueError("slot, core and memory must all be given, one of them above 0")
    return ScoringWeights(**weights)


def _requests_per_container(
    containers: Iterable[Mapping[str, Any]],
    annotations: Mapping[str, str],
    vendors: Sequence[DeviceVendor],
    problems: list[DeviceRequestProblem],
) -> tuple[tuple[DeviceRequest, ...], ...]:
    found = []
    for container in containers:
        requests = (_container_request(container, annotations, vendor, problems) for vendor in vendors)
        found.append(tuple(request for request in requests if request is not None))
    return tuple(found)


def _container_request(
    container: Mapping[str, Any],
    annotations: Mapping[str, str],
    vendor: DeviceVendor,
    problems: list[DeviceRequestProblem],
) -> DeviceRequest | None:
    resources = container.get("resources") or {}
    limits = dict(resources.get("limits") or {})
    requests = resources.get("requests") or {}
    names = vendor.resources
    if not names.names & (limits.keys() | requests.keys()):
        return None
    soft_split = annotations.get(vendor.annotations.mode) == HAMI_CORE_MODE
    reader = _ContainerReader(str(container.get("name") or ""), vendor, limits, requests, soft_split, problems)
    return reader.request()


class _ContainerReader:
    """Reads one container's request of one vendor."""

    def __init__(
        self,
        container: str,
        vendor: DeviceVendor,
        limits: dict[str, Any],
        requests: Mapping[str, Any],
        soft_split: bool,
        problems: list[DeviceRequestProblem],
    ) -> None:
        self.soft_split = soft_split
        self.container = container
        self.vendor = vendor
        self.names = vendor.resources
        self.limits = limits
        self.requests = requests
        self.problems = problems

    def request(self) -> DeviceRequest | None:
        if not self._complete_limits():
            return None
        count = self._integer(self.names.count)
        if count is None or count <= 0:
            return None
        if self.vendor.rules.counts and count not in self.vendor.rules.counts:
            allowed = ", ".join(str(allowed) for allowed in self.vendor.rules.counts)
            self._refuse(self.names.count, count, f"the count must be one of {allowed}")
            return None
        module = self.vendor.rules.module_size
        if count == 1:
            count = module
        if count % module:
            self._refuse(
                self.names.count, count, f"cards are given in modules of {module}: ask for 1 or a multiple of it"
            )
            return None
        memory = self._memory_mib()
        if memory is None:
            return None
        cores = self._cores()
        if cores is None:
            return None
        return self._rounded(count, memory, self._percentage(), cores)

    def _complete_limits(self) -> bool:
        """HAMi's webhook: limits only. False where it refuses the pod."""
        names, defaults = self.names, self.vendor.defaults
        share = _nanos(self.limits.get(names.memory_percentage))
        if share is not None and not 0 <= share <= 100 * NANOS:
            self._refuse(names.memory_percentage, self.limits[names.memory_percentage], "a percentage is 0 to 100")
            return False
        named = [name for name in (names.memory, names.memory_percentage, names.cores) if name and name in self.limits]
        if named and names.count not in self.limits and defaults.count:
            self.limits[names.count] = defaults.count
        whole_card = share == 100 * NANOS or not {names.memory, names.memory_percentage} & self.limits.keys()
        if (
            names.count in self.limits
            and names.cores not in self.limits
            and defaults.exclusive_cores is not None
            and whole_card
        ):
            self.limits[names.cores] = defaults.exclusive_cores
        return True

    def _value(self, name: str) -> Any:
        if not name:
            return None
        return self.limits.get(name, self.requests.get(name))

    def _integer(self, name: str) -> int | None:
        value = _whole_number(self._value(name))
        if value is None and self._value(name) is not None:
            self._ignore(name, "the count is a whole number")
        return value

    def _memory_mib(self) -> int | None:
        """The MiB asked for by amount, 0 for none; None where HAMi drops the whole request."""
        name = self.names.memory
        text = self._value(name)
        if text is None:
            return 0
        value = _whole_number(text)
        unit = self.names.memory_unit_mib
        if value is not None and self.names.bare_memory_unit_mib:
            bare = re.fullmatch(r"[0-9]+", str(text).strip())
            return value * self.names.bare_memory_unit_mib if bare else value // _MIB
        if value is None or not 0 <= value <= _MAX_INT32 // unit:
            form = "a plain number of MiB" if unit == 1 else f"a plain number of units of {unit} MiB"
            self._ignore(name, f"memory is {form}, without a suffix such as Mi")
            return None
        if self.names.memory_units and value not in self.names.memory_units:
            allowed = ", ".join(str(units) for units in self.names.memory_units)
            self._refuse(name, text, f"memory must be one of {allowed} units of {unit} MiB")
            return None
        return value * unit

    def _percentage(self) -> int:
        value = _whole_number(self._value(self.names.memory_percentage))
        if value is None or value <= 0:
            return PERCENTAGE_UNSET
        return min(value, 100)

    def _cores(self) -> int | None:
        text = self._value(self.names.cores)
        if text is None:
            return self.vendor.defaults.cores_percent
        if self.vendor.rounding is MemoryRounding.TEMPLATE and not self.soft_split:
            self._refuse(self.names.cores, text, "cores can be asked for in the soft split only")
            return None
        value = _whole_number(text)
        if value is None:
            self._ignore(self.names.cores, "cores are a whole number of percent points")
            return self.vendor.defaults.cores_percent
        if value < 0:
            self._refuse(self.names.cores, text, "cores can't be negative")
            return None
        return value

    def _rounded(self, count: int, memory: int, percentage: int, cores: int) -> DeviceRequest | None:
        defaults, word = self.vendor.defaults, self.vendor.word
        whole_from = defaults.whole_cards_from_count
        if self.vendor.rules.whole_cards or (whole_from and count >= whole_from):
            return DeviceRequest(word, count, 0, 100, defaults.whole_card_cores)
        if memory == 0 and percentage == PERCENTAGE_UNSET:
            memory = defaults.memory_mib
            percentage = PERCENTAGE_UNSET if memory else 100
        model = self.vendor.model
        if self.vendor.rounding is not MemoryRounding.TEMPLATE or model is None or self.soft_split:
            return DeviceRequest(word, count, memory, percentage, cores)
        rounded = self._template_memory(model, memory)
        if rounded is None:
            return None
        if count > self.vendor.rules.module_size and rounded != model.memory_mib:
            self._refuse(self.names.memory, memory, "only whole cards can be asked for in numbers")
            return None
        return DeviceRequest(word, count, rounded, PERCENTAGE_UNSET, cores)

    def _template_memory(self, model: CardModel, memory: int) -> int | None:
        """The next larger cut of the card; None for more than the card has."""
        if memory == 0:
            return model.memory_mib
        for template in model.templates:
            if memory <= template.memory_mib:
                return template.memory_mib
        if memory <= (model.capacity_mib or model.memory_mib):
            return model.memory_mib
        self._refuse(self.names.memory, memory, f"a card has {model.memory_mib} MiB")
        return None

    def _refuse(self, resource: str, value: object, message: str) -> None:
        self.problems.append(DeviceRequestProblem(self.container, resource, str(value), message, refused=True))

    def _ignore(self, resource: str, message: str) -> None:
        value = str(self._value(resource))
        self.problems.append(DeviceRequestProblem(self.container, resource, value, message, refused=False))


def _whole_number(value: object) -> int | None:
    """The value of a quantity that is a whole number, None for everything else."""
    nanos = _nanos(value)
    return None if nanos is None or nanos % NANOS else nanos // NANOS


def _nanos(value: object) -> int | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        return parse_quantity(value)
    except InvalidQuantity:
        return None


def _constraints(annotations: Mapping[str, str], keys: VendorAnnotations) -> DeviceConstraints:
    return DeviceConstraints(
        _words(annotations.get(keys.use_type)),
        _words(annotations.get(keys.nouse_type)),
        _words(annotations.get(keys.use_uuid)),
        _words(annotations.get(keys.nouse_uuid)),
        (annotations.get(keys.numa_bind) or "") in _TRUE_WORDS,
        annotations.get(keys.mode),
    )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in (text or "").split(",")) if word)


def _weights(text: str | None, problems: list[DeviceRequestProblem]) -> ScoringWeights:
    if text is None:
        return ScoringWeights()
    try:
        return parse_scoring_weights(text)
    except ValueError as error:
        problems.append(DeviceRequestProblem("", SCORING_WEIGHTS_ANNOTATION, text, str(error), refused=True))
        return ScoringWeights()
