"""The objects of a World but for its workloads: configuration, queues, quotas and nodes are set and deleted.

Every `set_` method adds or replaces an object, every `delete_` method removes it; deleting an unknown object does
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NoReturn

from scheduling.cycle.wiring import CycleParts
from scheduling.devices.claims.objects import DeviceObjects
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
from scheduling.reservations.reservation import Reservation
from scheduling.state.admission_state import WorkloadTracker
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.hierarchy import Hierarchy
from scheduling.state.records import WorkloadRecords
from scheduling.state.state import State
from scheduling.state.structure import Structure


class WorldObjects:
    """The state of a World, and the methods that change its objects. Workloads follow at the next cycle."""

    def __init__(self, configuration: Configuration | None = None, vendors: Sequence[DeviceVendor] = (NVIDIA,)) -> None:
        """Create an empty world. `vendors` define which resources and annotations request devices."""
        self._state = State(configuration or Configuration(), vendors)
        self._hierarchy = Hierarchy(self._state)
        self._structure = Structure(self._state, self._hierarchy)
        self._tracker = WorkloadTracker(self._state)
        self._records = WorkloadRecords(self._state, self._tracker)
        self._parts = CycleParts(self._state)

    def __copy__(self) -> NoReturn:
        """Refuse: parts of a World find each other by identity, so that a copy would decide wrongly without a word."""
        raise TypeError(
            "a World cannot be copied: try changes between savepoint() and undo(), fork the process, or build another "
            "World from the same objects"
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        self.__copy__()

    @property
    def configuration(self) -> Configuration:
        return self._state.configuration

    def set_configuration(self, configuration: Configuration) -> None:
        """Replace the configuration. All requests are computed again, and every workload may be tried again."""
        state = self._state
        if configuration == state.configuration:
            return
        self._note_structure()
        workloads = [info.current() for info in state.workloads.values()]
        for info in [*state.workloads.values()]:
            self._tracker.untrack(info)
            state.forget(info)
        state.journal.note(self._use_parts, self._parts)
        state.set_configuration(configuration)
        self._use_parts(CycleParts(state))
        self._hierarchy.references_changed()
        with self._records.counting_anew():
            for workload in workloads:
                info = self._records.new(workload)
                state.insert(info)
                self._tracker.track(info)
            self._records.follow_device_kinds()

    def _use_parts(self, parts: CycleParts) -> None:
        self._parts = parts

    def set_vendors(self, vendors: Sequence[DeviceVendor]) -> None:
        """Replace the vendors, which define the resources and annotations that request devices."""
        if tuple(vendors) != self._state.vendors:
            self._state.set_vendors(vendors)
            self._state.dirty_queues.update(self._state.cluster_queues)
            for namespace in {quota.namespace for quota in self._state.fleet.quotas.quotas}:
                self._records.outdate(self._in_namespace(namespace), requests=True)  # it may limit other resources now

    def set_placement_policies(self, node_policy: str, device_policy: str) -> None:
        """Replace the policies that choose nodes and devices for pods without a policy of their own. `fgd` and
        `bid-price` learn typical pods from the known workloads. Call this after `set_vendors`."""
        state = self._state
        state.journal.note_again(state.fleet)
        settings = state.fleet.settings
        if (settings.node_policy, settings.device_policy) != (node_policy, device_policy):
            state.fleet.set_policies(node_policy, device_policy)
            state.dirty_queues.update(state.cluster_queues)  # a workload may fit without `mutex`
        state.fleet.mix.source = self.typical_pods

    def typical_pods(self) -> tuple[TypicalPod, ...]:
        """Return the typical shapes of the pods that wait or run now."""
        return self._state.workloads.typical_pods(self._state.vendors)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Set a namespace's labels, which the namespace selectors of ClusterQueues match."""
        state = self._state
        if state.namespaces.get(name) != labels:
            self._note_structure()
            selecting = [cq for cq in state.cluster_queues.values() if state.selects_namespace(cq, name)]
            state.namespaces[name] = dict(labels)
            for cq in selecting:
                if not state.selects_namespace(cq, name):
                    state.waking.wake_deselected(cq, {name})
            state.dirty_queues.update(state.cluster_queues)
            state.waking.clear_pauses(state.cluster_queues)

    def delete_namespace(self, name: str) -> None:
        self._note_structure()
        self._state.namespaces.pop(name, None)

    def set_resource_quota(self, quota: NamespaceQuota) -> None:
        """Add or replace a namespace's ResourceQuota of devices, and wake the workloads that wait for devices."""
        quotas = self._state.fleet.quotas
        limited = quotas.limits(quota.namespace)
        self._state.journal.note_again(quotas)
        if quotas.set_quota(quota):
            self._quota_changed(quota.namespace, limited)

    def delete_resource_quota(self, key: str) -> None:
        """Delete the ResourceQuota `namespace/name`."""
        namespace, _, name = key.partition("/")
        quotas = self._state.fleet.quotas
        limited = quotas.limits(namespace)
        self._state.journal.note_again(quotas)
        if quotas.delete_quota(namespace, name):
            self._quota_changed(namespace, limited)

    def _quota_changed(self, namespace: str, limited: bool) -> None:
        waiting = set(self._state.waiting_for_devices)
        self._state.waking.wake_waiting_for_devices()
        self._state.waking.clear_pauses(waiting)
        if self._state.fleet.quotas.limits(namespace) is not limited:
            # Scheduling hashes depend on whether there is a quota.
            self._records.outdate(self._in_namespace(namespace), requests=True)

    def set_limit_range(self, limit_range: LimitRange) -> None:
        """Add or replace a LimitRange. Pending workloads of its namespace get new requests and may be tried again.
        Workloads with quota keep it."""
        self._state.journal.note_again(self._state.pod_defaults)
        if self._state.pod_defaults.set_limit_range(limit_range):
            self._records.outdate(self._in_namespace(limit_range.namespace), requests=True)

    def delete_limit_range(self, key: str) -> None:
        """Delete the LimitRange `namespace/name`."""
        namespace, _, name = key.partition("/")
        self._state.journal.note_again(self._state.pod_defaults)
        if self._state.pod_defaults.delete_limit_range(namespace, name):
            self._records.outdate(self._in_namespace(namespace), requests=True)

    def set_runtime_class(self, runtime_class: RuntimeClass) -> None:
        """Add or replace a RuntimeClass. Pending workloads that name it get new requests with its overhead."""
        self._state.journal.note_again(self._state.pod_defaults)
        if self._state.pod_defaults.set_runtime_class(runtime_class):
            self._records.outdate(self._running_under(runtime_class.name), requests=True)

    def delete_runtime_class(self, name: str) -> None:
        self._state.journal.note_again(self._state.pod_defaults)
        if self._state.pod_defaults.delete_runtime_class(name):
            self._records.outdate(self._running_under(name), requests=True)

    def set_device_objects(self, objects: DeviceObjects) -> None:
        """Replace the device classes, published devices and claim templates. Workloads with claims get new requests.
        Pending ones may be tried again."""
        self._records.set_device_objects(objects)

    def _in_namespace(self, namespace: str) -> Iterator[str]:
        prefix = f"{namespace}/"
        queues = [keys for queue, keys in self._state.by_local_queue.items() if queue.startswith(prefix)]
        return chain.from_iterable(queues)

    def _running_under(self, runtime_class: str) -> list[str]:
        return [
            info.key
            for info in self._state.workloads.values()
            if any(names_runtime_class(pod_set, runtime_class) for pod_set in info.workload.pod_sets)
        ]

    def set_resource_flavor(self, flavor: ResourceFlavor) -> None:
        """Add or replace a flavor."""
        self._note_structure()
        self._state.flavors[flavor.name] = flavor
        self._state.sync_topology_flavor(flavor.name)
        self._hierarchy.references_changed()

    def delete_resource_flavor(self, name: str) -> None:
        """Delete a flavor. ClusterQueues that reference it become inactive."""
        self._note_structure()
        if self._state.flavors.pop(name, None) is not None:
            self._state.sync_topology_flavor(name)
            self._hierarchy.references_changed()

    def set_reservation(self, reservation: Reservation) -> None:
        """Add or replace a reservation of nodes. Pending workloads are compared again and may be tried again."""
        if self._state.reservations.known.get(reservation.name) != reservation:
            self._state.journal.note_again(self._state.reservations)
            self._state.reservations.set(reservation)
            self._reservations_changed()

    def delete_reservation(self, name: str) -> None:
        if name in self._state.reservations.known:
            self._state.journal.note_again(self._state.reservations)
            self._state.reservations.delete(name)
            self._reservations_changed()

    def _reservations_changed(self) -> None:
        pending = chain.from_iterable(cq.queue.keys() for cq in self._state.cluster_queues.values())
        self._records.outdate(list(pending), requests=False)
        self._state.dirty_queues.update(self._state.cluster_queues)
        self._state.waking.clear_pauses(self._state.cluster_queues)

    def set_topology(self, topology: Topology) -> None:
        """Add or replace a topology."""
        self._note_structure()
        self._state.topologies[topology.name] = topology
        self._topology_changed(topology.name)

    def delete_topology(self, name: str) -> None:
        self._note_structure()
        if self._state.topologies.pop(name, None) is not None:
            self._topology_changed(name)

    def _topology_changed(self, name: str) -> None:
        for flavor in self._state.flavors.values():
            if flavor.topology_name == name:
                self._state.sync_topology_flavor(flavor.name)
        self._hierarchy.references_changed()

    def set_admission_check(self, check: AdmissionCheck) -> None:
        """Add or replace an admission check."""
        self._note_structure()
        self._state.checks[check.name] = check
        self._hierarchy.references_changed()

    def set_check_active(self, name: str, *, active: bool) -> None:
        """Set whether a known admission check is active."""
        check = self._state.checks.get(name)
        if check is not None:
            self.set_admission_check(replace(check, active=active))

    def delete_admission_check(self, name: str) -> None:
        self._note_structure()
        if self._state.checks.pop(name, None) is not None:
            self._hierarchy.references_changed()

    def set_cohort(self, cohort: Cohort) -> None:
        """Add or replace a cohort. The whole tree is computed again."""
        self._note_structure()
        self._state.cohorts[cohort.name] = cohort
        self._hierarchy.cohort_changed(cohort.name)

    def delete_cohort(self, name: str) -> None:
        """Delete a cohort. It remains as an implicit cohort while other objects name it."""
        self._note_structure()
        if self._state.cohorts.pop(name, None) is not None:
            self._hierarchy.cohort_changed(name)

    def set_cluster_queue(self, cluster_queue: ClusterQueue) -> None:
        """Add or replace a ClusterQueue. Its usage is kept."""
        self._note_structure()
        state = self._state
        cq = state.cluster_queues.get(cluster_queue.name)
        is_new = cq is None
        if cq is None:
            cq = state.cluster_queues[cluster_queue.name] = ClusterQueueState(cluster_queue, state.journal)
        changed = cluster_queue.namespace_selector != cq.spec.namespace_selector
        selected = state.selected_namespaces(cq) if changed else set()
        cq.set_spec(cluster_queue, state.flavors)
        if changed:
            state.waking.wake_deselected(cq, selected - state.selected_namespaces(cq))
        self._parts.queue_usage(cq)
        self._hierarchy.queue_changed(cluster_queue.name)
        if not is_new:
            return
        for key in list(self._tracker.stranded):
            info = state.workloads[key]
            self._tracker.untrack(info)
            info.current()
            self._tracker.track(info)
        for queue in state.local_queues.values():
            if queue.cluster_queue == cluster_queue.name:
                self._records.outdate(state.by_local_queue.get(queue.key, ()), requests=False)

    def delete_cluster_queue(self, name: str) -> None:
        """Delete a ClusterQueue and its queue. Its workloads then belong to no queue."""
        cq = self._state.cluster_queues.get(name)
        if cq is None:
            return
        self._note_structure()
        keys = [*cq.workloads, *cq.queue.keys()]
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
        """Add or replace a LocalQueue. Its pending workloads are queued; those of a stopped LocalQueue are dequeued."""
        self._note_structure()
        before = self._state.local_queues.get(local_queue.key)
        self._state.local_queues[local_queue.key] = local_queue
        if before != local_queue and not local_queue.differs_in_past_use_only(before):
            if self._state.history is not None:
                self._state.history.set_local_queue(local_queue)
            self._records.outdate(self._state.by_local_queue.get(local_queue.key, ()), requests=False)
            self._state.waking.clear_pauses((local_queue.cluster_queue,))

    def delete_local_queue(self, key: str) -> None:
        """Delete the LocalQueue `namespace/name`. Its pending workloads are dequeued."""
        self._note_structure()
        if self._state.local_queues.pop(key, None) is not None:
            if self._state.history is not None:
                self._state.history.delete_local_queue(key)
            self._records.outdate(self._state.by_local_queue.get(key, ()), requests=False)

    def set_node(self, node: Node) -> None:
        """Add or replace a node (capacity, labels, taints, readiness, devices)."""
        before = set(self._state.dirty_queues)
        self._state.set_node(node)
        self._state.waking.clear_pauses(self._state.dirty_queues - before)

    def delete_node(self, name: str) -> None:
        self._state.delete_node(name)

    def _note_structure(self) -> None:
        """Record the configuration objects before one of them changes. It is copied once per savepoint."""
        self._state.journal.note_once(self._structure)
