"""All known workloads, and the typical shapes of their pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scheduling.devices.policies.typical_pods import PodShape, TypicalPod, most_frequent, pod_shape, rounded_count
from scheduling.devices.requests.requests import pod_device_request
from scheduling.model.placement import PodSetToPlace
from scheduling.model.vendor import DeviceVendor
from scheduling.state.workload_info import WorkloadInfo


class Workloads(dict[str, WorkloadInfo]):
    """Known workloads by key, waiting or running. Shapes of pods are counted on first use and updated incrementally
    afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self._vendors: Sequence[DeviceVendor] | None = None
        self._changed: dict[str, None] = {}
        self._counted: dict[str, Counter[PodShape]] = {}
        self._counts: Counter[PodShape] = Counter()
        self._typical: tuple[TypicalPod, ...] = ()

    def __setitem__(self, key: str, info: WorkloadInfo) -> None:
        super().__setitem__(key, info)
        self._note(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._note(key)

    def _note(self, key: str) -> None:
        if self._vendors is not None:
            self._changed[key] = None

    def typical_pods(self, vendors: Sequence[DeviceVendor]) -> tuple[TypicalPod, ...]:
        """Return the most frequent pod shapes among the known workloads, read by these vendors' rules.

        The result depends only on the set of workloads, not on the order in which they arrived. Counts are rounded, so
        that most arrivals change nothing; the same tuple is returned until the result changes.
        """
        if vendors is not self._vendors:
            self._vendors = vendors
            self._counted, self._counts = {}, Counter()
            self._changed = dict.fromkeys(self)
        if self._changed:
            for key in self._changed:
                self._recount(key, vendors)
            self._changed = {}
            rounded = {shape: rounded_count(count) for shape, count in self._counts.items()}
            typical = most_frequent(rounded)
            if typical != self._typical:
                self._typical = typical
        return self._typical

    def _recount(self, key: str, vendors: Sequence[DeviceVendor]) -> None:
        before = self._counted.pop(key, Counter())
        after = _shapes(self[key], vendors) if key in self else Counter()
        for shape in before.keys() | after.keys():
            count = self._counts[shape] + after[shape] - before[shape]
            if count:
                self._counts[shape] = count
            else:
                self._counts.pop(shape, None)
        if after:
            self._counted[key] = after


def _shapes(info: WorkloadInfo, vendors: Sequence[DeviceVendor]) -> Counter[PodShape]:
    """Return the number of pods of each shape in a workload."""
    shapes: Counter[PodShape] = Counter()
    for pod_set in info.pod_sets:
        if pod_set.devices is None:
            pod_set.devices = pod_device_request(pod_set.pod_set.template.manifest, vendors)
        shapes[pod_shape(PodSetToPlace(pod_set.name, 1, pod_set.node_requests, pod_set.devices))] += pod_set.count
    return +shapes
