"""Finds the published devices that a request selects, by the selectors of its class and its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduling.devices.claims.cel import compile_selector
from scheduling.devices.claims.cel_values import CelError, Domains, quantity, semver
from scheduling.devices.claims.objects import PublishedDevice

_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {"int": int, "bool": bool, "string": str, "version": semver}


def variables(device: PublishedDevice) -> dict[str, Any]:
    """Return the variables through which selectors see the device. Names without a domain belong to the driver's
    domain."""
    driver = device.id.driver
    return {
        "device": {
            "driver": driver,
            "allowMultipleAllocations": device.is_shared,
            "attributes": _by_domain(driver, device.attributes, _attribute),
            "capacity": _by_domain(driver, device.capacity, lambda found: quantity(str(found.get("value")))),
        }
    }


def _attribute(found: Mapping[str, Any]) -> Any:
    for kind, read in _READERS.items():
        if found.get(kind) is not None:
            return read(found[kind])
    return next((list(found[kind]) for kind in ("ints", "bools", "strings", "versions") if found.get(kind)), None)


def _by_domain(driver: str, found: Mapping[str, Any], read: Any) -> Domains:
    domains = Domains()
    for name, value in found.items():
        domain, _, identifier = name.rpartition("/")
        try:
            domains.setdefault(domain or driver, {})[identifier] = read(value or {})
        except CelError:
            continue  # neither a quantity nor a version: the selector finds no such key
    return domains


def selects(selectors: Iterable[str], names: Mapping[str, Any]) -> bool:
    """Return whether all selectors match a device. Raises CelError if a selector cannot be compiled or evaluated."""
    return all(compile_selector(selector)(names) for selector in selectors)
