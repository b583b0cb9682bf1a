"""The status of Kueue's Workload: its conditions, and its admission."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from scheduling.manifest import FieldReader

_MAX_DOMAINS: Final = 100_000
"""The domains of one slice of a topology assignment, as Kueue bounds them."""


@dataclass(frozen=True, slots=True)
class PodSetStatus:
    """The assignment of a pod set; the columns of its row."""

    admitted_count: int | None = None
    flavors: Mapping[str, str] = field(default_factory=dict)
    resource_usage: Mapping[str, int] = field(default_factory=dict)
    topology_assignment: Mapping[str, Any] | None = None
    reclaimable_count: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The status of a Workload; lists and mappings are as the row keeps them."""

    conditions: tuple[Mapping[str, Any], ...] = ()
    cluster_queue_name: str = ""
    pod_sets: Mapping[str, PodSetStatus] = field(default_factory=dict)
    admission_check_states: tuple[Mapping[str, Any], ...] = ()
    requeue_count: int = 0
    requeue_at: datetime | None = None
    accumulated_execution_seconds: int = 0
    eviction_counts: tuple[Mapping[str, Any], ...] = ()
    unhealthy_nodes: tuple[str, ...] = ()


def read_workload_status(top: FieldReader) -> WorkloadState:
    """Read `status` of a Workload, v1beta1 or v1beta2. Additional fields of newer versions are ignored."""
    status = top.fields("status")
    if status is None:
        return WorkloadState()
    requeue = status.fields("requeueState")
    statistics = status.fields("schedulingStats")
    admission = status.fields("admission")
    executed = "accumulatedPastExecutionTimeSeconds"
    return WorkloadState(
        conditions=tuple(_condition(item) for item in status.items("conditions")),
        cluster_queue_name=admission.text("clusterQueue") if admission else "",
        pod_sets=_pod_sets(status, admission),
        admission_check_states=tuple(_check_state(item) for item in status.items("admissionChecks")),
        requeue_count=requeue.integer("count", 0) if requeue else 0,
        requeue_at=_moment(requeue, "requeueAt") if requeue else None,
        # v1beta1 misspells it.
        accumulated_execution_seconds=status.integer(executed, 0) or status.integer(executed.replace("xec", "xexc"), 0),
        eviction_counts=tuple(dict(item.content) for item in (statistics.items("evictions") if statistics else ())),
        unhealthy_nodes=tuple(item.text("name") for item in status.items("unhealthyNodes")),
    )


def _condition(item: FieldReader) -> Mapping[str, Any]:
    return {
        "type": item.text("type", required=True),
        "status": item.text("status", required=True),
        "reason": item.text("reason"),
        "message": item.text("message"),
        "lastTransitionTime": _time(item, "lastTransitionTime"),
    }


def _check_state(item: FieldReader) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "name": item.text("name", required=True),
        "state": item.text("state", "Pending"),
        "message": item.text("message"),
        "lastTransitionTime": _time(item, "lastTransitionTime"),
        "retryCount": item.integer("retryCount", 0),
    }
    after = item.optional_integer("requeueAfterSeconds")
    if after is not None:
        found["requeueAfterSeconds"] = after
    updates = [dict(update.content) for update in item.items("podSetUpdates")]
    return {**found, "podSetUpdates": updates} if updates else found


def _pod_sets(status: FieldReader, admission: FieldReader | None) -> dict[str, PodSetStatus]:
    spare = {item.text("name"): item.integer("count", 0) for item in status.items("reclaimablePods")}
    given = {item.text("name", "main"): item for item in (admission.items("podSetAssignments") if admission else ())}
    return {
        name: _assignment(given[name], spare.get(name, 0))
        if name in given
        else PodSetStatus(reclaimable_count=spare[name])
        for name in {**given, **spare}
    }


def _assignment(item: FieldReader, reclaimable: int) -> PodSetStatus:
    usage = item.fields("resourceUsage")
    amounts = {name: usage.amount(name, name) for name in usage.content} if usage else {}
    return PodSetStatus(
        admitted_count=item.integer("count", 0),
        flavors=item.text_map("flavors"),
        resource_usage={name: amount for name, amount in amounts.items() if amount is not None},
        topology_assignment=_topology(item.fields("topologyAssignment"), item.text("delayedTopologyRequest")),
        reclaimable_count=reclaimable,
    )


def _topology(assignment: FieldReader | None, delayed: str) -> Mapping[str, Any] | None:
    """`{levels, domains: [{values, count}], delayed}` as the row keeps it; None if no topology was assigned."""
    found: dict[str, Any] = {"delayed": delayed} if delayed else {}
    if assignment is not None:
        found["levels"] = assignment.texts("levels", unique=False)
        found["domains"] = [
            *({"values": item.texts("values", unique=False), "count": item.integer("count", 0)}
              for item in assignment.items("domains")),
            *(domain for item in assignment.items("slices") for domain in _expanded(item)),
        ]  # fmt: skip
    return found or None


def _expanded(item: FieldReader) -> Iterator[dict[str, Any]]:
    """Yield the domains of one slice of v1beta2's encoding: each level names one value for all, or one for each
    domain."""
    count = item.integer("domainCount", 0, maximum=_MAX_DOMAINS)
    levels = [_values(level, count) for level in item.items("valuesPerLevel")]
    pods = item.fields("podCounts")
    counts = _counts(pods, count) if pods else [0] * count
    for index in range(count):
        yield {"values": [values[index] for values in levels], "count": counts[index]}


def _values(level: FieldReader, count: int) -> Sequence[str]:
    individual = level.fields("individual")
    if individual is None:
        return [level.text("universal")] * count
    prefix, suffix, roots = (
        individual.text("prefix"),
        individual.text("suffix"),
        individual.texts("roots", unique=False),
    )
    if len(roots) != count:
        individual.error("roots", f"must have one entry for each of the {count} domains")
        return [""] * count
    return [f"{prefix}{root}{suffix}" for root in roots]


def _counts(pods: FieldReader, count: int) -> Sequence[int]:
    individual = pods.sequence("individual")
    if not individual:
        return [pods.integer("universal", 0)] * count
    if len(individual) != count or not all(isinstance(found, int) for found in individual):
        pods.error("individual", f"must have one number for each of the {count} domains")
        return [0] * count
    return individual


def _time(reader: FieldReader, key: str) -> str:
    """Return a time of the status as written; empty if it is missing or not a valid time."""
    return reader.text(key) if _moment(reader, key) else ""


def _moment(reader: FieldReader, key: str) -> datetime | None:
    text = reader.text(key)
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        reader.error(key, "must be a time, like 2026-01-31T12:00:00Z")
        return None
