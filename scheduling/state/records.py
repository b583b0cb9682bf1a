"""Creates the engine's records of workloads, and creates them again when the charges of their claims change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter
from typing import Final

from scheduling.devices.claims.charges import ClaimsNotCounted
from scheduling.devices.claims.evaluations import DeviceKind
from scheduling.devices.claims.objects import DeviceObjects
from scheduling.model.workload import Workload
from scheduling.state.admission_state import WorkloadTracker
from scheduling.state.state import State
from scheduling.state.workload_info import QueueState, WorkloadInfo

_MAX_UNUSED_KINDS: Final = 64
"""The number of kinds of devices that are counted on the nodes although no known workload requests them."""
_MAX_TRIED: Final = 16
"""The number of workloads of a namespace that are tried at a time after one requested too many kinds of devices."""
_MAX_READ_AT_ONCE: Final = 100
"""How many waiting workloads a cycle reads again after a change of a namespace or queue that concerns more of them."""


class WorkloadRecords:
    """Records of workloads, charged for their claims."""

    def __init__(self, state: State, tracker: WorkloadTracker) -> None:
        self._state = state
        self._tracker = tracker
        self._uncounted: dict[str, dict[str, None]] = {}
        """By namespace, the workloads whose claims could not be counted yet; some may no longer be known."""
        self._counted: dict[str, None] = {}
        self._nodes_follow = False
        """Whether new kinds of devices may be counted on the nodes, although a savepoint is open."""

    def snapshot(self) -> tuple[dict[str, dict[str, None]], dict[str, None]]:
        """Return a copy of the notes on claims."""
        return {namespace: dict(keys) for namespace, keys in self._uncounted.items()}, dict(self._counted)

    def restore(self, values: tuple[dict[str, dict[str, None]], dict[str, None]]) -> None:
        """Go back to a snapshot."""
        self._uncounted, self._counted = values

    @contextmanager
    def counting_anew(self) -> Iterator[None]:
        """Count new kinds of devices on the nodes within the block: the rules of claims are new, and are undone
        together with the nodes."""
        self._nodes_follow = True
        try:
            yield
        finally:
            self._nodes_follow = False

    def new(self, workload: Workload) -> WorkloadInfo:
        """Return a new record of a workload, whose pods are completed with the cluster's defaults."""
        state = self._state
        info = WorkloadInfo(
            workload,
            state.configuration,
            state.pod_defaults,
            state.claims,
            has_namespace_device_quota=state.fleet.quotas.limits(workload.namespace),
            has_fixed_nodes=state.journal.is_open and not self._nodes_follow,
        )
        if isinstance(info.claim_refusal, ClaimsNotCounted):
            self._uncounted.setdefault(workload.namespace, {})[info.key] = None
        return info

    def exchange(self, before: WorkloadInfo, info: WorkloadInfo) -> None:
        """Replace a workload's record and track the new one. A sticky workload stays sticky."""
        state = self._state
        cq = state.cluster_queues.get(before.cluster_queue)
        sticky = cq is not None and cq.queue.sticky == before.key
        self._tracker.untrack(before)
        state.forget(before)
        state.insert(info)
        self._tracker.track(info)
        if sticky and cq is not None and info.cluster_queue == cq.name and info.queue_state is not QueueState.RESERVING:
            cq.queue.sticky = info.key

    # -- outdated ones -------------------------------------------------------------------------------------------------

    def outdate(self, keys: Iterable[str], *, requests: bool) -> None:
        """Mark waiting workloads to be read again: some in each cycle, in order, and each one before it is decided.
        Workloads with quota keep it."""
        found = sorted(map(self._state.workloads.__getitem__, keys), key=attrgetter("order"))
        outdated = dict.fromkeys(map(attrgetter("key"), found), requests)
        if not requests:
            outdated |= {key: True for key, value in self._state.outdated.items() if value and key in outdated}
        self._state.outdated |= outdated

    def read_outdated(self) -> int:
        """Read some outdated workloads again, the heads of queues first; return their number."""
        outdated = self._state.outdated
        if not outdated:
            return 0
        before = len(outdated)
        for cq in self._state.ready_queues():
            while (head := cq.queue.head) is not None and head.key in outdated:
                if before - len(outdated) >= _MAX_READ_AT_ONCE:
                    return before - len(outdated)
                self.update(head.key)
        for key in list(islice(outdated, _MAX_READ_AT_ONCE - (before - len(outdated)))):
            self.update(key)
        return before - len(outdated)

    def update(self, key: str) -> None:
        """Read a workload again if it is outdated, and wake it."""
        state = self._state
        requests = state.outdated.pop(key, None)
        if requests is None:
            return
        info = state.workloads.get(key)
        if info is None or info.queue_state is QueueState.RESERVING or info.workload.holds_quota:
            return
        if requests:
            state.waking.clear_pauses((info.cluster_queue,))
            self.exchange(info, self.new(info.current()))
        else:
            self._tracker.untrack(info)
            info.current()
            self._tracker.track(info)

    # -- claims --------------------------------------------------------------------------------------------------------

    def set_device_objects(self, objects: DeviceObjects) -> None:
        """Replace the device classes, published devices and claim templates. Workloads with claims get new requests;
        pending ones may be tried again.
        """
        state, before = self._state, self._state.claims.objects
        if objects == before:
            return
        if (objects.classes, objects.pools, objects.taken) == (before.classes, before.pools, before.taken):
            now, then = objects.templates, before.templates
            keys = now.keys() | then.keys()
            # Most are the same objects: they need no comparison field by field.
            changed = {key for key in keys if now.get(key) is not then.get(key) and now.get(key) != then.get(key)}
            if changed.isdisjoint(self._named_templates()):
                state.journal.note(state.claims.set_templates, before)
                state.claims.set_templates(objects)
                return
        with self.counting_anew():
            self._count_all(objects)

    def _count_all(self, objects: DeviceObjects) -> None:
        state, classes = self._state, self._state.claims.objects.classes
        users = dict(state.claim_users)
        state.set_claims(objects)
        if objects.classes != classes:  # they may offer extended resources now
            users |= dict.fromkeys(info.key for info in state.workloads.values() if self._claims_devices(info))
        for info in [state.workloads[key] for key in users]:
            self._replace(info, self.new(info.current()))
        state.set_devices_of_nodes()
        self._charge_displaced(state.claims.take_new_kinds())

    def _named_templates(self) -> set[str]:
        """Return the claim templates, as `namespace/name`, to which pods of known workloads refer."""
        claims = self._state.claims
        return {
            name
            for info in (self._state.workloads[key] for key in self._state.claim_users)
            for name in claims.templates_of(info.workload.namespace, [each.pod_set for each in info.pod_sets])
        }

    def _claims_devices(self, info: WorkloadInfo) -> bool:
        return self._state.claims.concerns([pod_set.pod_set for pod_set in info.pod_sets])

    def _replace(self, before: WorkloadInfo, info: WorkloadInfo) -> None:
        self._state.waking.clear_pauses((before.cluster_queue,))
        self.exchange(before, info)
        self._state.dirty_queues.add(info.cluster_queue)

    def follow_device_kinds(self) -> None:
        """Count the kinds of devices that are new on the nodes, and charge them to the workloads that hold such
        devices."""
        state = self._state
        new = state.claims.take_new_kinds()
        if not new:
            return
        unused = {kind for kind in state.claims.places.kinds if kind.is_of_tenants} - state.evaluations.used_kinds()
        if len(unused) > _MAX_UNUSED_KINDS:
            self._count_all(state.claims.objects)
            return
        state.set_devices_of_nodes()
        self._charge_displaced(new)

    def _charge_displaced(self, new: set[DeviceKind]) -> None:
        """Create the records again that were created before these kinds of devices were known and share devices with
        them.
        """
        state = self._state
        names = {kind.resource for kind in new}
        sharing = state.claims.places.displaced_by(new) if new else set()
        for info in [state.workloads[key] for key in state.claim_users] if new else ():
            charged = {name for each in info.pod_sets for name in each.claimed.devices}
            if not charged.isdisjoint(sharing):
                again = self.new(info.current())
                now = {name for each in again.pod_sets for name in each.claimed.devices}
                if not names.isdisjoint(now - charged):
                    self._replace(info, again)

    def count_waiting_claims(self) -> None:
        """Count claims that were too costly before. The namespace with the most steps left goes first."""
        state = self._state
        if not self._uncounted or state.journal.is_open:
            return
        for namespace in state.evaluations.by_steps_left(self._uncounted):
            self._count_claims_of(namespace)
        self.follow_device_kinds()

    def _count_claims_of(self, namespace: str) -> None:
        waiting = self._uncounted.pop(namespace)
        first: dict[str, None] = {}
        tried = 0
        for key in list(waiting):
            del waiting[key]
            info = self._state.workloads.get(key)
            if info is None or not isinstance(info.claim_refusal, ClaimsNotCounted):
                continue
            again = self.new(info.current())
            refusal = again.claim_refusal
            if str(refusal) != str(info.claim_refusal):
                self._replace(info, again)
                self._counted[key] = None
            if isinstance(refusal, ClaimsNotCounted):
                tried += 1
                first = {key: None} if refusal.goes_on else {}
                if refusal.goes_on or tried == _MAX_TRIED:
                    break
        left = first | waiting | self._uncounted.pop(namespace, {})
        if left:
            self._uncounted[namespace] = left

    def take_counted(self) -> list[str]:
        """Return the keys of workloads whose claims were counted, or refused for another reason, since the last
        call."""
        found, self._counted = list(self._counted), {}
        return found
