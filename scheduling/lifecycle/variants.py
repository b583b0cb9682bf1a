"""A workload and its variants, each of which pursues another flavor (Kueue's concurrent admission).

The variants wait, hold quota and are preempted; their parent owns the job and holds what its admitted variant holds,
without being charged. `next_family_step` returns the first step that is due for one of them, in the order of Kueue's
controller, or None. The caller applies it and calls again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from scheduling.devices.requests.requests import pod_device_request
from scheduling.lifecycle import conditions as to
from scheduling.lifecycle.reconcile import Step, StepEvent
from scheduling.model.cluster_queue import ClusterQueue, ConcurrentAdmission
from scheduling.model.vendor import DeviceVendor
from scheduling.model.vocabulary import ConditionType, EvictionReason, MigrationMode, PendingReason
from scheduling.model.workload import Workload

GATE_SECONDS = 300.0
"""For how long one variant alone may preempt, until the gate of the next one opens."""


@dataclass(frozen=True, slots=True)
class Family:
    """A parent and its variants, the preferred flavor first.

    `wanted`: the keys of those whose `active` is set; `policy`: that of their ClusterQueue, whose flavors are `order`.
    """

    parent: Workload
    variants: tuple[Workload, ...]
    wanted: Collection[str]
    policy: ConcurrentAdmission
    order: tuple[str, ...]

    @classmethod
    def of(
        cls, parent: Workload, variants: Collection[Workload], wanted: Collection[str], queue: ClusterQueue
    ) -> Family | None:
        """Sort the variants by their flavors; None if the ClusterQueue has no policy. Variants of flavors that it no
        longer has are left out: they are about to be deleted.
        """
        if queue.concurrent_admission is None:
            return None
        order = queue.flavor_order
        known = [each for each in variants if each.variant_flavor in order]
        known.sort(key=lambda each: order.index(each.variant_flavor))
        return cls(parent, tuple(known), wanted, queue.concurrent_admission, order)

    @property
    def admitted(self) -> Workload | None:
        """The admitted variant, even if it is being evicted."""
        return next((each for each in self.variants if each.is_true(ConditionType.ADMITTED)), None)

    def place(self, workload: Workload) -> int:
        """Return the position of the variant's flavor, from 0."""
        return self.order.index(workload.variant_flavor)

    def is_wanted(self, workload: Workload) -> bool:
        return workload.key in self.wanted


_UNDECIDED = frozenset({PendingReason.PENDING_EVALUATION, PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS})

_FOR_GOOD = frozenset({PendingReason.NO_MATCHING_FLAVOR, PendingReason.EXCEEDS_MAX_QUOTA})

_BY_CYCLES = _UNDECIDED | _FOR_GOOD | {
    PendingReason.WAITING_FOR_QUOTA, PendingReason.WAITING_FOR_DEVICES, PendingReason.WAITING_FOR_NODES,
    PendingReason.WAITING_FOR_PODS_READY, PendingReason.WAITING_FOR_USER_LIMIT,
    PendingReason.WAITING_FOR_PLANNED_START,
}  # fmt: skip
"""The reasons that cycles give. All other changes come from steps, which a parent takes itself."""


def next_family_step(family: Family, now: float) -> Step | None:
    """Return the first step that is due; None if there is none."""
    if _waits_for_parent(family):
        return None
    for rule in (_evicted, _deactivated, _activated, _requeued, _synced, _readiness, _gate_opened, _told):
        step = rule(family, now)
        if step is not None:
            return step
    return None


def next_step_of_left(
    parent: Workload | None, variants: Sequence[Workload], wanted: Collection[str], now: float
) -> Step | None:
    """Return the first step that is due for the variants of a workload that has ended (None), or whose ClusterQueue has
    no policy any more. In the second case, a running parent takes over the quota of the variant as which it runs, so
    that it continues."""
    if parent is not None and parent.admission is not None and not parent.is_charged:
        for variant in variants:
            if variant.admission is not None and variant.is_true(ConditionType.ADMITTED) and _runs_as(parent, variant):
                return Step(replace(parent, admission=variant.admission))
    for variant in variants:
        if variant.key in wanted:
            why = "its Parent having ended" if parent is None else "Concurrent Admission having ended"
            told = StepEvent("DeactivatedVariant", f"Variant Workload deactivated due to {why}")
            return Step(variant, (told,), deactivates=True)
    return None


def next_gate_at(family: Family, now: float) -> float | None:
    """Return when the gate of the next variant may open, if a variant waits for that."""
    opened = _last_opened(family)
    return opened + GATE_SECONDS if opened is not None and _candidate(family) is not None else None


def _is_stopping(workload: Workload) -> bool:
    return workload.admission is not None and workload.is_true(ConditionType.EVICTED)


def _runs_as(parent: Workload, variant: Workload) -> bool:
    """Return whether the parent's pods run in the flavor of this variant."""
    assigned = parent.admission.pod_set_assignments if parent.admission is not None else ()
    flavors = {flavor for each in assigned for flavor in each.flavors.values()}
    return parent.admission is not None and (not flavors or variant.variant_flavor in flavors)


def _waits_for_parent(family: Family) -> bool:
    """Return whether a variant was evicted, and the pods of its parent have not stopped yet."""
    parent = family.parent
    return parent.is_true(ConditionType.EVICTED) and any(
        _is_stopping(each) and _runs_as(parent, each) for each in family.variants
    )


def _evicted(family: Family, now: float) -> Step | None:
    """Stop the parent of an evicted variant. The variant gives its quota back once the parent has stopped."""
    variant = next((each for each in family.variants if _is_stopping(each)), None)
    if variant is None:
        return None
    if _runs_as(family.parent, variant):
        parent = _preempted_with(family.parent, variant)
        return _evict_parent(parent, EvictionReason.VARIANT_EVICTED, "Admitted variant was evicted", now)
    return Step(to.release(variant, now))


def _preempted_with(parent: Workload, variant: Workload) -> Workload:
    """Name, in the parent's condition, the workload for which its variant was preempted. Kueue's condition does not
    name it."""
    if not variant.is_true(ConditionType.PREEMPTED):
        return parent
    conditions = {**parent.conditions, ConditionType.PREEMPTED: variant.conditions[ConditionType.PREEMPTED]}
    return replace(parent, conditions=conditions, last_preempted_at=variant.last_preempted_at)


def _evict_parent(parent: Workload, reason: EvictionReason, message: str, now: float) -> Step:
    return Step(to.evict(parent, reason, message, now), evicted=(reason, ""))


def _deactivated(family: Family, now: float) -> Step | None:
    for variant, why in _surplus(family):
        if family.is_wanted(variant):
            told = StepEvent("DeactivatedVariant", f"Variant Workload deactivated due to {why}")
            return Step(variant, (told,), deactivates=True)
    return None


def _surplus(family: Family) -> Iterator[tuple[Workload, str]]:
    """Yield the variants that are not to try any more, with the reason."""
    admitted = family.admitted
    if not _tries(family):
        yield from ((each, f'Parent Workload "{family.parent.key}" not active') for each in family.variants)
        return
    for variant in family.variants:
        if _is_outdated(family.parent, variant):
            yield variant, f'other pod sets of Parent Workload "{family.parent.key}"'
    if admitted is not None:
        yield from _behind(family, admitted)


def _is_outdated(parent: Workload, variant: Workload) -> bool:
    """Return whether the parent was given other pods since: a variant with the new ones is about to replace
    this one."""
    return variant.pod_sets != parent.pod_sets and not _runs_as(parent, variant)


def _tries(family: Family) -> bool:
    """Return whether the parent should run now: it is active, and waits for no back-off (Kueue's variants try
    meanwhile)."""
    return family.is_wanted(family.parent) and not family.parent.is_false(ConditionType.REQUEUED)


def _behind(family: Family, admitted: Workload) -> Iterator[tuple[Workload, str]]:
    last = family.policy.last_acceptable_flavor
    for variant in family.variants:
        if variant.key == admitted.key:
            continue
        if family.policy.mode is MigrationMode.RETAIN_FIRST_ADMISSION:
            yield variant, f'RetainFirstAdmission: another Variant "{admitted.key}" is admitted'
        elif last in family.order and family.place(variant) > family.order.index(last):
            yield variant, f'being below lastAcceptableFlavor: "{last}" and another Variant admitted "{admitted.key}"'
        elif family.place(variant) > family.place(admitted):
            yield variant, f'being lower priority than admitted Variant "{admitted.key}"'


def _activated(family: Family, now: float) -> Step | None:
    for variant, why in _welcome(family):
        if not family.is_wanted(variant) and not _is_outdated(family.parent, variant):
            told = StepEvent("ActivatedVariant", f"Variant Workload activated due to {why}")
            return Step(replace(variant, active=True), (told,), activates=True)
    return None


def _welcome(family: Family) -> Iterator[tuple[Workload, str]]:
    """Yield the variants that should be queued, with the reason."""
    admitted, last = family.admitted, family.policy.last_acceptable_flavor
    if not _tries(family):
        return
    if admitted is None:
        yield from ((each, "no other Variant being admitted") for each in family.variants)
        return
    if family.policy.mode is MigrationMode.RETAIN_FIRST_ADMISSION:
        return
    for variant in family.variants:
        if family.place(variant) >= family.place(admitted):
            continue
        if last not in family.order:
            yield variant, f'being higher priority than admitted Variant "{admitted.key}"'
        elif family.place(variant) <= family.order.index(last):
            why = f'being at least lastAcceptableFlavor: "{last}" and higher priority than admitted Variant '
            yield variant, f'{why}"{admitted.key}"'


def _requeued(family: Family, now: float) -> Step | None:
    """Have a variant try again that stopped for a preferred one which was not admitted after all. (Kueue's waits.)"""
    if any(each.admission is not None for each in family.variants):
        return None
    for variant in family.variants:
        requeued = variant.condition(ConditionType.REQUEUED)
        if requeued is None or not variant.is_false(ConditionType.REQUEUED):
            continue
        if requeued.reason == EvictionReason.FLAVOR_MIGRATION and not _is_awaited(family, variant):
            message = "No preferred flavor has room any more"
            return Step(to.requeued(variant, EvictionReason.FLAVOR_MIGRATION, message, now))
    return None


def _is_awaited(family: Family, variant: Workload) -> bool:
    """Return whether a preferred variant may still be admitted."""
    for other in family.variants:
        reserved = other.condition(ConditionType.QUOTA_RESERVED)
        waits = reserved is None or reserved.reason in _UNDECIDED
        if family.place(other) < family.place(variant) and family.is_wanted(other) and waits:
            return True
    return False


def _synced(family: Family, now: float) -> Step | None:
    """Keep the parent admitted as long as one of its variants is admitted."""
    parent, admitted = family.parent, family.admitted
    if admitted is None or admitted.admission is None:
        if not parent.is_true(ConditionType.ADMITTED) or parent.is_true(ConditionType.EVICTED):
            return None
        return _evict_parent(parent, EvictionReason.CONCURRENT_ADMISSION, "No variant is running", now)
    if parent.admission is not None or not _tries(family) or _is_stopping(admitted):
        return None
    admission = admitted.admission
    # What it holds is charged to the variant alone.
    held = tuple(replace(each, resource_usage={}) for each in admission.pod_set_assignments)
    taken = to.reserved(
        replace(parent, admission=replace(admission, pod_set_assignments=held)),
        f"Quota reserved in ClusterQueue {admission.cluster_queue}",
        now,
    )
    return Step(to.admitted(taken, f"The variant {admitted.name} is admitted", now))


def _readiness(family: Family, now: float) -> Step | None:
    """Copy the parent's state of the pods to the admitted variant."""
    ready, admitted = family.parent.condition(ConditionType.PODS_READY), family.admitted
    if ready is None or admitted is None or family.parent.admission is None:
        return None
    known = admitted.condition(ConditionType.PODS_READY)
    if known is not None and (known.status, known.reason) == (ready.status, ready.reason):
        return None
    conditions = {**admitted.conditions, ConditionType.PODS_READY: ready}
    return Step(replace(admitted, conditions=conditions))


def _gate_opened(family: Family, now: float) -> Step | None:
    """Open the gate of one variant at a time: the first that needs to preempt, and after five minutes without success
    the next."""
    candidate, opened = _candidate(family), _last_opened(family)
    if candidate is None or (opened is not None and now < opened + GATE_SECONDS):
        return None
    told = StepEvent("PreemptionUngatedVariant", f'Opened preemption gate for variant workload "{candidate.key}"')
    return Step(to.open_gate(candidate, now), (told,))


def _told(family: Family, now: float) -> Step | None:
    """Explain in the parent's condition why it waits, by the reasons of its variants. Kueue's condition has no such
    reason."""
    parent = family.parent
    said = parent.condition(ConditionType.QUOTA_RESERVED)
    if parent.admission is not None or not family.variants or not _tries(family):
        return None
    if said is not None and said.reason not in _BY_CYCLES:
        return None
    reasons = [_reason(each) for each in family.variants]
    waits = next((reason for reason in reasons if reason not in _FOR_GOOD), reasons[0])
    if waits not in _BY_CYCLES:
        return None
    message = "; ".join(f"{each.variant_flavor}: {_sentence(each)}" for each in family.variants)
    if said is not None and (said.reason, said.message) == (waits, message):
        return None
    return Step(to.pending(parent, waits, message, now))


def _reason(variant: Workload) -> str:
    reserved = variant.condition(ConditionType.QUOTA_RESERVED)
    if reserved is None or variant.admission is not None:
        return PendingReason.PENDING_EVALUATION
    if reserved.reason == PendingReason.ADMISSION_GATED and variant.is_true(ConditionType.BLOCKED_ON_PREEMPTION_GATES):
        return PendingReason.WAITING_FOR_QUOTA
    return reserved.reason


def _sentence(variant: Workload) -> str:
    reserved = variant.condition(ConditionType.QUOTA_RESERVED)
    if reserved is None:
        return "not evaluated yet"
    return "it has quota, and waits for its admission checks" if variant.admission is not None else reserved.message


def _pending(family: Family) -> list[Workload]:
    return [each for each in family.variants if family.is_wanted(each) and each.admission is None]


def _last_opened(family: Family) -> float | None:
    opened = [each.gate_opened_at for each in _pending(family) if each.gate_opened_at is not None]
    return max(opened, default=None)


def _candidate(family: Family) -> Workload | None:
    """Return the first variant whose gate alone keeps it from preempting; None while one before it was not
    looked at."""
    for variant in _pending(family):
        if variant.gate_opened_at is not None:
            continue
        if variant.is_true(ConditionType.BLOCKED_ON_PREEMPTION_GATES):
            return variant
        if ConditionType.QUOTA_RESERVED not in variant.conditions:
            return None
    return None


def family_refusal(
    parent: Workload,
    queue: ClusterQueue,
    vendors: Sequence[DeviceVendor],
    *,
    with_topology: Sequence[str] = (),
    placed: Sequence[str] = (),
    hands_over: bool = False,
    is_elastic: bool = False,
) -> str:
    """Return why a workload can have no variants; "" if it can.

    The pods are the parent's, and they would not know the place of a variant, so kueueweb places no pods of a
    ClusterQueue with a policy. `vendors` are the vendors whose devices are assigned here. `with_topology` are the
    flavors of the ClusterQueue with a topology. `placed` are the flavors in which kueueweb places pods without devices.
    `hands_over`: the ClusterQueue sends workloads to other clusters.
    """
    text = f"ClusterQueue {queue.name} has a concurrentAdmissionPolicy, which can't be used"
    if with_topology:
        return f"{text} with a topology: flavor {with_topology[0]} has one"
    if hands_over:
        return f"{text} with MultiKueue"
    if placed:
        return f"{text} where pods get nodes from us: set quota_only of flavor {placed[0]}, or the cluster's placement"
    if is_elastic:
        return f"{text} by elastic jobs: use another queue, or remove kueue.x-k8s.io/elastic-job"
    for pod_set in parent.pod_sets:
        if pod_device_request(pod_set.template.manifest, vendors).asks_for_devices:
            return f"{text} for devices that are assigned here: pod set {pod_set.name} asks for some"
    return ""
