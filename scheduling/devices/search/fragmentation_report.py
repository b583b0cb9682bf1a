"""Fragmentation figures: idle capacity, the part of it that no typical pod can use, and the largest request that
fits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.search.fleet import Fleet
from scheduling.devices.table import CORES, MEMORY_MIB, SLOTS, DeviceTable
from scheduling.model.selectors import matches_node_selector

DEVICE_COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class LargestRequest:
    """The largest request for `count` devices of a model on one node that still fits: MiB per device, and cores.

    `memory_mib` 0 with `fits` false: there are not that many devices even for a slice without memory. `cores_percent`
    is the free part of the tightest of those devices.
    """

    vendor: str
    type: str
    count: int
    fits: bool
    memory_mib: int = 0
    cores_percent: int = 0
    node: str = ""


@dataclass(frozen=True, slots=True)
class FragmentationReport:
    """The figures of a set of nodes in thousandths of a device: all devices, the usable idle part, and its
    fragmented part.

    `fragmented_milli` is None if no typical pods are known. `unused_devices` are usable devices without any slice.
    """

    devices: int
    idle_milli: float
    fragmented_milli: float | None
    unused_devices: int
    largest: tuple[LargestRequest, ...]


def cluster_report(fleet: Fleet) -> FragmentationReport:
    return report(fleet, fleet.nodes)


def used_device_count(fleet: Fleet) -> int:
    """Return how many devices hold a slice or more."""
    table = fleet.table
    rows = np.array(sorted(table.rows.values()), dtype=np.int64)
    return int((table.used[SLOTS][rows] > 0).sum())


def flavor_report(fleet: Fleet, node_labels: Mapping[str, str]) -> FragmentationReport:
    """Return the nodes that a flavor's labels select."""
    names = [node.name for node in fleet.nodes.values() if matches_node_selector(node_labels, node.selectable_labels)]
    return report(fleet, names)


def node_reports(fleet: Fleet) -> dict[str, FragmentationReport]:
    """Return every node with devices, by name."""
    return {name: report(fleet, [name]) for name in sorted(fleet.nodes) if fleet.nodes[name].devices}


def report(fleet: Fleet, names: Collection[str]) -> FragmentationReport:
    """Return the nodes with these names; unknown ones are skipped."""
    table = fleet.table
    rows = np.array(sorted(table.rows[name] for name in names if name in table.rows), dtype=np.int64)
    model = fleet.fragmentation.model(table)
    usable = table.healthy[rows] & ~table.cordoned[rows]
    fragmented = float(model.fragmentation[rows].sum()) if fleet.mix.now() else None
    return FragmentationReport(
        devices=sum(len(table.nodes[row].devices) for row in rows.tolist()),
        idle_milli=float(model.total_idle[rows].sum()),
        fragmented_milli=fragmented,
        unused_devices=int((usable & (table.used[SLOTS][rows] == 0)).sum()),
        largest=tuple(largest_requests(table, rows)),
    )


def largest_requests(table: DeviceTable, rows: NDArray[np.int64]) -> Iterable[LargestRequest]:
    """Per device model and number of devices, the largest request that fits on one of the rows; ready and
    schedulable nodes only."""
    rows = np.array(
        [row for row in rows.tolist() if table.nodes[row].ready and not table.nodes[row].unschedulable], dtype=np.int64
    )
    models = sorted({(device.vendor, device.type) for row in rows.tolist() for device in table.nodes[row].devices})
    for vendor, model in models:
        of_model = np.zeros((len(rows), table.width), dtype=np.bool_)
        for number, row in enumerate(rows.tolist()):
            for column, device in enumerate(table.nodes[row].devices):
                of_model[number, column] = (device.vendor, device.type) == (vendor, model)
        serving = of_model & table.healthy[rows] & ~table.cordoned[rows]
        serving &= table.used[SLOTS][rows] < table.totals[SLOTS][rows]
        free = (table.totals - table.used)[:, rows]
        memory = np.where(serving, free[MEMORY_MIB], -1)
        order = np.argsort(-memory, axis=1, kind="stable")
        sizes = of_model.sum(axis=1)
        for count in DEVICE_COUNTS:
            if count <= int(sizes.max(initial=0)):
                yield _largest(table, rows, (vendor, model), count, memory, np.maximum(free[CORES], 0), order)


def _largest(
    table: DeviceTable,
    rows: NDArray[np.int64],
    model: tuple[str, str],
    count: int,
    memory: NDArray[np.int64],
    cores: NDArray[np.int64],
    order: NDArray[np.int64],
) -> LargestRequest:
    if order.shape[1] < count:
        return LargestRequest(*model, count, fits=False)
    chosen = order[:, :count]
    tightest = np.take_along_axis(memory, chosen, axis=1).min(axis=1)
    best = int(np.argmax(tightest))
    if tightest[best] < 0:
        return LargestRequest(*model, count, fits=False)
    left = int(cores[best, chosen[best]].min())
    return LargestRequest(*model, count, True, int(tightest[best]), left, table.nodes[int(rows[best])].name)
