"""Reads objects of resource.k8s.io. Older versions are brought to the form of v1 first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduling.devices.claims.consumed_capacity import read_amounts, read_dimensions
from scheduling.devices.claims.objects import (
    ClaimSpec,
    DeviceClass,
    DeviceId,
    DevicePool,
    DeviceRequest,
    PublishedDevice,
)
from scheduling.model.quantity import InvalidQuantity, parse_quantity

_OF_A_REQUEST: Final = (
    "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity",
)  # fmt: skip
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")


def as_v1(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of v1beta1, v1beta2 or v1 in the form of v1. In v1beta1, the fields of a device are under
    `basic`, and a request has the fields of `exactly` directly."""
    found = {**manifest, "apiVersion": "resource.k8s.io/v1"}
    if manifest.get("apiVersion") != "resource.k8s.io/v1beta1":
        return found
    spec = dict(manifest.get("spec") or {})
    if manifest.get("kind") == "ResourceSlice" and spec.get("devices"):
        spec["devices"] = [{"name": each.get("name"), **(each.get("basic") or {})} for each in spec["devices"]]
    if manifest.get("kind") == "ResourceClaim":
        spec = _claim_spec_as_v1(spec)
    if manifest.get("kind") == "ResourceClaimTemplate":
        spec["spec"] = _claim_spec_as_v1(spec.get("spec") or {})
    return {**found, "spec": spec}


def _claim_spec_as_v1(spec: Mapping[str, Any]) -> dict[str, Any]:
    devices = dict(spec.get("devices") or {})
    devices["requests"] = [_request_as_v1(each) for each in devices.get("requests") or ()]
    return {**spec, "devices": devices}


def _request_as_v1(request: Mapping[str, Any]) -> dict[str, Any]:
    if request.get("firstAvailable"):
        return dict(request)
    exactly = {key: request[key] for key in _OF_A_REQUEST if key in request}
    return {**{key: value for key, value in request.items() if key not in exactly}, "exactly": exactly}


def read_class(manifest: Mapping[str, Any]) -> DeviceClass:
    """Read a DeviceClass."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    return DeviceClass(
        metadata["name"],
        _selectors(spec),
        spec.get("extendedResourceName") or "",
        metadata.get("creationTimestamp") or "",
        tuple(spec.get("config") or ()),
    )


def read_claim_spec(spec: Mapping[str, Any]) -> ClaimSpec:
    """Read the spec of a ResourceClaim, in the form of v1."""
    devices = spec.get("devices") or {}
    return ClaimSpec(
        tuple(_request(each) for each in devices.get("requests") or ()),
        tuple(devices.get("constraints") or ()),
        tuple(devices.get("config") or ()),
    )


def _request(request: Mapping[str, Any]) -> DeviceRequest:
    name = request.get("name") or ""
    exactly = request.get("exactly")
    if request.get("firstAvailable"):
        return DeviceRequest(name, alternatives=True, mode="")
    if not isinstance(exactly, Mapping):
        return DeviceRequest(name, mode="")
    mode = exactly.get("allocationMode") or "ExactCount"
    return DeviceRequest(
        name,
        exactly.get("deviceClassName") or "",
        _selectors(exactly),
        int(exactly.get("count") or (1 if mode == "ExactCount" else 0)),
        mode,
        bool(exactly.get("adminAccess")),
        capacity=read_amounts((exactly.get("capacity") or {}).get("requests")),
    )


def _selectors(holder: Mapping[str, Any]) -> tuple[str, ...]:
    found = (each.get("cel") for each in holder.get("selectors") or ())
    return tuple(cel.get("expression") or "" for cel in found if cel)


def read_pools(slices: Iterable[Mapping[str, Any]]) -> tuple[DevicePool, ...]:
    """Read the pools of ResourceSlices, each in its newest generation, with its devices in the order of the slices'
    names."""
    by_pool: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for found in sorted(slices, key=lambda each: each["metadata"]["name"]):
        spec = found.get("spec") or {}
        key = (spec.get("driver") or "", (spec.get("pool") or {}).get("name") or "")
        by_pool.setdefault(key, []).append(spec)
    return tuple(_pool(driver, name, specs) for (driver, name), specs in sorted(by_pool.items()))


def _pool(driver: str, name: str, specs: list[Mapping[str, Any]]) -> DevicePool:
    newest = max(_generation(spec) for spec in specs)
    current = [spec for spec in specs if _generation(spec) == newest]
    counters = {
        (shared.get("name") or "", counter): _nanos(amount)
        for spec in current
        for shared in spec.get("sharedCounters") or ()
        for counter, amount in (shared.get("counters") or {}).items()
    }
    devices = tuple(_device(driver, name, spec, each) for spec in current for each in spec.get("devices") or ())
    wanted = int((current[0].get("pool") or {}).get("resourceSliceCount") or 0)
    return DevicePool(driver, name, newest, devices, counters, len(current) == wanted)


def _generation(spec: Mapping[str, Any]) -> int:
    return int((spec.get("pool") or {}).get("generation") or 0)


def _device(driver: str, pool: str, spec: Mapping[str, Any], device: Mapping[str, Any]) -> PublishedDevice:
    of_device = device.get("nodeName") if spec.get("perDeviceNodeSelection") else spec.get("nodeName")
    return PublishedDevice(
        DeviceId(driver, pool, device.get("name") or ""),
        of_device or "",
        device.get("attributes") or {},
        device.get("capacity") or {},
        {
            (taken.get("counterSet") or "", counter): _nanos(amount)
            for taken in device.get("consumesCounters") or ()
            for counter, amount in (taken.get("counters") or {}).items()
        },
        any(taint.get("effect") in _KEEPS_AWAY for taint in device.get("taints") or ()),
        bool(device.get("allowMultipleAllocations")),
        read_dimensions(device.get("capacity") or {}),
    )


def _nanos(amount: Any) -> int:
    """Return a counter's value; 0 for a counter that cannot be read."""
    try:
        return parse_quantity((amount or {}).get("value") or 0)
    except (InvalidQuantity, AttributeError):
        return 0


def read_taken(claim: Mapping[str, Any]) -> frozenset[DeviceId]:
    """Return the devices that a ResourceClaim holds exclusively. With admin access it holds none."""
    return frozenset(_device_of(result) for result in _results(claim) if not result.get("shareID"))


def read_shares(claims: Iterable[Mapping[str, Any]]) -> dict[DeviceId, dict[str, int]]:
    """Return the parts of devices that ResourceClaims share: dimension -> nano units, summed over all claims."""
    found: dict[DeviceId, dict[str, int]] = {}
    for result in (result for claim in claims for result in _results(claim) if result.get("shareID")):
        share = found.setdefault(_device_of(result), {})
        for name, amount in (result.get("consumedCapacity") or {}).items():
            share[name] = share.get(name, 0) + _nanos({"value": amount})
    return found


def _device_of(result: Mapping[str, Any]) -> DeviceId:
    return DeviceId(result.get("driver") or "", result.get("pool") or "", result.get("device") or "")


def _results(claim: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return (each for each in results if not each.get("adminAccess"))
