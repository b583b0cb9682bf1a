"""Messages for decisions: why a workload waits, and why a workload was preempted."""

from __future__ import annotations

from scheduling.cycle.assignment import Assignment, Refusal, RefusalKind
from scheduling.cycle.preemption import Target
from scheduling.model.quantity import amount_in_words
from scheduling.model.vocabulary import PreemptionReason
from scheduling.quota.cells import QuotaNode
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo

_PREEMPTION_WORDS = {
    PreemptionReason.IN_CLUSTER_QUEUE: "its priority in the ClusterQueue",
    PreemptionReason.IN_COHORT_RECLAMATION: "reclaiming quota within the cohort",
    PreemptionReason.IN_COHORT_FAIR_SHARING: "fair sharing within the cohort",
    PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING: "reclaiming quota within the cohort while borrowing",
}


def describe_refusal(refusal: Refusal) -> str:
    """Describe one refusal as a clause."""
    wanted = amount_in_words(refusal.resource, refusal.wanted)
    match refusal.kind:
        case RefusalKind.EXCEEDS_MAXIMUM:
            limit = amount_in_words(refusal.resource, refusal.limit)
            amounts = f"{wanted} requested, at most {limit} possible"
        case RefusalKind.LACKS:
            lacks = amount_in_words(refusal.resource, refusal.wanted - refusal.limit)
            free = amount_in_words(refusal.resource, max(0, refusal.limit))
            amounts = f"{lacks} more needed ({wanted} requested, {free} free)"
        case _:
            return refusal.text
    note = f"; {refusal.text}" if refusal.text else ""
    return f"{refusal.resource} in flavor {refusal.flavor}: {amounts}{note}"


def describe_refusals(assignment: Assignment) -> str:
    """Describe why an assignment does not fit: each distinct refusal, separated by pod set group and resource group."""
    parts: list[str] = []
    for refusals in assignment.refusals:
        # Refusals about devices are whole sentences. Within a list they lose their full stop.
        text = "; ".join(dict.fromkeys(describe_refusal(refusal).removesuffix(".") for refusal in refusals))
        if text and text not in parts:
            parts.append(text)
    return "; ".join(parts) or "no flavor fits"


def hierarchy_path(node: QuotaNode) -> str:
    """Return the path `/root/.../cohort/cluster-queue`."""
    names = [ancestor.name for ancestor in reversed(node.ancestors())]
    return "/" + "/".join([*names, node.name])


def describe_preemption(info: WorkloadInfo, cq: ClusterQueueState, target: Target, state: State) -> str:
    """Describe a preemption: the preemptor, the reason, and the place of both workloads in the cohort tree.

    The victim's tenant reads this message. As in Kueue, a workload of another namespace appears with its uid but
    without its name.
    """
    victim = state.cluster_queues[target.info.cluster_queue]
    preemptor = f"workload {info.key}" if info.workload.namespace == target.info.workload.namespace else "a workload"
    return (
        f"Preempted to make room for {preemptor} (uid {info.uid or 'UNKNOWN'}) by "
        f"{_PREEMPTION_WORDS[target.reason]}; preemptor path: {hierarchy_path(cq.node)}; "
        f"preemptee path: {hierarchy_path(victim.node)}"
    )
