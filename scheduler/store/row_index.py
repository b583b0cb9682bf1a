"""Maps the World's objects to rows, and applies changed rows to the World."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpus.models import Node as NodeRow
from queues.services.admission_rows import why
from scheduler.store import objects
from scheduler.store.batch import DeviceRow, WorkloadWrite
from scheduler.store.changes import Changes
from scheduler.store.device_objects import DEVICE_OBJECT, read_device_objects
from scheduler.store.node_rows import read_nodes
from scheduler.store.variant_index import VariantIndex
from scheduler.store.workloads import StoredWorkload, read_workloads
from scheduling.devices.claims.objects import DeviceObjects
from scheduling.devices.requests.requests import pod_device_request
from scheduling.lifecycle.context import EvictionRequest, WorkloadContext
from scheduling.lifecycle.inadmissible import NAMESPACE_MISMATCH
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.configuration import Configuration, Features
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from scheduling.model.vendor import DeviceVendor
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Workload
from scheduling.reservations.reservation import Reservation
from scheduling.reservations.reserved_nodes import candidate_of
from scheduling.state.second_pass import is_delayed
from scheduling.world import World

Place = tuple[str, str]
"""A device: (node, uuid)."""


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """The row of a workload. `runs`: by its saved state, its pods should be running."""

    id: int
    generation: int
    uid: str
    reason: str
    runs: bool
    placement: Placement | None
    has_job: bool
    active: bool
    pods_stopped: bool
    deletion_requested: bool
    eviction_request: EvictionRequest | None
    on_hold: str
    accumulated_seconds: int
    eviction_counts: tuple[Mapping[str, Any], ...]
    elastic: bool


@dataclass(frozen=True, slots=True)
class StoredDevice:
    """The row of a device."""

    id: int
    node_id: int


class RowIndex:
    """Rows by the World's names. Changed only while reading rows and after COMMIT, so that undoing the World needs
    no undo here."""

    def __init__(self, cluster_id: int, world: World, aside: Collection[str] = ()) -> None:
        """`aside` are the keys of workloads that are left out: waiting workloads are not in the World, and workloads
        with quota take no steps.
        """
        self._cluster_id = cluster_id
        self._world = world
        self.aside = set(aside)
        self.workloads: dict[str, WorkloadRow] = {}
        self.local_queues: dict[str, LocalQueue] = {}
        self.local_queue_ids: dict[str, int] = {}
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.nodes: dict[str, Node] = {}
        self.vendors: tuple[DeviceVendor, ...] = ()
        self.features = Features()
        self._device_objects = DeviceObjects()
        self.draining: set[Place] = set()
        """Drained places: (node, uuid), or (node, "") for a whole node."""
        self.devices: dict[tuple[str, str], StoredDevice] = {}
        self.due: dict[str, None] = {}
        """Workloads whose row changed since the last saved batch, so that a step may be due."""
        self._everyone_is_due = False
        self._queue_problems: dict[str, str] = {}
        """Why ClusterQueues are inactive, apart from their stop policy."""
        self.variants = VariantIndex(self, world)
        self._next_slices: dict[str, str] = {}
        """Slices of elastic jobs -> the workload that waits to replace them."""
        self.ended: dict[int, frozenset[Place]] = {}
        """Rows of ended workloads that still hold slices -> their devices."""

    # -- Reading -------------------------------------------------------------------------------------------------------

    def load(self, now: float, workloads: Mapping[int, str] | None = None) -> None:
        """Load the cluster, in the order in which objects refer to each other; if `workloads` (ids with keys) is
        given, only these workloads."""
        for kind in KINDS_IN_ORDER:
            self._read(kind, workloads if kind == "workload" else None, now)
        self._queue_problems = self._world.queue_problems()
        self._everyone_is_due = False

    def set_features(self, features: Features, now: float) -> None:
        """From now on, apply the feature gates when counting each workload. Known workloads are read again."""
        if features == self.features:
            return
        gate_moved = features.concurrent_admission is not self.features.concurrent_admission
        self.features = features
        if gate_moved and self.cluster_queues:
            self._read("clusterqueue", None, now)
        if self.workloads:
            self._read_workloads(None, now)

    def apply(self, changes: Changes, now: float) -> None:
        """Apply the present state of the changed rows. Deleted objects are removed first, since a new object may have
        the name.
        """
        for kind in KINDS_IN_ORDER:
            noted = changes.by_kind.get(kind)
            if noted:
                self._read(kind, noted, now)
        if not _CONFIGURATION.isdisjoint(changes.by_kind):
            before, self._queue_problems = self._queue_problems, self._world.queue_problems()
            self._everyone_is_due |= before != self._queue_problems
        if self._everyone_is_due:
            self.everyone_is_due()

    def _read(self, kind: str, noted: Mapping[int, str] | None, now: float) -> None:
        if kind == "workload":
            self._read_workloads(noted, now)
            return
        if kind == "node":
            self._read_nodes(noted)
            return
        if kind == DEVICE_OBJECT:
            self._read_device_objects(None if noted is None else set(noted.values()))
            return
        add, forget = self._plain(kind)
        found = objects.read_objects(kind, self._cluster_id, None if noted is None else list(noted))
        for id_, key in (noted or {}).items():
            if id_ not in found:
                forget(key)
        for id_, found_object in found.items():
            add(found_object)
            if kind == "localqueue":
                self.local_queue_ids[found_object.key] = id_
        if kind == "namespace":
            self._everyone_is_due = True  # ClusterQueues select namespaces by their labels

    def _plain(self, kind: str) -> tuple[Callable[[Any], None], Callable[[str], None]]:
        world = self._world
        table: dict[str, tuple[Callable[[Any], None], Callable[[str], None]]] = {
            "namespace": (lambda found: world.set_namespace(*found), world.delete_namespace),
            "runtimeclass": (world.set_runtime_class, world.delete_runtime_class),
            "limitrange": (world.set_limit_range, world.delete_limit_range),
            "resourcequota": (world.set_resource_quota, world.delete_resource_quota),
            "resourceflavor": (world.set_resource_flavor, world.delete_resource_flavor),
            "topology": (world.set_topology, world.delete_topology),
            "admissioncheck": (world.set_admission_check, world.delete_admission_check),
            "cohort": (world.set_cohort, world.delete_cohort),
            "clusterqueue": (self._set_cluster_queue, self._delete_cluster_queue),
            "localqueue": (self._set_local_queue, self._delete_local_queue),
            "reservation": (self._set_reservation, self._delete_reservation),
        }
        return table[kind]

    def _set_local_queue(self, local_queue: LocalQueue) -> None:
        before = self.local_queues.get(local_queue.key)
        self.local_queues[local_queue.key] = local_queue
        self._world.set_local_queue(local_queue)
        if before != local_queue and not local_queue.differs_in_past_use_only(before):
            self._users_are_due(local_queue.key)

    def _delete_local_queue(self, key: str) -> None:
        self.local_queues.pop(key, None)
        self.local_queue_ids.pop(key, None)
        self._world.delete_local_queue(key)
        self._users_are_due(key)

    def _set_reservation(self, reservation: Reservation) -> None:
        self._world.set_reservation(reservation)
        self._holders_are_due()

    def _delete_reservation(self, name: str) -> None:
        self._world.delete_reservation(name)
        self._holders_are_due()

    def _holders_are_due(self) -> None:
        """A reservation or its nodes changed: workloads with quota may be evicted at another time."""
        holders = self._world.objects.reserving()
        self.due.update(dict.fromkeys(key for key in holders if key in self.workloads))

    def _users_are_due(self, local_queue: str) -> None:
        """Its own workloads only: else each edit of one tenant would cost a step for every workload of the cluster."""
        users = self._world.workloads_of_local_queue(local_queue)
        self.due.update(dict.fromkeys(key for key in users if key in self.workloads))

    def _set_cluster_queue(self, cluster_queue: ClusterQueue) -> None:
        if not self.features.concurrent_admission:
            cluster_queue = replace(cluster_queue, concurrent_admission=None)
        self.cluster_queues[cluster_queue.name] = cluster_queue
        self._world.set_cluster_queue(cluster_queue)
        self._everyone_is_due = True

    def _delete_cluster_queue(self, name: str) -> None:
        self.cluster_queues.pop(name, None)
        self._world.delete_cluster_queue(name)
        self._everyone_is_due = True

    def everyone_is_due(self) -> None:
        """Note that every workload may have a step due, because a queue was stopped, deleted or restarted."""
        self._everyone_is_due = False
        self.due.update(dict.fromkeys(self.workloads))

    def forget_due(self) -> None:
        """Stop tracking due steps, because this process takes none."""
        self.due.clear()
        self.variants.forget_changes()

    def _read_nodes(self, noted: Mapping[int, str] | None) -> None:
        read = read_nodes(self._cluster_id, noted)
        found_ids = {row.pk for row, _ in read}
        for id_, name in (noted or {}).items():
            if id_ not in found_ids:
                self._forget_node(name)
        had_devices = bool(self.devices)
        reserved_anew = any(id_ not in found_ids for id_ in noted or ())
        for row, node in read:
            self._forget_devices(row.name)
            before = self.nodes.get(row.name)
            reserved_anew = reserved_anew or before is None or candidate_of(before) != candidate_of(node)
            self.nodes[row.name] = node
            self._note_draining(row)
            for device in row.devices.all():
                self.devices[row.name, device.uuid] = StoredDevice(device.pk, row.pk)
            self._world.set_node(node)
        if reserved_anew and self._world.objects.reservations:
            self._holders_are_due()
        if self.devices and not had_devices:
            self._everyone_is_due = True  # workloads admitted on quota alone may need devices now

    def _read_device_objects(self, noted: Collection[str] | None) -> None:
        """`noted`: their kinds and names, as notes have them; None: all objects."""
        concerned = self._world.claim_users()
        self._device_objects = read_device_objects(self._cluster_id, noted, self._device_objects)
        self._world.set_device_objects(self._device_objects)
        self.due.update(dict.fromkeys(key for key in (*concerned, *self._world.claim_users()) if key in self.workloads))

    def _note_draining(self, row: NodeRow) -> None:
        before = {place for place in self.draining if place[0] == row.name}
        now = {(row.name, device.uuid) for device in row.devices.all() if device.draining}
        if row.draining:
            now.add((row.name, ""))
        self.draining = (self.draining - before) | now
        if now - before:
            self._everyone_is_due = True

    def _forget_node(self, name: str) -> None:
        self._forget_devices(name)
        self.nodes.pop(name, None)
        self.draining = {place for place in self.draining if place[0] != name}
        self._world.delete_node(name)

    def _forget_devices(self, name: str) -> None:
        known = self.nodes.get(name)
        for device in known.devices if known else ():
            self.devices.pop((name, device.uuid), None)

    def _read_workloads(self, noted: Mapping[int, str] | None, now: float) -> None:
        stored = read_workloads(self._cluster_id, None if noted is None else list(noted))
        found_ids = {workload.id for workload in stored}
        for id_, key in (noted or {}).items():
            entry = self.workloads.get(key)
            if id_ not in found_ids and entry is not None and entry.id == id_:
                self._forget_workload(key)
            elif id_ not in found_ids:
                self.variants.note_gone(key)
        for workload in stored:
            self._set_workload(workload, now)

    def _set_workload(self, stored: StoredWorkload, now: float) -> None:
        workload = stored.workload
        key = workload.key
        if workload.is_true(ConditionType.FINISHED):
            self._forget_finished(stored)
            return
        if key in self.aside and not workload.holds_quota:
            if self.workloads.pop(key, None) is not None:
                self._world.delete_workload(key)
            return
        self.workloads[key] = WorkloadRow(
            id=stored.id,
            generation=stored.generation,
            reason=why(workload)[0],
            uid=workload.uid,
            runs=should_run(workload),
            placement=_stored_placement(stored),
            has_job=stored.has_job,
            active=workload.active,
            pods_stopped=stored.pods_stopped,
            deletion_requested=stored.deletion_requested,
            eviction_request=stored.eviction_request,
            on_hold=stored.on_hold,
            accumulated_seconds=stored.accumulated_seconds,
            eviction_counts=tuple(stored.eviction_counts),
            elastic=stored.elastic,
        )
        self.variants.add(workload)
        if workload.replaces is not None:
            self._next_slices[workload.replaces] = key
        self.due[key] = None
        self._world.set_workload(as_the_world_sees_it(self.features.counted(workload)), now)

    def readmit(self, workloads: Mapping[str, int], now: float) -> None:
        """Add workloads that were left out, key -> row id."""
        self.aside.difference_update(workloads)
        self._read_workloads({id_: key for key, id_ in workloads.items()}, now)

    def _forget_finished(self, stored: StoredWorkload) -> None:
        key = stored.workload.key
        entry = self.workloads.get(key)
        held = places(_stored_placement(stored))
        if held:
            self.ended[stored.id] = held
        if entry is not None and entry.id == stored.id:
            self._forget_workload(key)

    def _forget_workload(self, key: str) -> None:
        workload = self._world.workload(key)
        del self.workloads[key]
        self._world.delete_workload(key)
        self.due.update(dict.fromkeys(self.variants.keys_below(key)))
        if workload is not None:
            self.variants.remove(workload)

    # -- After COMMIT --------------------------------------------------------------------------------------------------

    def saved(self, writes: Iterable[WorkloadWrite], released_ids: Iterable[int], replaced: Iterable[str]) -> None:
        """Update the index with the written state."""
        for key in replaced:
            self.workloads.pop(key, None)
            self._next_slices.pop(key, None)
        for write in writes:
            workload = write.workload
            self.workloads[workload.key] = replace(
                self.workloads[workload.key],
                reason=why(workload)[0],
                runs=should_run(workload),
                active=not write.deactivate,
                eviction_request=None
                if workload.admission is None or write.counted_evictions is not None
                else self.workloads[workload.key].eviction_request,
                placement=placement_of(workload),
                pods_stopped=self.workloads[workload.key].pods_stopped and workload.is_true(ConditionType.EVICTED),
                eviction_counts=tuple(write.counted_evictions or self.workloads[workload.key].eviction_counts),
                accumulated_seconds=(
                    self.workloads[workload.key].accumulated_seconds
                    if write.accumulated_seconds is None
                    else write.accumulated_seconds
                ),
            )
        for id_ in released_ids:
            self.ended.pop(id_, None)

    # -- Queries -------------------------------------------------------------------------------------------------------

    def cluster_queue_of(self, workload: Workload) -> str:
        """Return the ClusterQueue of the workload's LocalQueue; empty if there is no such LocalQueue."""
        local_queue = self.local_queues.get(workload.queue_key)
        return local_queue.cluster_queue if local_queue else ""

    def context(
        self, workload: Workload, configuration: Configuration, now: float, *, wanted: bool | None = None
    ) -> WorkloadContext:
        """Return the inputs of a workload's next step. A workload without running pods counts as stopped."""
        entry = self.workloads[workload.key]
        queue = self.cluster_queue_of(workload)
        reserving = workload.admission.cluster_queue if workload.admission else ""
        has_variants = self.variants.is_parent(workload)
        selected = queue not in self.cluster_queues or self._world.selects_namespace(queue, workload.namespace)
        return WorkloadContext(
            configuration=configuration,
            local_queue=self.local_queues.get(workload.queue_key),
            cluster_queue=_unchecked(self.cluster_queues.get(queue), has_variants),
            reserving_queue=_unchecked(self.cluster_queues.get(reserving), has_variants),
            wanted_active=entry.active if wanted is None else wanted,
            pods_stopped=self._stopped(workload),
            lacks_devices=self._lacks_devices(workload),
            drained=self._drained(workload),
            eviction_request=entry.eviction_request,
            on_hold=entry.on_hold,
            accumulated_seconds=entry.accumulated_seconds,
            inactive_reason=self._queue_problems.get(queue, ""),
            admissibility_error=NAMESPACE_MISMATCH if not selected else self.variants.refusal(workload),
            claim_refusal=self._world.claim_refusal(workload.key),
            evicting_window=self._world.evicting_window(workload.key, now),
            closing_window=self._world.closing_window(workload.key, now),
        )

    def _stopped(self, workload: Workload) -> bool:
        if workload.parent:
            return not self.variants.waits_for_parent(workload)
        return self.workloads[workload.key].pods_stopped or not self.may_run(workload)

    def may_run(self, workload: Workload) -> bool:
        """Return whether pods of a workload with quota may exist: it has a job, and was admitted or took over pods of
        another slice."""
        took_over = workload.admission is not None and workload.replaces is not None
        return self.workloads[workload.key].has_job and (took_over or workload.is_true(ConditionType.ADMITTED))

    def _drained(self, workload: Workload) -> str:
        if not self.draining:
            return ""
        placement = placement_of(workload)
        pods = placement.pods if placement else ()
        nodes = {pod.node for pod in pods if (pod.node, "") in self.draining}
        devices = {f"{node}/{uuid}" for node, uuid in places(placement) if (node, uuid) in self.draining}
        return ", ".join(sorted(nodes | devices))

    def _lacks_devices(self, workload: Workload) -> bool:
        if not self.devices or workload.admission is None or workload.placement is not None or is_delayed(workload):
            return False
        if workload.parent or self.variants.is_parent(workload):
            return False
        if self._world.hands_over(workload.admission.cluster_queue):
            return False
        counts = {found.name: found.count for found in workload.admission.pod_set_assignments}
        templates = (pod_set.template.manifest for pod_set in workload.pod_sets if counts.get(pod_set.name))
        return any(pod_device_request(manifest, self.vendors).asks_for_devices for manifest in templates)

    def waiting_slice_of(self, key: str) -> str:
        """Return the workload that waits to replace a slice of an elastic job; empty if there is none."""
        found = self._world.workload(self._next_slices.get(key, ""))
        waits = found is not None and found.replaces == key and found.admission is None
        return found.key if found is not None and waits else ""

    def gave_up_replicas(self, workload: Workload) -> list[str]:
        """Return the removed replicas whose slices are still stored, as `pod set/number`, in order."""
        entry = self.workloads[workload.key]
        held = {(pod.pod_set, pod.replica) for pod in entry.placement.pods} if entry.placement else set()
        placement = placement_of(workload)
        kept = {(pod.pod_set, pod.replica) for pod in placement.pods} if placement else set()
        return [f"{pod_set}/{replica}" for pod_set, replica in sorted(held - kept)]

    def device_row(self, node: str, uuid: str) -> DeviceRow | None:
        """Return the device's row; None if its node no longer lists it."""
        stored = self.devices.get((node, uuid))
        if stored is None:
            return None
        return DeviceRow(stored.id, stored.node_id)


KINDS_IN_ORDER = (
    "namespace",
    "runtimeclass",
    "limitrange",
    "resourcequota",
    "resourceflavor",
    "topology",
    "admissioncheck",
    "cohort",
    "clusterqueue",
    "localqueue",
    "node",
    "reservation",
    DEVICE_OBJECT,
    "workload",
)
"""The kinds of rows that affect decisions, in the order in which objects refer to each other."""
_CONFIGURATION = frozenset({"resourceflavor", "topology", "admissioncheck", "cohort", "clusterqueue"})
"""The kinds that decide whether a ClusterQueue is active."""


def _unchecked(queue: ClusterQueue | None, has_variants: bool) -> ClusterQueue | None:
    """Return the ClusterQueue as a workload sees it: a parent of variants has no admission checks, they do (Kueue)."""
    return replace(queue, admission_checks=()) if queue is not None and has_variants else queue


def placement_of(workload: Workload) -> Placement | None:
    """Return the nodes of its pods; None without quota."""
    return workload.placement if workload.admission is not None else None


def _stored_placement(stored: StoredWorkload) -> Placement | None:
    """Return the placement in the rows, with the slices of removed replicas."""
    placement = placement_of(stored.workload)
    if not stored.left_over:
        return placement
    return Placement((*(placement.pods if placement else ()), *stored.left_over))


def places(placement: Placement | None) -> frozenset[Place]:
    """Return the devices in which a placement has slices."""
    pods = placement.pods if placement else ()
    return frozenset((held.node, held.uuid) for pod in pods for held in pod.slices)


def should_run(workload: Workload) -> bool:
    """Return whether its pods should run: admitted, and not asked to stop."""
    return workload.is_true(ConditionType.ADMITTED) and not workload.is_true(ConditionType.EVICTED)


def as_the_world_sees_it(workload: Workload) -> Workload:
    """Return the workload as the World sees it.

    A deactivated workload that holds devices is charged until its pods have stopped, because a device with running pods
    is not free. A workload that holds only quota releases it at once, as in Kueue (T56b).
    """
    if workload.active or workload.admission is None or workload.placement is None:
        return workload
    return replace(workload, active=True)
