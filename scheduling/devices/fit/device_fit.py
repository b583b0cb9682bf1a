"""Fits one container's request to one node: HAMi's checks in HAMi's order, device by device.

Most vendors share these rules. `scheduling.devices.vendors` has the exceptions of single vendors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.devices.requests.cores import taken_cores
from scheduling.devices.requests.policy import DevicePolicy
from scheduling.model.device import PERCENTAGE_UNSET, Device, DeviceRequest, DeviceSlice
from scheduling.model.placement import DeviceConstraints, DeviceRefusal, ScoringWeights
from scheduling.model.vendor import NVIDIA, DeviceVendor, FitRules

QuotaCheck = Callable[[str, int, int], bool]
"""(vendor, MiB, cores) that the pod would hold in total -> whether its namespace's quota allows that."""


@dataclass(frozen=True, slots=True)
class FitContext:
    """The inputs of a pod's fit apart from the node: policy and constraints, resolved."""

    policy: DevicePolicy
    weights: ScoringWeights
    vendors: Mapping[str, DeviceVendor]
    as_hami: bool = False
    score_includes_request: bool = False
    quota: QuotaCheck | None = None


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """The reasons why a node's devices cannot serve one container's request, as reason -> number of devices.

    `devices` is the number of the vendor's devices; `request` is the refused request. Without counts, the node has too
    few devices.
    """

    request: DeviceRequest
    devices: int
    counts: Counter[DeviceRefusal]

    def __str__(self) -> str:
        if not self.counts:
            return DeviceRefusal.NODE_INSUFFICIENT_DEVICE
        return ", ".join(sorted(f"{count}/{self.devices} {reason}" for reason, count in self.counts.items()))


def of_vendor(device: Device, word: str, by_model: bool) -> bool:
    """Return whether a device belongs to the vendor. With `by_model`, the vendor's common word is looked up in the
    device's type, as HAMi does: NVIDIA registers the model name as the type, other vendors register the word."""
    if not by_model:
        return device.vendor == word
    return word.lower() in device.type.lower() or device.vendor == word != NVIDIA.common_word


def matches_type(device: Device, constraints: DeviceConstraints) -> bool:
    """Return whether the model is allowed by the wanted and unwanted types (substrings, case ignored) and the wanted
    mode."""
    model = device.type.lower()
    if constraints.use_types and not any(word.lower() in model for word in constraints.use_types):
        return False
    if any(word.lower() in model for word in constraints.nouse_types):
        return False
    return constraints.mode is None or device.mode in constraints.mode


def matches_uuid(uuid: str, constraints: DeviceConstraints) -> bool:
    """Return whether the UUID is allowed by the wanted and unwanted UUIDs."""
    return (not constraints.use_uuids or uuid in constraints.use_uuids) and uuid not in constraints.nouse_uuids


@dataclass(slots=True)
class DeviceFit:
    """One request on one node. `taken` are the slices that earlier requests of the pod took there."""

    node: str
    request: DeviceRequest
    rules: FitRules
    constraints: DeviceConstraints
    context: FitContext
    taken: Collection[DeviceSlice]
    counts: Counter[DeviceRefusal] = field(default_factory=Counter)
    picks: list[Pick] = field(default_factory=list)

    @property
    def numa_bind(self) -> bool:
        """Whether all devices must be on one NUMA node."""
        return self.rules.numa_bind and self.constraints.numa_bind

    def may_repeat(self, states: Sequence[DeviceState]) -> bool:
        """Return whether a device may serve the request several times."""
        return False

    def collects_all(self, states: Sequence[DeviceState]) -> bool:
        """Return whether `choose` selects among all fitting devices instead of taking the first ones in order."""
        return False

    def choose(self, states: Sequence[DeviceState]) -> list[Pick] | None:
        """Select among all fitting devices; None if no selection satisfies the vendor's rule."""
        return self.picks[: self.request.count]

    def pick(self, states: Sequence[DeviceState]) -> list[Pick] | RequestRefusal:
        """Return the chosen devices, each with its slice. `states` are the vendor's devices in the order in which they
        are tried."""
        collects_all = self.collects_all(states)
        group: int | None = None
        for state in states:
            reason = self.excluded(state)
            if reason is not None:
                self.counts[reason] += 1
                continue
            if self.numa_bind and group != state.numa:
                self.start_numa_group()
                group = state.numa
            self.take(state, collects_all)
            if not collects_all and len(self.picks) == self.request.count:
                return self.picks
        chosen = self.choose(states) if collects_all and len(self.picks) >= self.request.count else None
        if chosen is not None:
            return chosen
        if self.picks:
            self.counts[DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST] += len(self.picks)
        return RequestRefusal(self.request, len(states), self.counts)

    def start_numa_group(self) -> None:
        """Start a new NUMA node: discard the devices picked on the one before."""
        if self.picks:
            self.counts[DeviceRefusal.NUMA_NOT_FIT] += len(self.picks)
        self.picks = []

    def excluded(self, state: DeviceState) -> DeviceRefusal | None:
        """Return the refusal that does not depend on usage; None if there is none."""
        if not state.device.health:
            return DeviceRefusal.CARD_NOT_HEALTH
        if state.device.cordoned:
            return DeviceRefusal.CARD_CORDONED
        if self.rules.type_filter and not matches_type(state.device, self.constraints):
            return DeviceRefusal.CARD_TYPE_MISMATCH
        return None

    def take(self, state: DeviceState, collects_all: bool) -> None:
        """Pick the device if it fits."""
        outcome = self.slice_of(state)
        if isinstance(outcome, DeviceRefusal):
            self.counts[outcome] += 1
        else:
            self.picks.append((state, outcome))

    def slice_of(self, state: DeviceState) -> DeviceSlice | DeviceRefusal:
        """Return the slice that the request gets on a device, or the reason why it gets none."""
        shared = self.refused_sharing(state)
        if shared is not None:
            return shared
        memory, cores = self.memory_of(state), self.cores_of(state)
        if not self.rules.slots_only:
            refused = self.refused_amounts(state, memory, cores)
            if refused is not None:
                return refused
        if self.rules.one_device_per_pod and not self.with_the_pod(state.device.uuid):
            return DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE
        return self.made(state, memory, cores or 0)

    def made(self, state: DeviceState, memory: int, cores: int) -> DeviceSlice | DeviceRefusal:
        """Return the slice of a device that has passed all common checks. A vendor may add its own checks here."""
        device = state.device
        return DeviceSlice(device.uuid, self.node, memory, cores, device.index, self.request.vendor, slots=self.slots)

    def hold(self, state: DeviceState, part: DeviceSlice) -> None:
        """Count a picked slice as usage of its device."""
        state.hold(part)

    @property
    def slots(self) -> int:
        """The slots that the request takes on a device."""
        return self.request.slots

    @property
    def mutex(self) -> bool:
        """Return whether the pod refuses devices that are in use."""
        return self.rules.mutex and self.context.policy.mutex

    def memory_of(self, state: DeviceState) -> int:
        """Return the MiB that the request takes of a device."""
        return 0 if self.rules.slots_only else self.request.memory_on(state.device.memory_mib)

    def total_cores(self, device: Device) -> int:
        """Return the cores that a device offers to the pod."""
        return device.cores_percent

    def cores_of(self, state: DeviceState) -> int | None:
        """Return the cores that the request takes of a device; None if too few are free."""
        if self.rules.slots_only:
            return 0
        return taken_cores(self.request, self.rules, self.total_cores(state.device), state.used_cores)

    def refused_sharing(self, state: DeviceState) -> DeviceRefusal | None:
        """Return a refusal because of UUID, slots or mutex, or None."""
        if self.rules.uuid_filter and not matches_uuid(state.device.uuid, self.constraints):
            return DeviceRefusal.CARD_UUID_MISMATCH
        if state.used_slots + self.slots > state.device.slots:
            return DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED
        if self.mutex and self.occupied(state):
            return DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        return None

    def occupied(self, state: DeviceState) -> bool:
        """Return whether a device counts as in use for the policy `mutex`."""
        return state.used_slots > 0

    def refused_amounts(self, state: DeviceState, memory: int, cores: int | None) -> DeviceRefusal | None:
        """Return a refusal because of quota, memory or cores, or None."""
        device, rules = state.device, self.rules
        if rules.resource_quota and not self._within_quota(memory, min(self.request.cores_percent, 100)):
            return DeviceRefusal.RESOURCE_QUOTA_NOT_FIT
        if device.memory_mib - state.used_memory_mib < memory:
            return DeviceRefusal.CARD_INSUFFICIENT_MEMORY
        if cores is None:
            return DeviceRefusal.CARD_INSUFFICIENT_CORE
        total = self.total_cores(device)
        if rules.exclusive_cores and total == 100 == cores and state.used_slots > 0:
            return DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        if rules.cores_exhausted and total and state.used_cores == total and cores == 0:
            return DeviceRefusal.CARD_COMPUTE_UNITS_EXHAUSTED
        return None

    def with_the_pod(self, uuid: str) -> bool:
        """Return whether the pod has no device of the vendor other than this one."""
        return all(part.uuid == uuid for part in self.taken if part.vendor == self.request.vendor)

    def _within_quota(self, memory: int, cores: int) -> bool:
        if self.context.quota is None:
            return True
        parts = [*self.taken, *(part for _, part in self.picks)]
        return self.context.quota(
            self.request.vendor,
            memory + sum(part.memory_mib for part in parts if part.vendor == self.request.vendor),
            cores + sum(part.cores_percent for part in parts if part.vendor == self.request.vendor),
        )


def scored_memory(device: Device, request: DeviceRequest) -> int:
    """Return the MiB that a score counts. If an amount and a percentage are set, it uses the percentage, unlike the
    fit."""
    if request.memory_percentage not in (0, PERCENTAGE_UNSET):
        return device.memory_mib * request.memory_percentage // 100
    return request.memory_mib
