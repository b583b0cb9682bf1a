"""The Configuration's `deviceClassMappings`: the resource under which devices of a DeviceClass are charged."""

from __future__ import annotations

from typing import Final

from accounts.kinds.feature_gates import COUNTERS_INTEGRATED
from scheduling.devices.claims.cel import compile_selector
from scheduling.devices.claims.cel_values import CelError
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import dns_label, dns_subdomain, qualified_name

_MAX_MAPPINGS: Final = 16
_MAX_CLASSES: Final = 8
_MAX_NAME: Final = 253
_MAX_DRIVER: Final = 63


class _Known:
    """A class as the previous mappings define it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.resource_of: dict[str, str] = {}
        self.counters_of: dict[str, set[str]] = {}


def read_device_class_mappings(block: FieldReader, *, counts: bool) -> None:
    """Check the mappings by Kueue's rules. They are stored as written. `counts`: the feature gate by which counters are
    counted is on.
    """
    known = _Known()
    for item in block.items("deviceClassMappings", max_items=_MAX_MAPPINGS):
        name = item.text("name", required=True, max_length=_MAX_NAME, syntax=qualified_name)
        if name in known.names:
            item.error("name", "Duplicate value", "Join their deviceClassNames.", MistakeReason.DUPLICATE)
        known.names.add(name)
        counters = _read_sources(item, counts=counts)
        classes = item.texts("deviceClassNames", min_items=1, max_items=_MAX_CLASSES, syntax=qualified_name)
        _check_classes(item, name, classes, counters[0] if counters else "", known)
        item.close()


def _check_classes(item: FieldReader, name: str, classes: list[str], counter: str, known: _Known) -> None:
    """Check that a class belongs to one resource, or to several resources that count different counters."""
    for place, device_class in enumerate(classes):
        path = f"{item.at('deviceClassNames')}[{place}]"
        before = known.resource_of.setdefault(device_class, name)
        counters = known.counters_of.setdefault(device_class, set())
        if before != name and (not counter or not counters):
            item.report.error(
                path, device_class, f"device class already mapped to resource {before}", "Keep it in one mapping."
            )
        elif before != name and counter in counters:
            item.report.error(
                path, device_class, f'device class already has a counter source for counter "{counter}"', "Keep one."
            )
        if counter:
            counters.add(counter)


def _read_sources(item: FieldReader, *, counts: bool) -> list[str]:
    """The counters that a mapping counts instead of devices."""
    counters = []
    for source in item.items("sources"):
        counter, capacity = source.fields("counter"), source.has("capacity")
        if capacity:
            source.ignore("capacity")
            source.error(
                "capacity",
                "capacity sources require KueueDRAIntegrationConsumableCapacity, which is not supported here",
                "Set either `devices` or `counters`.",
                MistakeReason.NOT_SUPPORTED,
            )
        if counter is None:
            if not capacity:
                source.require("counter", "Set exactly one source type per entry.")
            source.close()
            continue
        if not counts:
            rule = f"counter sources require the feature gate {COUNTERS_INTEGRATED}, which is off"
            source.error("counter", rule, "Enable it, or count devices.", MistakeReason.FORBIDDEN)
        counters.append(counter.text("name", required=True, syntax=dns_label))
        counter.text("driver", required=True, max_length=_MAX_DRIVER, syntax=dns_subdomain)
        selector = counter.required_fields("deviceSelector")
        cel = selector.required_fields("cel")
        cel.text("expression", required=True, syntax=_compiles)
        cel.close()
        selector.close()
        counter.close()
        source.close()
    return counters


def _compiles(expression: str) -> str | None:
    try:
        compile_selector(expression)
    except CelError as error:
        return f"CEL compilation failed: {error}"
    return None
