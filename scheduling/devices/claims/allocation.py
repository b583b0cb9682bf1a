"""Chooses devices of a node for the claims of one pod, as Kubernetes' scheduler does: the first that fit."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.consumed_capacity import consumed_by
from scheduling.devices.claims.matching import selects, variables
from scheduling.devices.claims.objects import ClaimSpec, DeviceId, DeviceObjects, DeviceRequest, PublishedDevice
from scheduling.model.quantity import write_quantity

MAX_STEPS: Final = 10_000
"""How many devices may be tried for one pod."""
_FROM_CLASS: Final = "FromClass"
_FROM_CLAIM: Final = "FromClaim"

Counter = tuple[str, str, str, str]
"""(driver, pool, counter set, counter)."""
Shares = dict[DeviceId, dict[str, int]]
"""The parts of devices that claims hold: dimension -> nano units, the sum of all claims."""


class Chosen(NamedTuple):
    """A device for a request. `consumed` is the part of it that the claim holds beside others, in nano units; None: the
    claim holds the device alone.
    """

    request: str
    device: DeviceId
    admin_access: bool
    consumed: Mapping[str, int] | None = None


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
    shares: Shares = field(default_factory=dict)
    steps: int = MAX_STEPS
    chosen: list[tuple[int, Chosen]] = field(default_factory=list)

    def fits(self, device: PublishedDevice, consumed: Mapping[str, int]) -> bool:
        if device.id in self.taken or (device.id in self.shares and not device.is_shared):
            return False
        if device.id in self.shares:
            held = self.shares[device.id]
            return all(held.get(name, 0) + amount <= device.dimensions[name].value for name, amount in consumed.items())
        return all(self.left.get((*device.id[:2], *key), 0) >= value for key, value in device.consumes.items())

    def take(self, device: PublishedDevice, consumed: Mapping[str, int]) -> None:
        if not device.is_shared:
            self.taken.add(device.id)
        if device.id not in self.shares:
            self._count(device, 1)
        if device.is_shared:
            held = self.shares.get(device.id, {})
            self.shares[device.id] = {name: held.get(name, 0) + amount for name, amount in consumed.items()}

    def give_back(self, device: PublishedDevice, held: dict[str, int] | None) -> None:
        """Undo `take`. `held` is the part of the device that was held before, if any."""
        self.taken.discard(device.id)
        if held is None:
            self.shares.pop(device.id, None)
            self._count(device, -1)
        else:
            self.shares[device.id] = held

    def _count(self, device: PublishedDevice, sign: int) -> None:
        for key, value in device.consumes.items():
            counter = (*device.id[:2], *key)
            self.left[counter] = self.left.get(counter, 0) - sign * value


def allocate(
    specs: Sequence[ClaimSpec], node: str, objects: DeviceObjects, taken: Collection[DeviceId], shares: Shares
) -> list[list[Chosen]] | None:
    """Return free devices of the node for each claim of a pod; None if there are not enough. `taken` and `shares` are
    held by other claims."""
    here = [device for pool in objects.pools if pool.complete for device in pool.devices if device.node == node]
    names = [(device, variables(device)) for device in here if not device.tainted]
    wanted = [each for number, spec in enumerate(specs) for each in _wanted(number, spec, objects, names)]
    search = _Search(set(taken), _counters(objects, {*taken, *shares}), dict(shares))
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
        consumed = consumed_by(device.dimensions, each.request.capacity)
        if consumed is None:
            continue
        free = each.request.admin_access or search.fits(device, consumed)
        used = not device.is_shared and any(
            claim == each.claim and chosen.device == device.id for claim, chosen in search.chosen
        )
        if not free or used:
            continue
        held = search.shares.get(device.id)
        is_part = device.is_shared and not each.request.admin_access
        if not each.request.admin_access:
            search.take(device, consumed)
        chosen = Chosen(each.request.name, device.id, each.request.admin_access, consumed if is_part else None)
        search.chosen.append((each.claim, chosen))
        if _choose(wanted, place + 1, search):
            return True
        search.chosen.pop()
        if not each.request.admin_access:
            search.give_back(device, held)
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
        if each.admin_access:
            result["adminAccess"] = True
        if each.consumed is not None:
            result["shareID"] = str(uuid.uuid4())
            result["consumedCapacity"] = {key: write_quantity(nanos) for key, nanos in each.consumed.items()}
        results.append(result)
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
