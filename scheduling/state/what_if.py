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
        self.changed: list[str] | None = None
        """The ClusterQueues whose usage or candidates have changed, in order, while searches of a cycle need them."""

    def note(self, cluster_queue: str) -> None:
        """Note that a ClusterQueue's usage, or the workloads that hold quota in it, have changed."""
        if self.changed is not None:
            self.changed.append(cluster_queue)

    def remove(self, info: WorkloadInfo, *, note: bool = True) -> None:
        """Remove the usage of a workload, as if it had stopped. With `note`, searches may begin before the usage is
        restored."""
        remove_usage(info.usage)
        for flavor, usage in info.topology_usage:
            self._topologies.remove_usage(flavor, usage)
        self.removed[info.key] = info
        if note:
            self.note(info.cluster_queue)

    def restore(self, info: WorkloadInfo, *, note: bool = True) -> None:
        """Undo `remove`, with the same `note`."""
        add_usage(info.usage)
        for flavor, usage in info.topology_usage:
            self._topologies.add_usage(flavor, usage)
        del self.removed[info.key]
        if note:
            self.note(info.cluster_queue)
