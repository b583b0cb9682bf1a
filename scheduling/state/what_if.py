"""Trials on the live usage: remove workloads for a moment and restore them exactly."""

from __future__ import annotations

from scheduling.quota.cells import add_usage, remove_usage
from scheduling.state.workload_info import WorkloadInfo
from scheduling.topology.flavor import TopologyFlavors


class Simulation:
    """Removes and restores whole workloads. The devices of those in `removed` count as free."""

    def __init__(self, topologies: TopologyFlavors) -> None:
        self._topologies = topologies
        self.removed: dict[str, WorkloadInfo] = {}

    def remove(self, info: WorkloadInfo) -> None:
        """Remove the usage of a workload, as if it had stopped."""
        remove_usage(info.usage)
        for flavor, usage in info.topology_usage:
            self._topologies.remove_usage(flavor, usage)
        self.removed[info.key] = info

    def restore(self, info: WorkloadInfo) -> None:
        """Undo `remove`."""
        add_usage(info.usage)
        for flavor, usage in info.topology_usage:
            self._topologies.add_usage(flavor, usage)
        del self.removed[info.key]
