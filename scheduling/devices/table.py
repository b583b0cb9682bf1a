"""All devices of all nodes as integer arrays, so that one vectorised scan tests them all.

Rows are nodes sorted by name. Columns are the devices of a node in inventory order, padded to the widest node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from scheduling.devices.arrays import Booleans, Floats, Integers
from scheduling.devices.fit.device_fit import matches_type, matches_uuid, of_vendor
from scheduling.devices.fit.device_state import DeviceState, Tenant, tenant_of
from scheduling.devices.requests.cores import devices_with_cores
from scheduling.devices.requests.requests import ONLINE
from scheduling.devices.vendors.ascend import SOFT_SPLIT_CORES
from scheduling.model.device import HAMI_CORE_MODE, MIG_MODE, DeviceRequest, DeviceSlice, MigInstance
from scheduling.model.node import CPU, MEMORY, PODS, Node
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import FitKind, FitRules

UNLIMITED = np.iinfo(np.int64).max // 4
_NOT_LIMITING_IF_MISSING = frozenset({CPU, MEMORY, PODS})

SLOTS, CORES, MEMORY_MIB = 0, 1, 2

_MAX_CHANGES = 100_000


_FOR_ONE = (FitKind.ENFLAME_GCU, FitKind.KUNLUN_XPU)
"""The kinds whose devices serve one container at a time."""


def filtering(request: DeviceRequest, rules: FitRules, constraints: DeviceConstraints) -> DeviceConstraints:
    """Return the constraints that the vendor's fit applies to the request."""
    if rules.uuid_filter and not ignores_filters(request, rules):
        return constraints
    return replace(constraints, use_uuids=(), nouse_uuids=())


def ignores_filters(request: DeviceRequest, rules: FitRules) -> bool:
    """Return whether UUID lists and `mutex` are ignored. HAMi ignores them for requests of several Neuron devices."""
    return rules.as_hami and rules.kind is FitKind.AWS_NEURON and request.count > 1


class ChangeLog:
    """The numbers of changed rows in order, so that derived data can be updated row by row."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._dropped = 0

    @property
    def mark(self) -> int:
        """Return the rows that changed since that mark, without repetitions; None if the log does not reach back that
        far."""
        return self._dropped + len(self._rows)

    def note(self, row: int) -> None:
        if len(self._rows) >= _MAX_CHANGES:
            self._dropped += len(self._rows)
            self._rows.clear()
        self._rows.append(row)

    def since(self, mark: int) -> Integers | None:
        """Return the rows that changed since that mark, without repetitions; None if the log does not reach back that
        far."""
        if mark < self._dropped:
            return None
        return np.unique(np.array(self._rows[mark - self._dropped :], dtype=np.int64))


class DeviceTable:
    """Totals and usage of every device, and free amounts of every node, in base units.

    `totals` and `used` have the shape (3, nodes, devices): slots, cores, MiB. `free` has (resources, nodes).
    """

    def __init__(self, nodes: Iterable[Node], match_by_model: bool) -> None:
        self.match_by_model = match_by_model
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.rows = {node.name: row for row, node in enumerate(self.nodes)}
        self.width = max((len(node.devices) for node in self.nodes), default=0)
        shape = (3, len(self.nodes), self.width)
        self.totals: Integers = np.zeros(shape, dtype=np.int64)
        self.used: Integers = np.zeros(shape, dtype=np.int64)
        self.has_devices: Booleans = np.array([bool(node.devices) for node in self.nodes], dtype=np.bool_)
        self.healthy: Booleans = np.zeros(shape[1:], dtype=np.bool_)
        self.cordoned: Booleans = np.zeros(shape[1:], dtype=np.bool_)
        self._other_mode: Integers = np.zeros(shape[1:], dtype=np.int64)
        self.has_mig: Booleans = np.zeros(len(self.nodes), dtype=np.bool_)
        self.mig: dict[str, list[MigInstance]] = {}
        self.tenants: dict[tuple[str, str], list[Tenant]] = {}
        self.places: dict[tuple[str, str], tuple[int, int]] = {}
        self.base_scores: Floats = np.zeros(len(self.nodes), dtype=np.float32)
        self._columns = {name: number for number, name in enumerate(sorted(_resource_names(self.nodes)))}
        self.free: Integers = np.zeros((len(self._columns), len(self.nodes)), dtype=np.int64)
        self.changes = ChangeLog()
        self._device_masks: dict[tuple[str, DeviceConstraints, bool], Booleans] = {}
        for row, node in enumerate(self.nodes):
            self._load_row(row)
            self.add_slices(node.name, node.found, 1)

    @property
    def free_cpu(self) -> Integers:
        """Free cpu of every node, in milli."""
        free: Integers = self.free[self._columns[CPU]]
        return free

    def replace_node(self, node: Node) -> bool:
        """Replace a changed node in place and keep its devices' usage. False if the change needs a new table."""
        row = self.rows.get(node.name)
        if row is None or node.devices != self.nodes[row].devices:
            return False
        before = self.nodes[row]
        if _resource_names([node]) - self._columns.keys():
            return False
        if before.found != node.found:
            self.add_slices(node.name, before.found, -1)
            self.add_slices(node.name, node.found, 1)
        self.nodes[row] = node
        for name, column in self._columns.items():
            self.free[column, row] += _limit(node, name) - _limit(before, name)
        if node.unhealthy_vendors != before.unhealthy_vendors:
            self._load_health(row)
        self.changes.note(row)
        return True

    def _load_row(self, row: int) -> None:
        node = self.nodes[row]
        for column, device in enumerate(node.devices):
            self.totals[:, row, column] = (device.slots, device.cores_percent, device.memory_mib)
            self.places[(node.name, device.uuid)] = (row, column)
        self.has_mig[row] = any(device.mode == MIG_MODE for device in node.devices)
        self._load_health(row)
        for name, number in self._columns.items():
            self.free[number, row] = _limit(node, name)

    def _load_health(self, row: int) -> None:
        node = self.nodes[row]
        for column, device in enumerate(node.devices):
            usable = device.health and not self._other_mode[row, column]
            self.healthy[row, column] = usable and device.vendor not in node.unhealthy_vendors
            self.cordoned[row, column] = device.cordoned

    def add_requests(self, node: str, requests: Mapping[str, int], pods: int) -> None:
        """Add this number of pods and their requests to a node; negative numbers remove them."""
        row = self.rows.get(node)
        if row is None:
            return
        for name, amount in requests.items():
            column = self._columns.get(name)
            if column is not None and name != PODS:
                self.free[column, row] -= pods * amount
        self.free[self._columns[PODS], row] -= pods
        self.changes.note(row)

    def add_slices(self, node: str, slices: Iterable[DeviceSlice], sign: int) -> None:
        """Add (sign 1) or remove (-1) slices of a node's devices. Unknown devices are skipped.

        A device counts as unhealthy while it holds a slice of the other mode: in MIG mode a slice without a MIG
        instance, otherwise one with it.
        """
        row = self.rows.get(node)
        if row is None:
            return
        for part in slices:
            place = self.places.get((node, part.uuid))
            if place is None:
                continue
            _, column = place
            self.used[SLOTS, row, column] += sign * part.slots
            self.used[CORES, row, column] += sign * part.cores_percent
            self.used[MEMORY_MIB, row, column] += sign * part.memory_mib
            for instance in part.mig_instances:
                instances = self.mig.setdefault(part.uuid, [])
                instances.append(instance) if sign > 0 else instances.remove(instance)
            if bool(part.mig_instances) != (self.nodes[row].devices[column].mode == MIG_MODE):
                self._other_mode[row, column] += sign
                self._load_health(row)
            tenant = tenant_of(part)
            if tenant is not None:
                tenants = self.tenants.setdefault((node, part.uuid), [])
                tenants.append(tenant) if sign > 0 else tenants.remove(tenant)
        self._score_row(row)
        self.changes.note(row)

    def _score_row(self, row: int) -> None:
        used = self.used[:, row].sum(axis=1).astype(np.float32)
        totals = self.totals[:, row].sum(axis=1).astype(np.float32)
        if not totals.all():
            self.base_scores[row] = 0
            return
        shares = used / totals
        self.base_scores[row] = np.float32(10) * (shares[SLOTS] + shares[CORES] + shares[MEMORY_MIB])

    def scores_with(self, requests: Sequence[DeviceRequest]) -> Floats:
        """Node scores as if the requests were already placed on each node. HAMi documents this rule, but its code
        differs.
        """
        used, totals = self.used.sum(axis=2), self.totals.sum(axis=2)
        devices = np.maximum((self.totals[SLOTS] > 0).sum(axis=1), 1)
        for request in requests:
            used[SLOTS] += request.count
            used[CORES] += request.count * request.cores_percent
            share = totals[MEMORY_MIB] // devices * request.memory_percentage // 100
            used[MEMORY_MIB] += request.count * (request.memory_mib or share)
        shares = used.astype(np.float32) / np.maximum(totals, 1).astype(np.float32)
        scores: Floats = np.float32(10) * (shares[SLOTS] + shares[CORES] + shares[MEMORY_MIB])
        scores[(totals == 0).any(axis=0)] = 0
        return scores

    def devices(self, row: int) -> list[DeviceState]:
        """Working copies of one node's devices."""
        node = self.nodes[row]
        used = self.used[:, row, : len(node.devices)].tolist()
        healthy = self.healthy[row].tolist()
        return [
            DeviceState(
                device if device.health == healthy[column] else replace(device, health=False),
                column,
                used[SLOTS][column],
                used[MEMORY_MIB][column],
                used[CORES][column],
                self._mig(device.uuid),
                list(self.tenants.get((node.name, device.uuid), ())),
            )
            for column, device in enumerate(node.devices)
        ]

    def _mig(self, uuid: str) -> list[MigInstance]:
        return list(self.mig.get(uuid, ()))

    def device_mask(self, vendor: str, constraints: DeviceConstraints, type_filter: bool) -> Booleans:
        """Return the devices of a vendor that the pod's constraints allow, whatever their health and usage."""
        key = (vendor, constraints, type_filter)
        mask = self._device_masks.get(key)
        if mask is None:
            mask = np.zeros(self.healthy.shape, dtype=np.bool_)
            for row, node in enumerate(self.nodes):
                for column, device in enumerate(node.devices):
                    mask[row, column] = (
                        of_vendor(device, vendor, self.match_by_model)
                        and (not type_filter or matches_type(device, constraints))
                        and matches_uuid(device.uuid, constraints)
                    )
            if len(self._device_masks) > 256:
                self._device_masks.clear()
            self._device_masks[key] = mask
        return mask

    def serving_devices(
        self,
        request: DeviceRequest,
        rules: FitRules,
        constraints: DeviceConstraints,
        mutex: bool,
        rows: slice | Integers,
    ) -> Booleans:
        """Return whether each device of the rows could serve the request now, shape (rows, devices).

        Checks that look beyond one device (NUMA groups, namespace quota, MIG places, vendor rules) are not made here.
        So the result may be True too often, but never False too often.
        """
        used_slots: Integers = self.used[SLOTS, rows]
        mask = self.device_mask(request.vendor, filtering(request, rules, constraints), rules.type_filter)
        serving: Booleans = mask[rows] & self.healthy[rows] & ~self.cordoned[rows]
        if rules.kind in _FOR_ONE:
            serving &= used_slots == 0
            return serving
        serving &= used_slots + (1 if rules.hardware_profiles else request.slots) <= self.totals[SLOTS, rows]
        if rules.mutex and mutex and not ignores_filters(request, rules):
            serving &= used_slots == 0
        if not rules.slots_only and not rules.hardware_profiles:
            serving &= self._with_memory(request, rows)
            serving &= self._with_cores(request, rules, constraints, rows)
        return serving

    def total_cores(self, rules: FitRules, constraints: DeviceConstraints, rows: slice | Integers) -> Integers | None:
        """Return the cores that each device has for a pod; None if its vendor ignores cores."""
        if rules.slots_only or rules.hardware_profiles or constraints.app_class == ONLINE:
            return None
        totals: Integers = self.totals[CORES, rows]
        soft = rules.split_modes and constraints.mode == HAMI_CORE_MODE
        return np.full_like(totals, SOFT_SPLIT_CORES) if soft else totals

    def _with_memory(self, request: DeviceRequest, rows: slice | Integers) -> Booleans:
        total = self.totals[MEMORY_MIB, rows]
        wanted: Integers | int = request.memory_mib
        if not request.memory_mib and request.memory_percentage <= 100:
            wanted = total * request.memory_percentage // 100
        enough: Booleans = total - self.used[MEMORY_MIB, rows] >= wanted
        return enough

    def _with_cores(
        self, request: DeviceRequest, rules: FitRules, constraints: DeviceConstraints, rows: slice | Integers
    ) -> Booleans:
        totals, used, unused = (
            self.total_cores(rules, constraints, rows),
            self.used[CORES, rows],
            self.used[SLOTS, rows] == 0,
        )
        if totals is None:
            return np.ones(unused.shape, dtype=np.bool_)
        enough = devices_with_cores(request, rules, totals, used)
        wanted = min(request.cores_percent, 100)
        if rules.exclusive_cores and wanted == 100:
            enough &= unused | (totals != 100)
        if rules.cores_exhausted and wanted == 0:
            enough &= (used != totals) | (totals == 0)
        return enough

    def rows_with_devices(
        self,
        request: DeviceRequest,
        rules: FitRules,
        constraints: DeviceConstraints,
        mutex: bool,
        rows: slice | Integers,
    ) -> Booleans:
        """Return for each row whether it has enough devices that can serve the request. A MIG device may serve several
        times."""
        serving = self.serving_devices(request, rules, constraints, mutex, rows)
        count: Integers = serving.sum(axis=1)
        enough: Booleans = count >= request.count
        return enough | (self.has_mig[rows] & (count > 0))

    def rows_with_room(self, requests: Mapping[str, int], rows: slice | Integers) -> Booleans:
        """Return for each row whether it has room for one pod's requests other than devices."""
        room: Booleans = self.free[self._columns[PODS], rows] >= 1
        for name, amount in requests.items():
            if amount <= 0 or name == PODS:
                continue
            column = self._columns.get(name)
            if column is None:
                return np.zeros(room.shape, dtype=np.bool_)
            room &= self.free[column, rows] >= amount
        return room

    def pods_per_row(self, requests: Mapping[str, int], rows: slice | Integers) -> Integers:
        """Return, for each row, the number of pods with these requests that it has room for, devices aside."""
        room: Integers = self.free[self._columns[PODS], rows]
        for name, amount in requests.items():
            if amount <= 0 or name == PODS:
                continue
            column = self._columns.get(name)
            if column is None:
                return np.zeros(room.shape, dtype=np.int64)
            room = np.minimum(room, self.free[column, rows] // amount)
        return np.maximum(room, 0)

    def is_overfull(self, node: str) -> bool:
        """Return whether the usage of a node exceeds its amounts, devices aside. True for an unknown node."""
        row = self.rows.get(node)
        return row is None or bool((self.free[:, row] < 0).any())

    def most_free(self, resource: str, rows: Integers) -> int:
        """Return the largest free amount of a resource on any of the rows; 0 if none has it."""
        column = self._columns.get(resource)
        return max(0, int(self.free[column, rows].max())) if column is not None and len(rows) else 0

    def missing_resources(self, requests: Mapping[str, int], rows: Integers) -> tuple[list[str], Integers]:
        """Return resource names, and for each row the index of the first resource (by name) that it lacks, or -1."""
        names = sorted({**requests, PODS: 1})
        missing: Integers = np.full(len(rows), -1, dtype=np.int64)
        for number, name in reversed(list(enumerate(names))):
            amount = 1 if name == PODS else requests[name]
            column = self._columns.get(name)
            if column is not None:
                missing[self.free[column, rows] < amount] = number
            elif amount > 0:
                missing[:] = number
        return names, missing


def _resource_names(nodes: Sequence[Node]) -> frozenset[str]:
    return frozenset(_NOT_LIMITING_IF_MISSING).union(*(node.allocatable for node in nodes))


def _limit(node: Node, name: str) -> int:
    """Return the amount that a node offers to our pods: allocatable minus foreign usage; unlimited if it is not stated.

    The result is clamped to int64, because any user can create a pod that requests more.
    """
    if name not in node.allocatable:
        return UNLIMITED if name in _NOT_LIMITING_IF_MISSING else 0
    return max(-UNLIMITED, min(node.allocatable[name] - node.foreign_usage.get(name, 0), UNLIMITED))
