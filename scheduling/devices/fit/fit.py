"""Whether one pod fits the cards of one node, and on which: HAMi's checks in HAMi's order, card by card.

Everything here works on copies of one node's usage; the scan over many nodes is in `placement_table`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.devices.fit.groups import choose_grouped_devices
from scheduling.devices.fit.links import choose_linked_devices
from scheduling.devices.fit.vendor_rules import (
    app_class_score,
    gives_count,
    in_profile,
    in_wanted_mode,
    tenant_refusal,
)
from scheduling.devices.requests.cores import taken_cores
from scheduling.devices.requests.policy import DevicePolicy, device_scores
from scheduling.devices.requests.requests import ONLINE
from scheduling.model.device import (
    MIG_MODE,
    PERCENTAGE_UNSET,
    Device,
    DeviceRequest,
    DeviceSlice,
    MigInstance,
    MigPlacement,
    MigProfile,
)
from scheduling.model.placement import DeviceConstraints, DeviceRefusal, PodDeviceRequest, ScoringWeights
from scheduling.model.vendor import NVIDIA, DeviceGroups, DeviceVendor, FitRules

_HIGHEST_START_FIRST = ("1g.", "3g.")

QuotaCheck = Callable[[str, int, int], bool]
"""(vendor, MiB, cores) that the pod would hold in all -> whether its namespace's quota allows that."""


@dataclass(frozen=True, slots=True)
class FitContext:
    """What a pod's fit depends on beside the node: its policy and constraints, resolved."""

    policy: DevicePolicy
    weights: ScoringWeights
    vendors: dict[str, DeviceVendor]
    match_by_model: bool = False
    score_includes_request: bool = False
    quota: QuotaCheck | None = None


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """Why a node's cards don't serve one container's request: cards per reason.

    `cards` is the number of cards of the vendor; `request` the one that failed. Without counts the node has too few.
    """

    request: DeviceRequest
    devices: int
    counts: Counter[DeviceRefusal]

    def __str__(self) -> str:
        if not self.counts:
            return DeviceRefusal.NODE_INSUFFICIENT_DEVICE
        return ", ".join(sorted(f"{count}/{self.devices} {reason}" for reason, count in self.counts.items()))


Containers = tuple[tuple[DeviceSlice, ...], ...]


def fit_pod(
    node: str, states: Sequence[DeviceState], pod: PodDeviceRequest, context: FitContext
) -> tuple[Containers | None, RequestRefusal | None]:
    """The slices of each container (init ones first) on this node's cards, or what refused the first that failed.

    Init containers run one after another and each sees the cards as they are now; the others add up.
    """
    held: list[tuple[DeviceSlice, ...]] = []
    for requests in pod.init_containers:
        slices, refused = _fit_container(node, [state.copy() for state in states], requests, pod, context, ())
        if slices is None:
            return None, refused
        held.append(slices)
    working = [state.copy() for state in states]
    for requests in pod.containers:
        taken = tuple(part for container in held[len(pod.init_containers) :] for part in container)
        slices, refused = _fit_container(node, working, requests, pod, context, taken)
        if slices is None:
            return None, refused
        held.append(slices)
    return tuple(held), None


def _fit_container(
    node: str,
    states: list[DeviceState],
    requests: Sequence[DeviceRequest],
    pod: PodDeviceRequest,
    context: FitContext,
    taken: tuple[DeviceSlice, ...],
) -> tuple[tuple[DeviceSlice, ...] | None, RequestRefusal | None]:
    if not requests:
        return (), None
    if not context.policy.ranked:
        _score(states, requests, context)
    held: list[DeviceSlice] = []
    for request in requests:
        vendor = context.vendors[request.vendor]
        device_fit = DeviceFit(
            node, request, vendor.rules, pod.constraints_of(vendor.common_word), context, (*taken, *held)
        )
        _sort(states, context.policy, device_fit.numa_bind)
        typed = [state for state in states if of_vendor(state.device, vendor.common_word, context.match_by_model)]
        picks, counts = device_fit.pick(typed)
        if picks is None:
            return None, RequestRefusal(request, len(typed), counts)
        for state, part in picks:
            state.hold(part)
            held.append(part)
    return tuple(held), None


def _sort(states: list[DeviceState], policy: DevicePolicy, numa_bind: bool) -> None:
    """Put the cards into the order in which they are tried.

    HAMi sorts the node's list in place: full ties of the pod's next container keep the order of this one.
    """
    states.sort(key=policy.sort_key(numa_bind))
    if not policy.ranked:
        for position, state in enumerate(reversed(states)):
            state.position = position


def of_vendor(device: Device, word: str, by_model: bool) -> bool:
    """Whether a card is the vendor's. HAMi itself looks for the vendor's word in the card's type (`by_model`).

    Of NVIDIA the type is the model's name; of other vendors their plugins, or HAMi itself, register the word.
    """
    if not by_model:
        return device.vendor == word
    return word.lower() in device.type.lower() or device.vendor == word != NVIDIA.common_word


def matches_type(device: Device, constraints: DeviceConstraints) -> bool:
    """The model against the lists of wanted and unwanted types (substrings, case ignored) and the wanted mode."""
    model = device.type.lower()
    if constraints.use_types and not any(word.lower() in model for word in constraints.use_types):
        return False
    if any(word.lower() in model for word in constraints.nouse_types):
        return False
    return constraints.mode is None or device.mode in constraints.mode


def matches_uuid(uuid: str, constraints: DeviceConstraints) -> bool:
    """The UUID against the lists of wanted and unwanted ones."""
    return (not constraints.use_uuids or uuid in constraints.use_uuids) and uuid not in constraints.nouse_uuids


def _score(states: Sequence[DeviceState], requests: Sequence[DeviceRequest], context: FitContext) -> None:
    used, totals = [], []
    for state in states:
        slots, cores, memory = state.used_slots, state.used_cores, state.used_memory_mib
        for request in requests:
            if _scored(state.device, request, context):
                slots, cores = slots + 1, cores + request.cores_percent
                memory += _scored_memory(state.device, request)
        used.append((slots, cores, memory))
        totals.append((state.device.slots, state.device.cores_percent, state.device.memory_mib))
    for state, score in zip(states, device_scores(used, totals, context.weights), strict=True):
        state.score = score


def _scored(device: Device, request: DeviceRequest, context: FitContext) -> bool:
    """Whether a card's score counts the request too.

    HAMi compares the vendor's word with the card's type: NVIDIA puts the model there, so its usage alone counts.
    """
    if context.score_includes_request:
        return of_vendor(device, request.vendor, context.match_by_model)
    return device.type == request.vendor


def _scored_memory(device: Device, request: DeviceRequest) -> int:
    """The MiB that the score counts: unlike the fit it goes by the percentage where both were asked for."""
    if request.memory_percentage not in (0, PERCENTAGE_UNSET):
        return device.memory_mib * request.memory_percentage // 100
    return request.memory_mib


@dataclass(slots=True)
class DeviceFit:
    """One walk over a vendor's cards, in the order in which they are tried."""

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
        return self.rules.numa_bind and self.constraints.numa_bind

    def pick(self, states: Sequence[DeviceState]) -> tuple[list[Pick] | None, Counter[DeviceRefusal]]:
        """The cards taken, each with its slice, or None and the number of cards per reason."""
        if self.request.count > len(states) and not self._may_repeat(states):
            return None, Counter()
        collect_all = self._linked or self._grouped or self._by_tenants
        group: int | None = None
        for state in states:
            reason = self._unusable(state)
            if reason is not None:
                self.counts[reason] += 1
                continue
            if self.numa_bind and group != state.numa:
                self._start_numa_group()
                group = state.numa
            self._try(state, collect_all)
            if not collect_all and len(self.picks) == self.request.count:
                return self.picks, self.counts
        chosen = self._choose(states) if collect_all and len(self.picks) >= self.request.count else None
        if chosen is None and self.picks:
            self.counts[DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST] += len(self.picks)
        return chosen, self.counts

    def _may_repeat(self, states: Iterable[DeviceState]) -> bool:
        """Whether a card may serve the request several times: MIG cards do, unless the pod wants another mode."""
        mode = self.constraints.mode
        return (mode is None or MIG_MODE in mode) and any(state.device.mode == MIG_MODE for state in states)

    @property
    def _linked(self) -> bool:
        return self.rules.topology_aware and self.context.policy.topology_aware

    @property
    def _grouped(self) -> bool:
        match self.rules.groups:
            case DeviceGroups.ANY:
                return False
            case DeviceGroups.HALVES:
                return True
            case DeviceGroups.ZONES:
                return self.constraints.zones and self.request.count > 1 and self.request.cores_percent >= 100
        return self.request.count > 1

    @property
    def _by_tenants(self) -> bool:
        return self.rules.tenant_classes and self.constraints.app_class == ONLINE

    def _choose(self, states: Iterable[DeviceState]) -> list[Pick] | None:
        """Of all fitting cards those that belong together."""
        if self._linked:
            return choose_linked_devices(self.picks, self.request.count)
        if self._grouped:
            unused = frozenset(state.index for state in states if not state.used_slots)
            return choose_grouped_devices(self.picks, self.request.count, self.rules, unused)
        best_first = sorted(self.picks, key=lambda pick: -app_class_score(ONLINE, pick[0].tenants))
        return best_first[: self.request.count]

    def _start_numa_group(self) -> None:
        """Cards of another NUMA node come: what was picked before is discarded (uncounted while links decide)."""
        if self.picks and not self._linked:
            self.counts[DeviceRefusal.NUMA_NOT_FIT] += len(self.picks)
        self.picks = []

    def _unusable(self, state: DeviceState) -> DeviceRefusal | None:
        """What rules a card out before NUMA groups are looked at."""
        if self.rules.split_modes and not in_wanted_mode(state.device, self.rules, self.constraints):
            return DeviceRefusal.MODE_NOT_FIT
        if not state.device.health:
            return DeviceRefusal.CARD_NOT_HEALTH
        if state.device.cordoned:
            return DeviceRefusal.CARD_CORDONED
        if self.rules.type_filter and not matches_type(state.device, self.constraints):
            return DeviceRefusal.CARD_TYPE_MISMATCH
        return None

    def _try(self, state: DeviceState, collect_all: bool) -> None:
        """Take the card if it fits; a MIG card may give several instances.

        As in HAMi, only their places on the card are looked at one after another: slots, memory and cores are compared
        with what the card held before this container.
        """
        while len(self.picks) < self.request.count or collect_all:
            outcome = self._slice(state)
            if isinstance(outcome, DeviceRefusal):
                self.counts[outcome] += 1
                return
            self.picks.append((state, outcome))
            if state.device.mode != MIG_MODE:
                return

    def _slice(self, state: DeviceState) -> DeviceSlice | DeviceRefusal:
        device, rules = state.device, self.rules
        if not matches_uuid(device.uuid, self.constraints):
            return DeviceRefusal.CARD_UUID_MISMATCH
        memory = self.request.memory_on(device.memory_mib)
        cores = taken_cores(self.request, rules, device.cores_percent, state.used_cores)
        if state.used_slots + self.request.slots > device.slots:
            return DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED
        if rules.mutex and self.context.policy.mutex and state.used_slots > 0:
            return DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        if rules.resource_quota and not self._within_quota(memory, min(self.request.cores_percent, 100)):
            return DeviceRefusal.RESOURCE_QUOTA_NOT_FIT
        if device.memory_mib - state.used_memory_mib < memory:
            return DeviceRefusal.CARD_INSUFFICIENT_MEMORY
        if cores is None:
            return DeviceRefusal.CARD_INSUFFICIENT_CORE
        if rules.exclusive_cores and device.cores_percent == 100 and cores == 100 and state.used_slots > 0:
            return DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        if rules.cores_exhausted and device.cores_percent and state.used_cores == device.cores_percent and cores == 0:
            return DeviceRefusal.CARD_COMPUTE_UNITS_EXHAUSTED
        return self._special(state, memory, cores)

    def _special(self, state: DeviceState, memory: int, cores: int) -> DeviceSlice | DeviceRefusal:
        """The checks that only some vendors or modes have."""
        device, rules = state.device, self.rules
        if rules.equal_slices and state.used_slots and state.used_memory_mib != memory * state.used_slots:
            return DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE
        if rules.one_device_per_pod and any(
            part.uuid != device.uuid for part in self.taken if part.vendor == self.request.vendor
        ):
            return DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE
        if rules.family_counts and not gives_count(device, rules, self.request.count):
            return DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE
        part = DeviceSlice(
            device.uuid, self.node, memory, cores, device.index, self.request.vendor, slots=self.request.slots
        )
        if rules.tenant_classes:
            return self._as_tenant(state, part)
        if rules.hardware_profiles:
            return in_profile(part, self.request, device, state.used_slots, state.used_memory_mib)
        if device.mode != MIG_MODE:
            return part
        mine = (held.mig for picked, held in self.picks if picked is state)
        in_use = [*state.mig, *(instance for instance in mine if instance is not None)]
        chosen = choose_mig_instance(device.mig_profiles, in_use, memory)
        if chosen is None:
            return DeviceRefusal.CARD_MIG_TOPOLOGY_INFEASIBLE
        profile, placement = chosen
        instance = MigInstance(profile.name, placement)
        return replace(part, memory_mib=profile.memory_mib, cores_percent=profile.cores_percent, mig=instance)

    def _as_tenant(self, state: DeviceState, part: DeviceSlice) -> DeviceSlice | DeviceRefusal:
        """The slice with what the pod is among the card's tenants."""
        mine = self.constraints
        refused = tenant_refusal(state.device, state.used_slots > 0, state.tenants, mine)
        return refused or replace(part, qos_policy=mine.qos_policy, app_class=mine.app_class)

    def _within_quota(self, memory: int, cores: int) -> bool:
        if self.context.quota is None:
            return True
        parts = [*self.taken, *(part for _, part in self.picks)]
        return self.context.quota(
            self.request.vendor,
            memory + sum(part.memory_mib for part in parts if part.vendor == self.request.vendor),
            cores + sum(part.cores_percent for part in parts if part.vendor == self.request.vendor),
        )


def choose_mig_instance(
    profiles: Iterable[MigProfile], in_use: Sequence[MigInstance], memory_mib: int
) -> tuple[MigProfile, MigPlacement] | None:
    """The smallest profile with that much memory that still has a free place, and the place; None if there is none.

    Profiles are tried by memory, then slice count. `1g` and `3g` instances go to the highest free start, so that the
    low starts stay open for the profiles that need them; all others to the lowest.
    """
    for profile in sorted(profiles, key=lambda profile: (profile.memory_mib, profile.slice_count)):
        if profile.memory_mib < memory_mib:
            continue
        downwards = profile.name.startswith(_HIGHEST_START_FIRST)
        for placement in sorted(profile.placements, key=lambda place: place.start, reverse=downwards):
            if not any(placement.overlaps(instance.placement) for instance in in_use):
                return profile, placement
    return None
