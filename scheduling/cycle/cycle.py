"""One scheduling cycle, with the steps of Kueue:

1. Take the head of every ClusterQueue.
2. Use the live usage as the snapshot: usage that is only tried in this cycle is taken back at its end.
3. Nominate: find the flavors and preemption targets of every head, each against the same unchanged usage.
4. Order the heads.
5. Admit, preempt or skip each head, on top of the usage of the heads before it.
6. Put every head that was not admitted back into its queue, as active or inadmissible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from scheduling.cycle.admission import Admitter
from scheduling.cycle.assignment import Mode
from scheduling.cycle.closed_nodes import equal_hashes, wake_after_window
from scheduling.cycle.entry_order import classical_order, fair_order
from scheduling.cycle.explain import describe_preemption, describe_refusals
from scheduling.cycle.flavor_devices import DeviceAssigner
from scheduling.cycle.flavor_topology import TopologyAssigner
from scheduling.cycle.nomination import Entry, Nominator, RequeueReason, Status
from scheduling.cycle.siblings import Siblings
from scheduling.cycle.user_limits import refuse_user
from scheduling.lifecycle.conditions import blocked_on_gates, topology_delayed
from scheduling.model.decisions import Admit, CycleResult, Evict, Outcome, Preempt, SecondPassFailed
from scheduling.model.vocabulary import DecisionKind, EvictionReason, PendingReason, ReclaimWithinCohortPolicy
from scheduling.quota.cells import Cell, CellAmounts, add_usage, remove_usage
from scheduling.state.preemption_loops import describe_pause
from scheduling.state.state import State
from scheduling.state.workload_info import LastAssignment, TopologyCharge, WorkloadInfo

_IMMEDIATE = frozenset({RequeueReason.FAILED_AFTER_NOMINATION, RequeueReason.PENDING_PREEMPTION})
_FOR_ROOM = frozenset(
    {PendingReason.WAITING_FOR_DEVICES, PendingReason.WAITING_FOR_NODES, PendingReason.WAITING_FOR_RESERVATION}
)
_BULK = frozenset({RequeueReason.NO_FIT, RequeueReason.NO_CANDIDATES})


class Cycle:
    """One cycle on a state's live usage. Call `run` once."""

    def __init__(
        self,
        state: State,
        nominator: Nominator,
        topology: TopologyAssigner,
        devices: DeviceAssigner,
        admitter: Admitter,
    ) -> None:
        self._state = state
        self._nominator = nominator
        self._topology = topology
        self._devices = devices
        self._admitter = admitter
        self._claimed: dict[int, dict[str, WorkloadInfo]] = {}
        """The workloads preempted in this cycle, by cohort tree."""
        self._gone: dict[str, WorkloadInfo] = {}
        """Claimed workloads whose usage is removed at present."""
        self._taken_back: list[tuple[CellAmounts, list[TopologyCharge]]] = []
        self._lowered: list[tuple[Cell, int]] = []
        self._kept_free: list[tuple[CellAmounts, list[TopologyCharge]]] = []
        """The part of `_taken_back` that is charged for entries that wait without victims."""
        self._used: list[tuple[Entry, CellAmounts]] = []
        """Entries that wait for others to stop, with usage that counts for their users until the end of the cycle."""
        self._admissions: list[Admit] = []
        self._preemptions: list[Preempt] = []
        self._migrations: list[Evict] = []
        self._outcomes: list[Outcome] = []
        self._failures: list[SecondPassFailed] = []
        self._preemption_skips: Counter[str] = Counter()
        self._not_reached: list[Entry] = []
        """Entries that wait for admitted pods to be ready, and all entries after the first of them."""
        self._moved = False
        self._placed: set[str] = set()
        """The keys of workloads that hold quota and were placed, or moved, in this cycle."""
        self._reserved = False
        """Whether devices were reserved in this cycle, so that placements found before may not fit any more."""

    def run(self, *, blocked: bool = False, placed: Iterable[str] = ()) -> CycleResult:
        """Run the cycle.

        The caller has set the state's time and woken its inadmissible workloads. With `blocked`, only second passes of
        workloads that hold quota are decided. `placed` are the keys of workloads that this cycle has already moved to
        other topology domains.
        """
        self._placed.update(placed)
        with self._nominator.searches():
            entries = self._decide_all(blocked=blocked)
        self._take_back()
        for entry in entries:
            if entry in self._not_reached:
                entry.cq.queue.push(entry.info)
            elif entry.status is not Status.ASSUMED:
                self._requeue(entry)
        return CycleResult(
            self._state.cycle,
            tuple(self._admissions),
            tuple(self._preemptions),
            tuple(self._migrations),
            tuple(self._outcomes),
            heads=len(entries),
            progressed=bool(self._admissions or self._preemptions or self._migrations or self._moved),
            second_pass_failures=tuple(self._failures),
            preemption_skips=dict(self._preemption_skips),
        )

    def _decide_all(self, *, blocked: bool) -> list[Entry]:
        """Nominate and decide: second passes first, then the heads."""
        # Second passes hold quota already: they get their places before a new head looks for room.
        entries = self._nominate_second_passes()
        for entry in entries:
            self._decide(entry)
        heads = [] if blocked else self._nominate_heads()
        is_fair = self._state.configuration.fair_sharing is not None
        for entry in self.in_order(entry for entry in heads if not entry.refused):
            # An entry before this one fits, and waits for the pods of others: no later one may overtake it.
            if self._state.readiness.is_stopped:
                self._not_reached.append(entry)
                continue
            self._decide(entry)
            if is_fair:  # the next entry is found by the shares of present usage
                self._set_gone({})
        self._set_gone({})
        return entries + heads

    # -- steps 1 to 4 --------------------------------------------------------------------------------------------------

    def _nominate_second_passes(self) -> list[Entry]:
        state = self._state
        due = [
            found.info for found in state.second_pass.values() if found.is_due(state.now) and not found.info.admitted
        ]
        entries: list[Entry] = []
        for info in sorted(due, key=lambda info: info.order):
            cq = state.cluster_queues[info.cluster_queue]
            if cq.active:
                state.journal.note_once(info)
                entries.append(self._nominator.nominate_again(info, cq))
        return entries

    def _nominate_heads(self) -> list[Entry]:
        state = self._state
        heads = []
        for cq in state.ready_queues():
            head = cq.queue.head
            # The requests of such a head depend on an object that changed, and are computed again before it is decided.
            if head is not None and head.key in state.outdated:
                continue
            state.journal.note_once(cq)
            info = cq.queue.pop()
            if info is not None:
                state.journal.note_once(info)
                heads.append((info, cq))
        self._set_gone({})
        self._nominator.protect_heads(heads)
        return [self._nominator.nominate(info, cq, state.cycle) for info, cq in heads]

    def in_order(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries in the order in which they are decided. The order is lazy: earlier decisions change it."""
        configuration = self._state.configuration
        order = classical_order if configuration.fair_sharing is None else fair_order
        return order(entries, configuration.features, self._state.entitlements.paths)

    # -- step 5 --------------------------------------------------------------------------------------------------------

    def _decide(self, entry: Entry) -> None:
        """Decide one entry: admit, preempt or skip."""
        if entry.is_after_its_slice(self._placed):
            self._skip(entry, "this cycle has already decided on the slice that this workload replaces")
            return
        siblings = Siblings.of(entry.info, entry.cq)
        if siblings is not None and siblings.preferred is not None:
            # One variant of a workload runs at a time, and this one could only replace it by a worse flavor.
            entry.status = Status.SKIPPED
            entry.message = "A more favorable variant is already admitted"
            self._leave(entry, RequeueReason.GATED, PendingReason.PENDING_EVALUATION)
            return
        fits = self._recompute_if_needed(entry)
        if not fits or entry.assignment.mode is not Mode.FIT:
            self._decide_what_does_not_fit(entry, fits)
        elif entry.is_second_pass:
            self._place(entry)
        elif self._state.readiness.is_waited_for:
            self._wait_for_pods_ready(entry)
        elif siblings is not None and siblings.lesser is not None:
            self._migrate(entry, siblings)
        else:
            self._admit(entry)

    def _migrate(self, entry: Entry, siblings: Siblings) -> None:
        """Ask the variant that runs in a flavor that the workload likes less to stop, if the workload may move."""
        lesser = siblings.lesser
        assert lesser is not None  # by its caller
        if not siblings.may_migrate:
            entry.message = "Target flavor is below LastAcceptableFlavorName"
            self._leave(entry, RequeueReason.GATED, PendingReason.PENDING_EVALUATION)
            return
        # The quota that the lesser variant frees is meant for this one: no later entry may take it.
        self._use(entry)
        if not lesser.evicted:
            uid, cycle = entry.info.workload.uid, self._state.cycle
            message = (
                f"Evicted to accommodate a workload (UID: {uid}) due to migration to more favorable resource flavor"
            )
            reason = EvictionReason.FLAVOR_MIGRATION
            self._migrations.append(Evict(lesser.key, lesser.cluster_queue, reason, cycle, message))
            self._admitter.mark_evicted(lesser, reason, message)
        entry.info.last_assignment = None
        entry.message = "Pending the migration of 1 workload(s)"
        self._leave(entry, RequeueReason.GATED, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS)

    def _decide_what_does_not_fit(self, entry: Entry, fits: bool) -> None:
        assignment = entry.assignment
        entry.info.last_assignment = LastAssignment(self._state.cycle, entry.cq.generation, assignment.tried)
        if assignment.mode is Mode.NO_FIT:
            self._leave(entry, RequeueReason.NO_FIT, assignment.no_fit_reason)
        elif assignment.mode is Mode.DEFERRED_FIT:
            # Keep the usage charged, so that no later entry takes the quota that the victims will free.
            self._use(entry)
            entry.info.last_assignment = None
            entry.message = "it fits once the workloads that are being preempted have stopped"
            self._leave(entry, RequeueReason.PENDING_PREEMPTION, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS)
        elif assignment.mode is Mode.PREEMPT and not entry.targets:
            self._leave_without_candidates(entry)
        elif assignment.mode is Mode.PREEMPT and entry.info.workload.closed_preemption_gates:
            self._gate(entry)
        elif self._overlaps(entry):
            self._skip(entry, "the workloads that it would preempt are already being preempted for another workload")
        elif not fits:
            self._skip(entry, "the workload no longer fits after another workload was processed in this cycle")
        else:
            self._preempt(entry)

    def _leave(self, entry: Entry, requeue: RequeueReason, reason: PendingReason) -> None:
        entry.requeue = requeue
        entry.reason = reason

    def _leave_without_candidates(self, entry: Entry) -> None:
        """Skip an entry that is paused or has no preemption candidates. The pause of a workload does not affect
        equal workloads."""
        until = self._state.preemption_loops.paused_until(entry.info.key, self._state.now)
        if until is not None:
            entry.message = f"{describe_refusals(entry.assignment)}; {describe_pause(until)}"
            self._state.waking.wake_queue_at(entry.cq.name, until)
        requeue = RequeueReason.NO_CANDIDATES if until is None else RequeueReason.GATED
        self._leave(entry, requeue, entry.assignment.reason_without_victims)
        self._reserve(entry)

    def _skip(self, entry: Entry, message: str) -> None:
        entry.status = Status.SKIPPED
        entry.message = message
        # Kueue's gauge of skipped preemptions counts preemptors only, not workloads that fitted in nomination.
        if entry.assignment.mode is Mode.PREEMPT:
            self._preemption_skips[entry.cq.name] += 1
        self._leave(entry, RequeueReason.FAILED_AFTER_NOMINATION, PendingReason.WAITING_FOR_QUOTA)

    def _gate(self, entry: Entry) -> None:
        entry.status = Status.GATED
        # The gate opens at another usage, so that the next search begins with the first flavor again.
        entry.info.last_assignment = None
        message = f"closed preemption gates: {', '.join(entry.info.workload.closed_preemption_gates)}"
        entry.message, now = message, self._state.now
        entry.info.change(lambda workload: blocked_on_gates(workload, message, now))
        self._leave(entry, RequeueReason.GATED, PendingReason.ADMISSION_GATED)

    def _claims(self, entry: Entry) -> dict[str, WorkloadInfo]:
        return self._claimed.setdefault(id(entry.cq.node.root), {})

    def _victims(self, entry: Entry) -> dict[str, WorkloadInfo]:
        """Return the preempted workloads whose quota counts as free for the entry: those of its cohort tree, or those
        of all trees if the entry has a topology, because trees share nodes.
        """
        if not entry.assignment.topology_usage:
            return self._claims(entry)
        return {key: info for claims in self._claimed.values() for key, info in claims.items()}

    def _overlaps(self, entry: Entry) -> bool:
        # The quota of a victim is freed once: two preemptors must not count on it.
        return bool(entry.targets) and any(target.info.key in self._claims(entry) for target in entry.targets)

    def _recompute_if_needed(self, entry: Entry) -> bool:
        """Return whether the entry still fits. If an earlier entry claimed its victims or its topology domains, its
        assignment is computed again in the nominated flavors."""
        if entry.assignment.mode is Mode.NO_FIT:
            return False
        if self._overlaps(entry):
            self._set_gone(self._victims(entry))
            self._recompute(entry)
            if entry.assignment.mode is Mode.FIT:
                # It fits into quota that the victims of earlier entries still hold, and is admitted when they stop.
                entry.assignment.mode = Mode.DEFERRED_FIT
            return self._fits_without_victims(entry)
        self._set_gone({})
        fits, quota_fits = self._fits(entry)
        if not fits and quota_fits:
            # An earlier entry took its topology domain; the same flavor may have another.
            self._recompute(entry)
            return self._fits(entry)[0]
        return fits

    def _set_gone(self, wanted: Mapping[str, WorkloadInfo]) -> None:
        """Have the usage of these claimed workloads removed, and that of no others. It stays so for the next entry:
        in a cohort where many reclaim, each entry overlaps those before it, and has only the last claims to add."""
        simulation, gone = self._state.simulation, self._gone
        for key in [key for key in gone if key not in wanted]:
            simulation.restore(gone.pop(key))
        for key, info in wanted.items():
            if key not in gone:
                simulation.remove(info)
                gone[key] = info

    def _fits_without_victims(self, entry: Entry) -> bool:
        """Return whether an entry that does not fit at once fits without its own victims and those of earlier entries:
        an entry that fits with them also fits without them.
        """
        self._set_gone(self._victims(entry))
        own = {target.info.key: target.info for target in entry.targets}
        if entry.replaced is not None:
            own[entry.replaced.key] = entry.replaced
        simulation = self._state.simulation
        added = [info for key, info in own.items() if key not in self._gone]
        for info in added:
            simulation.remove(info, note=False)
        fits, _ = self._fits_now(entry)
        for info in added:
            simulation.restore(info, note=False)
        return fits

    def _recompute(self, entry: Entry) -> None:
        entry.info.last_assignment = None
        if entry.is_second_pass:
            entry.assignment, entry.targets = self._nominator.assign_again(entry.info, entry.cq)
            return
        entry.replaced = self._state.replaced_slice(entry.info, entry.cq)
        pins = entry.assignment.flavor_names()
        entry.assignment, entry.targets = self._nominator.find_assignment(entry.info, entry.cq, pins)

    def _fits(self, entry: Entry) -> tuple[bool, bool]:
        """Return two answers: whether the entry fits, and whether its quota alone fits, without its own victims and
        those of earlier entries.
        """
        if self._fits_now(entry) == (True, True):
            return True, True
        gone = {**self._victims(entry), **{target.info.key: target.info for target in entry.targets}}
        if entry.replaced is not None:
            gone[entry.replaced.key] = entry.replaced
        if not gone:
            return self._fits_now(entry)
        simulation = self._state.simulation
        for info in gone.values():
            simulation.remove(info)
        found = self._fits_now(entry)
        for info in gone.values():
            simulation.restore(info)
        if found == (True, True) and entry.assignment.mode is Mode.FIT and self._reserved:
            # As in Kueue, the victims' quota may be reused at once. Their devices may not: they are free only when the
            # victims have stopped.
            fits = self._devices_fit_now(entry)
            return fits, fits
        return found

    def _devices_fit_now(self, entry: Entry) -> bool:
        """Return whether the entry's pods have a place while the preempted workloads still run. The slice that the
        entry replaces does not count."""
        simulation, replaced = self._state.simulation, entry.replaced
        if replaced is not None:
            simulation.remove(replaced)
        fits = self._devices.still_fits(entry.info, entry.assignment)
        if replaced is not None:
            simulation.restore(replaced)
        return fits

    def _fits_now(self, entry: Entry) -> tuple[bool, bool]:
        assignment, may_borrow = entry.assignment, entry.info.may_borrow
        if not entry.is_second_pass and refuse_user(self._state, entry.info, entry.cq, assignment.usage) is not None:
            return False, False
        if self._delays_planned_start(entry):
            return False, False
        # The free amount is negative after a cut of quota below its usage. A request of 0 fits all the same.
        for cell, amount in () if entry.is_second_pass else assignment.usage.items():
            if amount > max(0, cell.available() if may_borrow else cell.room(borrowing=False)):
                return False, False
        if assignment.topology_usage and not self._topology.fits(assignment.topology_usage):
            return False, True
        # The place that was found in nomination is still free unless this cycle has placed pods since.
        if self._reserved and not self._devices.still_fits(entry.info, assignment):
            return False, False
        return True, True

    def _delays_planned_start(self, entry: Entry) -> bool:
        """Return whether entries before it in this cycle have left it too little room beside a planned start."""
        if entry.cq.spec.backfill is None or entry.is_second_pass:
            return False
        if not (self._admissions or self._taken_back):
            return False
        # A plan counts such an entry itself: with its reservation, it would be counted twice.
        for usage, topology in self._kept_free:
            self._remove(usage, topology)
        try:
            return self._nominator.delays_planned_start(entry)
        finally:
            for usage, topology in self._kept_free:
                self._add(usage, topology)

    def _use(self, entry: Entry) -> None:
        """Charge an assignment's usage, to its user too, until the end of the cycle."""
        usage = entry.net_usage()
        self._charge(entry, usage)
        self._nominator.charged(entry.cq)
        if entry.cq.user_limits and not entry.is_second_pass:  # in a second pass its user is charged already
            self._state.user_usage.add(entry.info, entry.cq, usage)
            self._used.append((entry, usage))

    def _charge(self, entry: Entry, usage: CellAmounts) -> None:
        topology = entry.assignment.topology_usage
        self._add(usage, topology)
        self._state.simulation.note(entry.cq.name)
        self._taken_back.append((usage, topology))

    def _add(self, usage: CellAmounts, topology: Iterable[TopologyCharge]) -> None:
        add_usage(usage)
        for flavor, charge in topology:
            self._state.topology_flavors.add_usage(flavor, charge)

    def _remove(self, usage: CellAmounts, topology: Iterable[TopologyCharge]) -> None:
        remove_usage(usage)
        for flavor, charge in topology:
            self._state.topology_flavors.remove_usage(flavor, charge)

    def _take_back(self) -> None:
        for cell, amount in self._lowered:
            cell.usage -= amount
        for entry, usage in self._used:
            self._state.user_usage.add(entry.info, entry.cq, usage, -1)
        for usage, topology in reversed(self._taken_back):
            self._remove(usage, topology)

    def _reserve(self, entry: Entry) -> None:
        """Reserve quota for an entry that may preempt but has no candidates, unless its queue may reclaim from any
        priority."""
        # Such a queue gets its quota back at any time, so that others may borrow it meanwhile.
        if entry.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.ANY:
            return
        self._set_gone({})
        borrows = entry.assignment.level > 0
        usage = [(cell, cell.reservable(amount, borrows)) for cell, amount in entry.net_usage()]
        self._charge(entry, tuple(part for part in usage if part[1] >= 0))
        self._kept_free.append(self._taken_back[-1])
        for cell, amount in usage:
            if amount < 0:  # Usage is above the limit: as in Kueue, reserve a negative amount here and nothing above.
                cell.usage += amount
                self._lowered.append((cell, amount))

    def _preempt(self, entry: Entry) -> None:
        """Ask the victims to stop. The preemptor waits, and its usage stays charged until the end of the cycle."""
        self._use(entry)  # else a later entry would take the quota that the victims free
        claims = self._claims(entry)
        for target in entry.targets:
            claims[target.info.key] = target.info
            if target.info.evicted:
                continue  # it stops already, for whichever reason, and keeps that reason
            message = describe_preemption(entry.info, entry.cq, target, self._state)
            victim, by, cycle = target.info, entry, self._state.cycle
            self._preemptions.append(
                Preempt(victim.key, victim.cluster_queue, by.info.key, by.cq.name, target.reason, cycle, message)
            )
            self._admitter.mark_preempted(target, message)
        entry.info.last_assignment = None  # the next attempt finds other usage, so it begins with the first flavor
        entry.message = f"waiting for {len(entry.targets)} preempted workload(s) to stop"
        self._leave(entry, RequeueReason.PENDING_PREEMPTION, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS)

    def _wait_for_pods_ready(self, entry: Entry) -> None:
        """Admit nothing until the pods of all admitted workloads are ready. Every head keeps its place in its queue."""
        self._state.readiness.stop()
        entry.status = Status.SKIPPED
        entry.message = "waiting for the pods of all admitted workloads to be ready"
        self._leave(entry, RequeueReason.FAILED_AFTER_NOMINATION, PendingReason.WAITING_FOR_PODS_READY)

    def _admit(self, entry: Entry) -> None:
        self._add(tuple(entry.assignment.usage.items()), entry.assignment.topology_usage)
        entry.status = Status.ASSUMED
        self._reserved = self._reserved or entry.assignment.placement is not None
        self._admissions.append(self._admitter.admit(entry))

    def _place(self, entry: Entry) -> None:
        self._placed.add(entry.info.key)
        entry.status = Status.ASSUMED
        self._reserved = self._reserved or entry.assignment.placement is not None
        self._admissions.append(self._admitter.place(entry))

    # -- step 6 --------------------------------------------------------------------------------------------------------

    def _requeue(self, entry: Entry) -> None:
        """Put an entry back into its queue: as active if another attempt makes sense at once, otherwise as
        inadmissible."""
        if entry.is_second_pass:
            self._try_again_later(entry)
            return
        state, info, cq = self._state, entry.info, entry.cq
        reason = entry.requeue
        if reason is RequeueReason.GENERIC and entry.status is not Status.NOT_NOMINATED:
            reason = RequeueReason.FAILED_AFTER_NOMINATION
        if reason is RequeueReason.PENDING_PREEMPTION:
            # A preemptor stays at the head until its victims stop, so that no other workload of its queue takes the
            # room.
            cq.queue.sticky = info.key if not cq.strict else ""
        # The head of a StrictFIFO queue stays active and blocks the queue, unless the queue does not select its
        # namespace: it would block the queue forever.
        immediate = reason is not RequeueReason.NAMESPACE_MISMATCH if cq.strict else reason in _IMMEDIATE
        # Flavors after the last one that was tried may fit at once.
        more = info.last_assignment is not None and info.last_assignment.has_flavors_left
        active = info.backoff_expired(state.now) and (immediate or more)
        kind = DecisionKind.SKIP
        if active:
            cq.queue.push(info)
        else:
            kind = DecisionKind.INADMISSIBLE
            self._moved = True
            cq.queue.set_inadmissible(info, delayed=not info.backoff_expired(state.now))
            if entry.reason in _FOR_ROOM or (
                reason is RequeueReason.NO_CANDIDATES
                and (state.places_by_room or (state.has_devices and info.asks_for_devices))
            ):  # no victims for quota either if the pods have no place
                state.waiting_for_devices.add(cq.name)
            if entry.assignment.closed_nodes:
                wake_after_window(state, info, cq)
            # Equal workloads would be refused for the same reason, one cycle each. A strict queue tries its head only.
            if reason in _BULK and not cq.strict:
                self._set_equals_inadmissible(entry)
        message = entry.message or describe_refusals(entry.assignment)
        if info.outcome != (entry.reason, message):
            self._outcomes.append(state.refuse(info, cq.name, kind, entry.reason, message))

    def _try_again_later(self, entry: Entry) -> None:
        """Keep the workload's reservation and schedule another second pass."""
        info, now = entry.info, self._state.now
        info.last_assignment = None
        self._state.second_pass[info.key] = self._state.second_pass[info.key].again(now)
        message = entry.message or describe_refusals(entry.assignment)
        before = info.current()
        info.change(lambda workload: topology_delayed(workload, message, now))
        if info.current() is not before:
            self._failures.append(SecondPassFailed(info.key, entry.cq.name, message, self._state.cycle))

    def _set_equals_inadmissible(self, entry: Entry) -> None:
        """Make all equal workloads inadmissible.

        Each workload gets the message once; a new message with the same reason is not written. The message does not
        name the refused workload, which may belong to another tenant.
        """
        text = f"{describe_refusals(entry.assignment)}; an equivalent workload was refused in this cycle"
        verdict = (entry.reason, text)
        equals = equal_hashes(self._state, entry.info, entry.cq)
        self._outcomes += self._state.refuse_equals(entry.cq, equals, verdict)
