"""Evaluates selectors on published devices within a budget for each namespace.

Tenants write selectors, and the leader evaluates them between two decisions. So a selector is evaluated once per device
until the device changes; each namespace has a budget of steps, which refills over time, and so have all namespaces
together; and a selector that takes too many steps over all devices is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scheduling.devices.claims.cel import Meter, compile_selector
from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.matching import variables
from scheduling.devices.claims.objects import DeviceId, DevicePool, PublishedDevice
from scheduling.model.quantity import write_quantity

MAX_NAMESPACE_STEPS: Final = 2_000_000
"""The steps that a namespace can accumulate. A step takes about a hundred nanoseconds."""
NAMESPACE_STEPS_PER_SECOND: Final = 200_000
MAX_STEPS_OF_ALL: Final = 4_000_000
STEPS_OF_ALL_PER_SECOND: Final = 1_000_000
MAX_MEAN_STEPS: Final = 1_000
"""The average steps of a selector per device, over all devices."""
MIN_SELECTOR_STEPS: Final = 1_000_000
"""The steps of a selector in a cluster with few devices."""
MAX_KINDS: Final = 16
"""The number of device kinds with selectors or capacity that the workloads of one namespace may request at a time."""
MAX_KEPT_RESULTS: Final = 1_000_000
_CHARACTERS_PER_STEP: Final = 4


class DeviceKind(NamedTuple):
    """The devices that a request selects, and the capacity that it requests of each: (dimension, nano units)."""

    device_class: str
    selectors: tuple[str, ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()

    @property
    def resource(self) -> str:
        """The name of the kind among the resources of nodes, as messages show it."""
        name = f"devices of class {self.device_class}"
        if self.capacity:
            # Exact, because it tells kinds apart.
            parts = (f"{write_quantity(nanos)} of {dimension}" for dimension, nanos in self.capacity)
            name = f"{' and '.join(parts)} of {name}"
        return f"{name} where {' and '.join(self.selectors)}" if self.selectors else name

    @property
    def is_of_tenants(self) -> bool:
        """Whether a request defines the kind. Then each workload may need a kind of its own; a DeviceClass alone is one
        kind for all workloads."""
        return bool(self.selectors or self.capacity)


class EvaluationLimit(Exception):
    """A selector is not evaluated because its cost exceeds a limit. `passes`: a later attempt may get further."""

    passes = False


class StepsSpent(EvaluationLimit):
    """The budget of steps of the namespace, or of all namespaces together, is used up for now."""

    passes = True

    def __init__(self) -> None:
        super().__init__("their selectors are costly and are evaluated step by step")


class TooManyKinds(EvaluationLimit):
    """The workloads of the namespace request too many different kinds of devices."""

    passes = True


@dataclass(slots=True)
class _Results:
    """The results of one selector: for each device whether it matches, or why it cannot be evaluated."""

    steps: int = 0
    by_device: dict[DeviceId, bool | str] = field(default_factory=dict)


class Evaluations:
    """The results of selectors, and the remaining budgets of namespaces."""

    def __init__(self) -> None:
        self.count = 0
        """The number of evaluations made."""
        self._look_again_at = MAX_KEPT_RESULTS
        self._devices: dict[DeviceId, PublishedDevice] = {}
        self._variables: dict[DeviceId, Mapping[str, Any]] = {}
        self._results: dict[str, _Results] = {}
        self._left: dict[str, float] = {}
        self._left_of_all = float(MAX_STEPS_OF_ALL)
        self._now = 0.0
        self._in_use: dict[str, Counter[DeviceKind]] = {}

    def advance(self, now: float) -> None:
        """Refill the budgets according to the elapsed time."""
        seconds, self._now = now - self._now, max(now, self._now)
        if seconds > 0:
            self._left_of_all = min(self._left_of_all + seconds * STEPS_OF_ALL_PER_SECOND, MAX_STEPS_OF_ALL)
            left = {name: steps + seconds * NAMESPACE_STEPS_PER_SECOND for name, steps in self._left.items()}
            self._left = {name: steps for name, steps in left.items() if steps < MAX_NAMESPACE_STEPS}

    def snapshot(self) -> tuple[dict[str, float], float, float]:
        """Return a copy of the remaining budgets, and the time. Results are kept, because they do not depend on when
        they are evaluated."""
        return dict(self._left), self._left_of_all, self._now

    def restore(self, values: tuple[dict[str, float], float, float]) -> None:
        """Go back to a snapshot."""
        self._left, self._left_of_all, self._now = values

    def set_devices(self, pools: Iterable[DevicePool]) -> None:
        """Replace the devices. Results for unchanged devices are kept."""
        devices = {device.id: device for pool in pools for device in pool.devices}
        changed = {
            id_
            for id_, before in self._devices.items()
            if (device := devices.get(id_)) is not before and (device is None or not _is_as(before, device))
        }
        self._devices = devices
        if changed:
            for id_ in changed:
                self._variables.pop(id_, None)
            for results in self._results.values():
                gone = changed & results.by_device.keys()
                results.steps -= results.steps * len(gone) // max(1, len(results.by_device))
                for id_ in gone:
                    del results.by_device[id_]
        self._results = {
            selector: results for selector, results in self._results.items() if results.steps <= self._max_steps
        }

    # -- kinds of devices that workloads ask for ---------------------------------------------------------------------

    def use(self, namespace: str, kinds: Collection[DeviceKind]) -> None:
        """Add a known workload that requests these kinds."""
        if kinds:
            self._in_use.setdefault(namespace, Counter()).update(kinds)

    def leave(self, namespace: str, kinds: Collection[DeviceKind]) -> None:
        """Remove a known workload that requests these kinds."""
        if not kinds:
            return
        counts = self._in_use[namespace]
        counts.subtract(kinds)
        for kind in kinds:
            if not counts[kind]:
                del counts[kind]
        if not counts:
            del self._in_use[namespace]

    def used_kinds(self) -> set[DeviceKind]:
        """Return the kinds with selectors or requested capacity that known workloads request."""
        return {kind for counts in self._in_use.values() for kind in counts}

    def check_number(self, namespace: str, kinds: Collection[DeviceKind]) -> None:
        """Raise TooManyKinds if the namespace's workloads may not request these additional kinds."""
        used = self._in_use.get(namespace, Counter())
        if any(kind not in used for kind in kinds) and len({*used, *kinds}) > MAX_KINDS:
            raise TooManyKinds(
                f"the workloads of a namespace may request at most {MAX_KINDS} kinds of devices with selectors or "
                "capacity at a time"
            )

    # -- evaluations ---------------------------------------------------------------------------------------------------

    def by_steps_left(self, namespaces: Iterable[str]) -> list[str]:
        """Return the namespaces, the one with the most steps left first."""
        return sorted(namespaces, key=lambda name: (-self._left.get(name, MAX_NAMESPACE_STEPS), name))

    def spend(self, namespace: str | None, steps: int) -> None:
        """Charge a namespace's budget. None is the cluster itself, which is not charged. Raises StepsSpent if the
        budget is used up.
        """
        if namespace is None:
            return
        left = self._left.get(namespace, float(MAX_NAMESPACE_STEPS))
        if min(left, self._left_of_all) <= 0:
            raise StepsSpent
        self._left[namespace] = left - steps
        self._left_of_all -= steps

    def selects(self, selectors: Iterable[str], device: PublishedDevice, namespace: str | None) -> bool:
        """Return whether all selectors match a device; the namespace pays for the evaluation. Raises CelError if a
        selector cannot be compiled or evaluated, and EvaluationLimit."""
        return all(self._result(selector, device, namespace) for selector in selectors)

    def _result(self, selector: str, device: PublishedDevice, namespace: str | None) -> bool:
        results = self._results.get(selector)
        if results is None:
            self.spend(namespace, len(selector) // _CHARACTERS_PER_STEP)
            results = self._results[selector] = _Results()
        if self._devices.get(device.id) is not device:
            return compile_selector(selector)(variables(device))  # a container that shares its name with another
        found = results.by_device.get(device.id)
        if found is None:
            if namespace is not None and results.steps > self._max_steps:
                raise EvaluationLimit(
                    f"a selector takes more than {self._max_steps} steps for the {len(self._devices)} devices of the "
                    "cluster"
                )
            self.spend(namespace, 0)
            found = results.by_device[device.id] = self._evaluated(selector, device, namespace, results)
        if isinstance(found, str):
            raise CelError(found)
        return found

    def _evaluated(
        self, selector: str, device: PublishedDevice, namespace: str | None, results: _Results
    ) -> bool | str:
        if self.count >= self._look_again_at:
            self._forget_unused()
        self.count += 1
        meter = Meter()
        found: bool | str
        try:
            found = compile_selector(selector)(self._of(device), meter)
        except CelError as error:
            found = str(error)
        results.steps += meter.steps
        self.spend(namespace, meter.steps)
        return found

    def _forget_unused(self) -> None:
        """Drop results that no known workload needs, if there are many."""
        kept = sum(len(results.by_device) for results in self._results.values())
        if kept >= MAX_KEPT_RESULTS:
            used = {selector for kind in self.used_kinds() for selector in kind.selectors}
            self._results = {selector: found for selector, found in self._results.items() if selector in used}
        self._look_again_at = self.count + MAX_KEPT_RESULTS // 2

    def _of(self, device: PublishedDevice) -> Mapping[str, Any]:
        found = self._variables.get(device.id)
        if found is None:
            found = self._variables[device.id] = variables(device)
        return found

    @property
    def _max_steps(self) -> int:
        return max(MIN_SELECTOR_STEPS, MAX_MEAN_STEPS * len(self._devices))


def _is_as(before: PublishedDevice, device: PublishedDevice) -> bool:
    """Return whether selectors see no difference."""
    return (before.attributes, before.capacity, before.is_shared) == (
        device.attributes,
        device.capacity,
        device.is_shared,
    )
