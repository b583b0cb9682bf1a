"""The part of the World that takes configuration: queues, cohorts, flavors, nodes and what else workloads refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduling.advice.moves import Fragmentation, MoveAdvice, advise_moves, fragmentation
from scheduling.cycle.wiring import CycleParts
from scheduling.devices.policies.typical_pods import TypicalPod
from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.admission_check import AdmissionCheck
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort
from scheduling.model.configuration import Configuration
from scheduling.model.limit_range import LimitRange
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod_defaults import RuntimeClass, names_runtime_class
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.topology import Topology
from scheduling.model.vendor import NVIDIA, DeviceVendor
from scheduling.model.workload import Workload
from scheduling.state.admission_state import WorkloadTracker
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.hierarchy import Hierarchy
from scheduling.state.state import State
from scheduling.state.workload_info import QueueState, WorkloadInfo


class WorldObjects:
    """Sets and deletes objects. Every `set_` adds or replaces; deleting what is not there does nothing."""

    def __init__(self, configuration: Configuration | None = None, vendors: Sequence[DeviceVendor] = (NVIDIA,)) -> None:
        """An empty world. `vendors` are the rows that say what asks for which device."""
        self._state = State(configuration or Configuration(), vendors)
        self._hierarchy = Hierarchy(self._state)
        self._tracker = WorkloadTracker(self._state)
        self._parts = CycleParts(self._state)

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._state.configuration

    def set_configuration(self, configuration: Configuration) -> None:
        """Replace the configuration; requests are computed anew and every workload is looked at again."""
        state = self._state
        if configuration == state.configuration:
            return
        workloads = [info.current() for info in state.workloads.values()]
        for info in [*state.workloads.values()]:
            self._tracker.untrack(info)
            state.forget(info)
        state.set_configuration(configuration)
        self._parts = CycleParts(state)
        self._hierarchy.references_changed()
        for workload in workloads:
            info = self._info(workload)
            state.insert(info)
            self._tracker.track(info)

    def set_vendors(self, vendors: Sequence[DeviceVendor]) -> None:
        """Replace the rows that say what asks for which device."""
        if tuple(vendors) != self._state.vendors:
            self._state.set_vendors(vendors)
            self._state.dirty_queues.update(self._state.cluster_queues)
            for namespace in {quota.namespace for quota in self._state.fleet.quotas.quotas}:
                self._read_again(self._in_namespace(namespace))  # it may limit other resources now

    def set_placement_policies(self, node_policy: str, device_policy: str) -> None:
        """Replace the policies by which pods without their own choose nodes and cards; `fgd` and `bid-price` learn what
        is typical from the workloads that are known. To be called after `set_vendors`."""
        state = self._state
        settings = state.fleet.settings
        if (settings.node_policy, settings.device_policy) != (node_policy, device_policy):
            state.fleet.set_policies(node_policy, device_policy)
            state.dirty_queues.update(state.cluster_queues)  # what does not fit by `mutex` may fit without
        state.fleet.mix.source = self.typical_pods

    def typical_pods(self) -> tuple[TypicalPod, ...]:
        """What is typical of the pods that wait or run now."""
        return self._state.workloads.typical_pods(self._state.vendors)

    def fragmentation(self) -> Fragmentation:
        """How fragmented the devices are: in all, per flavor and per node."""
        return fragmentation(self._state)

    def advise_moves(self, key: str) -> MoveAdvice:
        """Advice: the fewest moves of running pods that would give a waiting workload its devices (`device_advice`)."""
        self._hierarchy.rebuild()
        return advise_moves(self._state, key, self._parts.nominate)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace and its labels, which ClusterQueues select."""
        if self._state.namespaces.get(name) != labels:
            self._state.namespaces[name] = dict(labels)
            self._state.dirty_queues.update(self._state.cluster_queues)
            self._state.clear_pauses(self._state.cluster_queues)

    def delete_namespace(self, name: str) -> None:
        """Forget a namespace."""
        self._state.namespaces.pop(name, None)

    def set_resource_quota(self, quota: NamespaceQuota) -> None:
        """Add or replace a namespace's ResourceQuota of devices; those who wait for devices get a chance."""
        quotas = self._state.fleet.quotas
        limited = quotas.limits(quota.namespace)
        if quotas.set_quota(quota):
            self._quota_changed(quota.namespace, limited)

    def delete_resource_quota(self, key: str) -> None:
        """Forget the ResourceQuota `namespace/name`."""
        namespace, _, name = key.partition("/")
        quotas = self._state.fleet.quotas
        limited = quotas.limits(namespace)
        if quotas.delete_quota(namespace, name):
            self._quota_changed(namespace, limited)

    def _quota_changed(self, namespace: str, limited: bool) -> None:
        waiting = set(self._state.waiting_for_devices)
        self._state.wake_waiting_for_devices()
        self._state.clear_pauses(waiting)
        if self._state.fleet.quotas.limits(namespace) is not limited:
            self._read_again(self._in_namespace(namespace))  # what is equal to what is another matter now

    def set_limit_range(self, limit_range: LimitRange) -> None:
        """Add or replace a LimitRange: who waits in its namespace asks for something else now, and is looked at again;
        who holds quota keeps what it holds."""
        if self._state.pod_defaults.set_limit_range(limit_range):
            self._read_again(self._in_namespace(limit_range.namespace))

    def delete_limit_range(self, key: str) -> None:
        """Forget the LimitRange `namespace/name`."""
        namespace, _, name = key.partition("/")
        if self._state.pod_defaults.delete_limit_range(namespace, name):
            self._read_again(self._in_namespace(namespace))

    def set_runtime_class(self, runtime_class: RuntimeClass) -> None:
        """Add or replace a RuntimeClass: its overhead counts for those who wait and name it."""
        if self._state.pod_defaults.set_runtime_class(runtime_class):
            self._read_again(self._running_under(runtime_class.name))

    def delete_runtime_class(self, name: str) -> None:
        """Forget a RuntimeClass."""
        if self._state.pod_defaults.delete_runtime_class(name):
            self._read_again(self._running_under(name))

    def _in_namespace(self, namespace: str) -> list[WorkloadInfo]:
        state, prefix = self._state, f"{namespace}/"
        queues = [keys for queue, keys in state.by_local_queue.items() if queue.startswith(prefix)]
        return [state.workloads[key] for keys in queues for key in keys]

    def _running_under(self, runtime_class: str) -> list[WorkloadInfo]:
        return [
            info
            for info in self._state.workloads.values()
            if any(names_runtime_class(pod_set, runtime_class) for pod_set in info.workload.pod_sets)
        ]

    def _read_again(self, workloads: Iterable[WorkloadInfo]) -> None:
        """Compute the requests of those that wait anew, and let each be looked at again."""
        for before in workloads:
            if before.queue_state is not QueueState.RESERVING and not before.workload.holds_quota:
                self._state.clear_pauses((before.cluster_queue,))
                self._exchange(before, self._info(before.current()))

    def _info(self, workload: Workload) -> WorkloadInfo:
        """A new record of a workload, its pods as the cluster will complete them."""
        state = self._state
        limited = state.fleet.quotas.limits(workload.namespace)
        return WorkloadInfo(workload, state.configuration, state.pod_defaults, has_namespace_device_quota=limited)

    def _exchange(self, before: WorkloadInfo, info: WorkloadInfo) -> None:
        """Put a workload's new record where it belongs; it stays sticky if it was."""
        state = self._state
        cq = state.cluster_queues.get(before.cluster_queue)
        sticky = cq is not None and cq.queue.sticky == before.key
        self._tracker.untrack(before)
        state.forget(before)
        state.insert(info)
        self._tracker.track(info)
        if sticky and cq is not None and info.cluster_queue == cq.name and info.queue_state is not QueueState.RESERVING:
            cq.queue.sticky = info.key

    def set_resource_flavor(self, flavor: ResourceFlavor) -> None:
        """Add or replace a flavor."""
        self._state.flavors[flavor.name] = flavor
        self._state.sync_topology_flavor(flavor.name)
        self._hierarchy.references_changed()

    def delete_resource_flavor(self, name: str) -> None:
        """Forget a flavor; ClusterQueues that name it become inactive."""
        if self._state.flavors.pop(name, None) is not None:
            self._state.sync_topology_flavor(name)
            self._hierarchy.references_changed()

    def set_topology(self, topology: Topology) -> None:
        """Add or replace a topology."""
        self._state.topologies[topology.name] = topology
        self._topology_changed(topology.name)

    def delete_topology(self, name: str) -> None:
        """Forget a topology."""
        if self._state.topologies.pop(name, None) is not None:
            self._topology_changed(name)

    def _topology_changed(self, name: str) -> None:
        for flavor in self._state.flavors.values():
            if flavor.topology_name == name:
                self._state.sync_topology_flavor(flavor.name)
        self._hierarchy.references_changed()

    def set_admission_check(self, check: AdmissionCheck) -> None:
        """Add or replace an admission check."""
        self._state.checks[check.name] = check
        self._hierarchy.references_changed()

    def delete_admission_check(self, name: str) -> None:
        """Forget an admission check."""
        if self._state.checks.pop(name, None) is not None:
            self._hierarchy.references_changed()

    def set_cohort(self, cohort: Cohort) -> None:
        """Add or replace a cohort; the whole tree is computed anew."""
        self._state.cohorts[cohort.name] = cohort
        self._hierarchy.cohort_changed(cohort.name)

    def delete_cohort(self, name: str) -> None:
        """Forget a cohort; while it is named it stays as an implicit one."""
        if self._state.cohorts.pop(name, None) is not None:
            self._hierarchy.cohort_changed(name)

    def set_cluster_queue(self, cluster_queue: ClusterQueue) -> None:
        """Add or replace a ClusterQueue; usage stays."""
        state = self._state
        cq = state.cluster_queues.get(cluster_queue.name)
        is_new = cq is None
        if cq is None:
            cq = state.cluster_queues[cluster_queue.name] = ClusterQueueState(cluster_queue)
        cq.set_spec(cluster_queue, state.flavors)
        self._parts.queue_usage(cq)
        self._hierarchy.queue_changed(cluster_queue.name)
        if not is_new:
            return
        self._track_again(*self._tracker.stranded)
        for queue in state.local_queues.values():
            if queue.cluster_queue == cluster_queue.name:
                self._track_again(*state.by_local_queue.get(queue.key, ()), only_waiting=True)

    def delete_cluster_queue(self, name: str) -> None:
        """Forget a ClusterQueue and its queue; its workloads are left without one."""
        cq = self._state.cluster_queues.get(name)
        if cq is None:
            return
        keys = [*cq.workloads, *cq.queue.active, *cq.queue.inadmissible]
        infos = [self._state.workloads[key] for key in keys]
        for info in infos:
            self._tracker.untrack(info)
        del self._state.cluster_queues[name]
        self._state.ready.pop(name, None)
        self._hierarchy.queue_changed(name)
        for info in infos:
            info.current()
            self._tracker.track(info)

    def set_local_queue(self, local_queue: LocalQueue) -> None:
        """Add or replace a LocalQueue; workloads that waited for it are queued, those of a stopped one leave the
        queue."""
        before = self._state.local_queues.get(local_queue.key)
        self._state.local_queues[local_queue.key] = local_queue
        if before != local_queue:
            if self._state.history is not None:
                self._state.history.set_local_queue(local_queue)
            self._track_again(*self._state.by_local_queue.get(local_queue.key, ()), only_waiting=True)
            self._state.clear_pauses((local_queue.cluster_queue,))

    def delete_local_queue(self, key: str) -> None:
        """Forget the LocalQueue `namespace/name`; its pending workloads leave the queue."""
        if self._state.local_queues.pop(key, None) is not None:
            if self._state.history is not None:
                self._state.history.delete_local_queue(key)
            self._track_again(*self._state.by_local_queue.get(key, ()), only_waiting=True)

    def _track_again(self, *keys: str, only_waiting: bool = False) -> None:
        """Put workloads where they belong now."""
        for key in keys:
            info = self._state.workloads[key]
            if info.queue_state is QueueState.RESERVING or (only_waiting and info.workload.holds_quota):
                continue
            self._tracker.untrack(info)
            info.current()
            self._tracker.track(info)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """Add or replace a node (capacity, labels, taints, readiness, devices)."""
        before = set(self._state.dirty_queues)
        self._state.set_node(node)
        self._state.clear_pauses(self._state.dirty_queues - before)

    def delete_node(self, name: str) -> None:
        """Forget a node."""
        self._state.delete_node(name)
