"""The Configuration's `deviceClassMappings`: the resource under which devices of a DeviceClass are charged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from accounts.kinds.feature_gates import CAPACITY_INTEGRATED, COUNTERS_INTEGRATED
from scheduling.devices.claims.cel import compile_selector
from scheduling.devices.claims.cel_values import CelError
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import dns_label, dns_subdomain, qualified_name

_MAX_MAPPINGS: Final = 16
_MAX_CLASSES: Final = 8
_MAX_NAME: Final = 253
_MAX_DRIVER: Final = 63
_MAX_IDENTIFIER: Final = 32
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class _Known:
    """A class as the previous mappings define it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.resource_of: dict[str, str] = {}
        self.counters_of: dict[str, set[str]] = {}


def read_device_class_mappings(block: FieldReader, gates: Mapping[str, bool]) -> None:
    """Check the mappings by Kueue's rules. They are stored as written. `gates` are the feature gates by which counters
    and capacity are counted, and whether each is on.
    """
    known = _Known()
    for item in block.items("deviceClassMappings", max_items=_MAX_MAPPINGS):
        name = item.text("name", required=True, max_length=_MAX_NAME, syntax=qualified_name)
        if name in known.names:
            item.error("name", "Duplicate value", "Join their deviceClassNames.", MistakeReason.DUPLICATE)
        known.names.add(name)
        counters = _read_sources(item, gates)
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


def _read_sources(item: FieldReader, gates: Mapping[str, bool]) -> list[str]:
    """Read the counters that a mapping counts instead of devices."""
    counters: list[str] = []
    capacities = 0
    for source in item.items("sources"):
        counter, capacity = source.fields("counter"), source.fields("capacity")
        if counter is None and capacity is None:
            source.require("counter", "Set exactly one source type per entry.")
        elif counter is not None and capacity is not None:
            source.error("capacity", "exactly one source type must be set per entry", "Remove one of them.")
        if counter is not None:
            _check_gate(source, "counter", COUNTERS_INTEGRATED, gates)
            counters.append(counter.text("name", required=True, syntax=dns_label))
            _read_devices(counter)
        if capacity is not None:
            _check_gate(source, "capacity", CAPACITY_INTEGRATED, gates)
            capacity.text("name", required=True, syntax=_dimension)
            capacities += 1
            _read_devices(capacity)
        source.close()
    if counters and capacities:
        item.error("sources", "cannot mix counter and capacity sources in the same mapping", "Write two mappings.")
    return counters


def _check_gate(source: FieldReader, field: str, gate: str, gates: Mapping[str, bool]) -> None:
    if not gates[gate]:
        rule = f"{field} sources require the feature gate {gate}, which is off"
        source.error(field, rule, "Enable it, or count devices.", MistakeReason.FORBIDDEN)


def _read_devices(source: FieldReader) -> None:
    """The driver of a source and the devices of it that count."""
    source.text("driver", required=True, max_length=_MAX_DRIVER, syntax=dns_subdomain)
    selector = source.required_fields("deviceSelector")
    cel = selector.required_fields("cel")
    cel.text("expression", required=True, syntax=_compiles)
    cel.close()
    selector.close()
    source.close()


def _dimension(name: str) -> str | None:
    """Return a C identifier of at most 32 characters, which a domain and a slash may precede."""
    domain, slash, identifier = name.rpartition("/")
    if slash and (len(domain) > _MAX_DRIVER or dns_subdomain(domain)):
        return f"must have a DNS subdomain of at most {_MAX_DRIVER} characters before the slash"
    if len(identifier) > _MAX_IDENTIFIER or not _IDENTIFIER.fullmatch(identifier):
        return f"must be a C identifier of at most {_MAX_IDENTIFIER} characters"
    return None


def _compiles(expression: str) -> str | None:
    try:
        compile_selector(expression)
    except CelError as error:
        return f"CEL compilation failed: {error}"
    return None
