"""Explains why no node takes a pod: HAMi's reason words with counts per node, the nearest node, and a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.fit.device_fit import RequestRefusal, of_vendor
from scheduling.devices.fit.device_state import DeviceState
from scheduling.devices.requests.cores import devices_with_cores
from scheduling.devices.table import CORES, MEMORY_MIB, SLOTS, DeviceTable
from scheduling.devices.vendors.nvidia import missing_mig_instance
from scheduling.model.device import MIG_MODE, PERCENTAGE_UNSET, DeviceRequest, DeviceSlice, MigProfile
from scheduling.model.placement import (
    DeviceConstraints,
    DeviceRefusal,
    NodeRefusal,
    PlacementRefusal,
    PodSetToPlace,
    QuotaShortage,
    RefusedBy,
)
from scheduling.model.vendor import DeviceVendor

_ORDER = tuple(DeviceRefusal)
_RANK = {reason: number for number, reason in enumerate(_ORDER)}
_SERVING, _OTHER_VENDOR = -1, -2

_WORDS = {
    DeviceRefusal.MODE_NOT_FIT: "split in another way than the pod requests",
    DeviceRefusal.CARD_NOT_HEALTH: "unhealthy",
    DeviceRefusal.CARD_UNHEALTHY: "unhealthy",
    DeviceRefusal.CARD_CORDONED: "cordoned",
    DeviceRefusal.CARD_TYPE_MISMATCH: "of a type that the pod does not accept",
    DeviceRefusal.NUMA_NOT_FIT: "in a NUMA node with too few others",
    DeviceRefusal.CARD_UUID_MISMATCH: "excluded by UUID",
    DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED: "without a free slot",
    DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: "in use, but the pod requires unused devices",
    DeviceRefusal.RESOURCE_QUOTA_NOT_FIT: "beyond the namespace's ResourceQuota",
    DeviceRefusal.CARD_INSUFFICIENT_MEMORY: "short of memory",
    DeviceRefusal.CARD_INSUFFICIENT_CORE: "short of cores",
    DeviceRefusal.CARD_COMPUTE_UNITS_EXHAUSTED: "with all cores reserved",
    DeviceRefusal.CARD_QOS_POLICY_MISMATCH: "shared under another QoS policy",
    DeviceRefusal.CARD_APP_CLASS_MISMATCH: "shared with pods of another application class",
    DeviceRefusal.CARD_MIG_TOPOLOGY_INFEASIBLE: "without the requested MIG instance",
    DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE: "excluded by the vendor's rules",
    DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST: "free",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The shortage of a node: a reason, and the details about its devices."""

    reason: str
    devices: RequestRefusal | None = None

    def has(self, reason: DeviceRefusal) -> bool:
        """Return whether the node or one of its devices was refused for this reason."""
        return reason in self.devices.counts if self.devices is not None else self.reason == reason

    def counts(self) -> dict[str, int]:
        """Reason -> the number of the node's devices; 0 if it is about the node alone."""
        if self.devices is None:
            return {self.reason: 0}
        if not self.devices.counts:
            return {DeviceRefusal.NODE_INSUFFICIENT_DEVICE: self.devices.devices}
        return {str(reason): count for reason, count in self.devices.counts.items()}

    @property
    def nearness(self) -> tuple[int, int, int]:
        """Return the sort key of a refusal; larger keys are nearer to fitting. First come nodes with enough devices,
        then nodes with more free devices, then devices that passed more checks."""
        if self.devices is None:
            return (0, 0, 0)
        counts = self.devices.counts
        free = counts.get(DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, 0)
        return (2 if counts else 1, free, sum(_RANK[reason] * count for reason, count in counts.items()))


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of all candidate nodes. `rows` are rows of the device table sorted by name; `which` is the index
    in `kinds` for each.

    `nearness` and `reasons` are per kind; `reasons` uses the words of `PlacementRefusal.reasons`.
    """

    rows: NDArray[np.int64]
    kinds: Sequence[Finding]
    which: NDArray[np.int32]
    nearness: Sequence[tuple[int, int, int]]
    reasons: dict[str, str]

    @property
    def nearest(self) -> tuple[int, Finding] | None:
        """The nearest row and its finding; ties go to the smaller name."""
        if not len(self.rows):
            return None
        order = {nearness: rank for rank, nearness in enumerate(sorted(set(self.nearness)))}
        ranks = np.array([order[nearness] for nearness in self.nearness])[self.which]
        place = int(np.argmax(ranks))
        return int(self.rows[place]), self.kinds[int(self.which[place])]

    def refused(self) -> list[RefusedBy]:
        """Return how many nodes and devices each reason refuses, most nodes first."""
        nodes: Counter[str] = Counter()
        devices: Counter[str] = Counter()
        for kind, count in zip(self.kinds, np.bincount(self.which, minlength=len(self.kinds)).tolist(), strict=True):
            for reason, refused in kind.counts().items():
                nodes[reason] += count
                devices[reason] += count * refused
        found = [RefusedBy(reason, count, devices[reason]) for reason, count in nodes.items() if count]
        return sorted(found, key=lambda refused: (-refused.nodes, -refused.devices, refused.reason))

    def row_with(self, reason: DeviceRefusal) -> int | None:
        """Return the first row refused for this reason, possibly among others; None if there is none."""
        kinds = [number for number, kind in enumerate(self.kinds) if kind.has(reason)]
        places = np.flatnonzero(np.isin(self.which, kinds))
        return int(self.rows[places[0]]) if len(places) else None


def refused_devices(
    table: DeviceTable,
    rows: NDArray[np.int64],
    request: DeviceRequest,
    vendor: DeviceVendor,
    constraints: DeviceConstraints,
    mutex: bool,
) -> tuple[list[Finding], NDArray[np.int64]]:
    """Return the refusals of the nodes' devices for a pod with one request, counted as a fit on each node would count
    them.

    Returns the distinct findings, and the index of each row's finding.
    """
    codes = _codes(table, rows, request, vendor, constraints, mutex) - _OTHER_VENDOR
    width = len(_ORDER) + 2
    shifted = np.arange(len(rows))[:, None] * width + codes
    per_node = np.bincount(shifted.ravel(), minlength=len(rows) * width).reshape(len(rows), width)
    present = np.flatnonzero(per_node.any(axis=0))
    base = codes.shape[1] + 1
    if base ** len(present) < 2**62:
        keys = per_node[:, present] @ (base ** np.arange(len(present)))
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(per_node, axis=0, return_index=True, return_inverse=True)
    refusals = [_pattern(request, per_node[row]) for row in first.tolist()]
    return [Finding(str(refused), refused) for refused in refusals], which.ravel()


def _pattern(request: DeviceRequest, pattern: NDArray[np.int64]) -> RequestRefusal:
    serving = int(pattern[_SERVING + 2])
    counts = {reason: int(pattern[number + 2]) for number, reason in enumerate(_ORDER) if pattern[number + 2]}
    devices = serving + sum(counts.values())
    if request.count > devices:
        return RequestRefusal(request, devices, Counter())
    if serving:
        counts[DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST] = serving
    return RequestRefusal(request, devices, Counter(counts))


def _codes(
    table: DeviceTable,
    rows: NDArray[np.int64],
    request: DeviceRequest,
    vendor: DeviceVendor,
    constraints: DeviceConstraints,
    mutex: bool,
) -> NDArray[np.int64]:
    rules = vendor.rules
    totals, used = table.totals[:, rows], table.used[:, rows]
    wanted = min(request.cores_percent, 100)
    if request.memory_mib or request.memory_percentage > 100:
        memory: NDArray[np.int64] | int = request.memory_mib
    else:
        memory = totals[MEMORY_MIB] * request.memory_percentage // 100
    everything = DeviceConstraints()
    types = DeviceConstraints(constraints.use_types, constraints.nouse_types, mode=constraints.mode)
    uuids = DeviceConstraints(use_uuids=constraints.use_uuids, nouse_uuids=constraints.nouse_uuids)
    of_the_vendor = table.device_mask(vendor.common_word, everything, False)[rows]
    never = np.zeros(of_the_vendor.shape, dtype=np.bool_)
    in_use = used[SLOTS] > 0
    checks = [
        (DeviceRefusal.CARD_NOT_HEALTH, ~table.healthy[rows]),
        (DeviceRefusal.CARD_CORDONED, table.cordoned[rows]),
        (
            DeviceRefusal.CARD_TYPE_MISMATCH,
            ~table.device_mask(vendor.common_word, types, True)[rows] if rules.type_filter else never,
        ),
        (DeviceRefusal.CARD_UUID_MISMATCH, ~table.device_mask(vendor.common_word, uuids, False)[rows]),
        (DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED, used[SLOTS] + request.slots > totals[SLOTS]),
        (DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT, in_use if rules.mutex and mutex else never),
        (DeviceRefusal.CARD_INSUFFICIENT_MEMORY, totals[MEMORY_MIB] - used[MEMORY_MIB] < memory),
        (DeviceRefusal.CARD_INSUFFICIENT_CORE, ~devices_with_cores(request, rules, totals[CORES], used[CORES])),
        (
            DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
            in_use & (totals[CORES] == 100) if rules.exclusive_cores and wanted == 100 else never,
        ),
        (
            DeviceRefusal.CARD_COMPUTE_UNITS_EXHAUSTED,
            (used[CORES] == totals[CORES]) & (totals[CORES] > 0) if rules.cores_exhausted and wanted == 0 else never,
        ),
    ]
    codes = np.select(
        [~of_the_vendor, *(mask for _, mask in checks)], [_OTHER_VENDOR, *(_RANK[r] for r, _ in checks)], _SERVING
    )
    return np.asarray(codes, dtype=np.int64)


def _details(devices: Sequence[DeviceState], refused: RequestRefusal, by_model: bool) -> dict[DeviceRefusal, str]:
    """Return the details that the message adds to some reasons: the amounts, the profiles."""
    found = _most_free(devices, refused.request, by_model)
    if DeviceRefusal.CARD_MIG_TOPOLOGY_INFEASIBLE in refused.counts:
        wanted, profiles = _mig_profiles(devices, refused.request, by_model)
        found[DeviceRefusal.CARD_MIG_TOPOLOGY_INFEASIBLE] = missing_mig_instance(profiles, wanted)
    return found


def _mig_profiles(
    devices: Iterable[DeviceState], request: DeviceRequest, by_model: bool
) -> tuple[int, list[MigProfile]]:
    """Return the memory that the request needs of the MIG devices with room for it, at least, and their profiles."""
    able = [
        (request.memory_on(state.device.memory_mib), state.device.mig_profiles)
        for state in devices
        if state.device.mode == MIG_MODE and of_vendor(state.device, request.vendor, by_model) and state.device.health
        if request.memory_on(state.device.memory_mib) <= state.device.memory_mib - state.used_memory_mib
    ]
    return min((wanted for wanted, _ in able), default=0), [each for _, profiles in able for each in profiles]


def _most_free(devices: Iterable[DeviceState], request: DeviceRequest, by_model: bool) -> dict[DeviceRefusal, str]:
    """Return the largest free memory or cores among the devices with too little of it."""
    memory: list[int] = []
    cores: list[int] = []
    for state in devices:
        device = state.device
        if not of_vendor(device, request.vendor, by_model) or not device.health or device.cordoned:
            continue
        free_mib = device.memory_mib - state.used_memory_mib
        free_cores = device.cores_percent - state.used_cores
        if free_mib < request.memory_on(device.memory_mib):
            memory.append(free_mib)
        elif free_cores < request.cores_percent:
            cores.append(free_cores)
    found: dict[DeviceRefusal, str] = {}
    if memory:
        found[DeviceRefusal.CARD_INSUFFICIENT_MEMORY] = f"at most {max(memory)} MiB free on one of them"
    if cores:
        found[DeviceRefusal.CARD_INSUFFICIENT_CORE] = f"at most {max(cores)} % of the cores free on one of them"
    return found


def refusal(
    table: DeviceTable,
    by_model: bool,
    pod_set: PodSetToPlace,
    gang: Gang,
    findings: Findings,
    quota: QuotaShortage | None = None,
) -> PlacementRefusal:
    """Return the refusal of one pod of a gang, with the nearest node and a sentence; ties go to the smaller name."""
    nearest = findings.nearest
    near_name, lack = None, ""
    if nearest is not None:
        row, kind = nearest
        near_name = table.nodes[row].name
        asked = kind.devices
        details = _details(table.devices(row), asked, by_model) if asked is not None else {}
        lack = f"{_lack(kind, details)} ({kind.reason})"
    return PlacementRefusal(
        pod_set.name,
        gang.replica,
        gang.placed,
        gang.wanted,
        findings.reasons,
        near_name,
        _sentence(pod_set, gang, nearest, near_name, len(findings.rows), lack)
        + (f" {quota}." if quota is not None else ""),
        quota,
    )


@dataclass(frozen=True, slots=True)
class Gang:
    """The position in a workload where the search stopped: the replica, the numbers of placed and of all pods, and the
    usage of the placed ones.
    """

    replica: int
    placed: int
    wanted: int
    held: tuple[DeviceSlice, ...] = ()


def who(pod_set: PodSetToPlace, gang: Gang) -> str:
    """Return the pod that has no place, and the number of pods of its gang that were placed."""
    pod = f"pod {gang.replica} of pod set {pod_set.name}"
    return f"{pod} (after {gang.placed} of {gang.wanted} pods were placed)" if gang.placed else pod


def _sentence(
    pod_set: PodSetToPlace, gang: Gang, nearest: tuple[int, Finding] | None, name: str | None, nodes: int, lack: str
) -> str:
    pod = who(pod_set, gang)
    if nearest is None:
        return f"No node is a candidate for {pod}: none matches its flavor, node selector and affinity."
    devices = nearest[1].devices
    asks = f", which requests {describe(devices.request)}" if devices is not None else ""
    if nodes == 1:
        return f"Node {name}, the only candidate, does not take {pod}{asks}: {lack}."
    return f"None of {nodes} nodes takes {pod}{asks}; nearest is {name}: {lack}."


def _lack(finding: Finding, details: Mapping[DeviceRefusal, str]) -> str:
    refused = finding.devices
    if refused is None:
        return node_reason_sentence(finding.reason)
    if not refused.counts:
        return f"it has {refused.devices} such device{'' if refused.devices == 1 else 's'}"
    parts = []
    for reason, count in sorted(refused.counts.items(), key=lambda item: (-item[1], item[0])):
        text = f"{count} {'is' if count == 1 else 'are'} {_WORDS[reason]}"
        if reason in details:
            text += f" ({details[reason]})"
        parts.append(text)
    return f"of {refused.devices} device{'' if refused.devices == 1 else 's'} {', '.join(parts)}"


def describe(request: DeviceRequest) -> str:
    """Return a device request in words."""
    devices = f"{request.count} {request.vendor} device{'' if request.count == 1 else 's'}"
    memory = f"{request.memory_mib} MiB" if request.memory_mib else f"{request.memory_percentage} % of the memory"
    if not request.memory_mib and request.memory_percentage == PERCENTAGE_UNSET:
        memory = f"{request.slots} slot{'' if request.slots == 1 else 's'}"
    cores = f" and {request.cores_percent} % of the cores" if request.cores_percent else ""
    return f"{devices} with {memory}{cores}{' each' if request.count > 1 else ''}"


def node_reason_sentence(reason: str) -> str:
    """Return a node's own refusal in words."""
    words: Mapping[str, str] = {
        NodeRefusal.NODE_NOT_READY: "it is not ready",
        NodeRefusal.NODE_UNSCHEDULABLE: "it is cordoned",
        NodeRefusal.NODE_TAINTED: "it has a taint that the pod does not tolerate",
        DeviceRefusal.NODE_UNREGISTERED: "it has no registered devices",
        DeviceRefusal.RESOURCE_QUOTA_NOT_FIT: "the namespace's ResourceQuota does not allow it",
    }
    if reason.startswith(NodeRefusal.INSUFFICIENT_RESOURCE):
        return f"it has too little {reason.removeprefix(NodeRefusal.INSUFFICIENT_RESOURCE).strip()} free"
    return words.get(reason, reason)
