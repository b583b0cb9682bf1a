"""Chooses devices of a node for the claims of one pod, as Kubernetes' scheduler does: the first that fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.matching import selects, variables
from scheduling.devices.claims.objects import ClaimSpec, DeviceId, DeviceObjects, DeviceRequest, PublishedDevice

MAX_STEPS: Final = 10_000
"""How many devices may be tried for one pod."""
_FROM_CLASS: Final = "FromClass"
_FROM_CLAIM: Final = "FromClaim"

Counter = tuple[str, str, str, str]
"""(driver, pool, counter set, counter)."""


class Chosen(NamedTuple):
    """A device for a request."""

    request: str
    device: DeviceId
    admin_access: bool


@dataclass(slots=True)
class _Wanted:
    """One device that a claim requests, and its candidates."""

    claim: int
    request: DeviceRequest
    candidates: tuple[PublishedDevice, ...]


@dataclass(slots=True)
class _Search:
    taken: set[DeviceId]
    left: dict[Counter, int]
    steps: int = MAX_STEPS
    chosen: list[tuple[int, Chosen]] = field(default_factory=list)

    def fits(self, device: PublishedDevice) -> bool:
        return device.id not in self.taken and all(
            self.left.get((*device.id[:2], *key), 0) >= value for key, value in device.consumes.items()
        )

    def take(self, device: PublishedDevice, sign: int = 1) -> None:
        (self.taken.add if sign > 0 else self.taken.discard)(device.id)
        for key, value in device.consumes.items():
            counter = (*device.id[:2], *key)
            self.left[counter] = self.left.get(counter, 0) - sign * value


def allocate(
    specs: Sequence[ClaimSpec], node: str, objects: DeviceObjects, taken: Collection[DeviceId]
) -> list[list[Chosen]] | None:
    """Devices for each claim of a pod, all of them free and on the node; None if there are not enough."""
    here = [device for pool in objects.pools if pool.complete for device in pool.devices if device.node == node]
    names = [(device, variables(device)) for device in here if not device.tainted]
    wanted = [each for number, spec in enumerate(specs) for each in _wanted(number, spec, objects, names)]
    search = _Search(set(taken), _counters(objects, taken))
    if not _choose(wanted, 0, search):
        return None
    found: list[list[Chosen]] = [[] for _ in specs]
    for number, chosen in search.chosen:
        found[number].append(chosen)
    return found


def _wanted(
    number: int, spec: ClaimSpec, objects: DeviceObjects, names: Sequence[tuple[PublishedDevice, Mapping[str, Any]]]
) -> Iterator[_Wanted]:
    for request in spec.requests:
        device_class = objects.classes.get(request.device_class)
        if device_class is None or request.mode != "ExactCount":
            yield _Wanted(number, request, ())
            continue
        selectors = (*device_class.selectors, *request.selectors)
        candidates = tuple(device for device, found in names if _matches(selectors, found))
        for _ in range(request.count):
            yield _Wanted(number, request, candidates)


def _choose(wanted: Sequence[_Wanted], place: int, search: _Search) -> bool:
    if place == len(wanted):
        return True
    each = wanted[place]
    for device in each.candidates:
        search.steps -= 1
        if search.steps < 0:
            return False
        free = each.request.admin_access or search.fits(device)
        used = any(claim == each.claim and chosen.device == device.id for claim, chosen in search.chosen)
        if not free or used:
            continue
        if not each.request.admin_access:
            search.take(device)
        search.chosen.append((each.claim, Chosen(each.request.name, device.id, each.request.admin_access)))
        if _choose(wanted, place + 1, search):
            return True
        search.chosen.pop()
        if not each.request.admin_access:
            search.take(device, -1)
    return False


def _matches(selectors: Sequence[str], names: Mapping[str, Any]) -> bool:
    try:
        return selects(selectors, names)
    except CelError:
        return False


def _counters(objects: DeviceObjects, taken: Collection[DeviceId]) -> dict[Counter, int]:
    """Return the free amounts of the shared counters."""
    left: dict[Counter, int] = defaultdict(int)
    for pool in objects.pools:
        for key, value in pool.counters.items():
            left[(pool.driver, pool.name, *key)] += value
        for device in pool.devices:
            if device.id in taken:
                for key, value in device.consumes.items():
                    left[(pool.driver, pool.name, *key)] -= value
    return left


def allocation_status(chosen: Sequence[Chosen], spec: ClaimSpec, objects: DeviceObjects, node: str) -> dict[str, Any]:
    """`status.allocation` of a claim as Kubernetes' scheduler writes it."""
    results = []
    for each in chosen:
        driver, pool, name = each.device
        result: dict[str, Any] = {"request": each.request, "driver": driver, "pool": pool, "device": name}
        results.append({**result, "adminAccess": True} if each.admin_access else result)
    config = [
        {**found, "source": _FROM_CLASS, "requests": [request.name]}
        for request in spec.requests
        if request.device_class in objects.classes
        for found in objects.classes[request.device_class].config
    ]
    config += [{**found, "source": _FROM_CLAIM} for found in spec.config]
    devices: dict[str, Any] = {"results": results, "config": config} if config else {"results": results}
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"devices": devices, "nodeSelector": {"nodeSelectorTerms": [here]}}
