"""Rules that compare the amounts that rows hold with the log of decisions: counts, flavors, amounts, slices of devices.

The last admission in the log belongs to the present reservation. If another scheduler admitted the workload, or a
kueueweb release that did not log amounts, only the properties that every admission has are checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from accounts.models import Cluster
from clusters.audit.violations import Check, Violation, namespace_of, query
from scheduling.model.quantity import format_amount

_HELD: Final = """
    SELECT workload.namespace || '/' || workload.name, workload.cluster_queue_name, decision.cluster_queue_name,
        decision.namespace || '/' || decision.workload_name, decision.detail::text, (
            SELECT json_agg(json_build_array(pod_set.name, pod_set.count, pod_set.admitted_count, pod_set.flavors,
                pod_set.resource_usage, pod_set.nodes, pod_set.reclaimable_count) ORDER BY pod_set.position)
            FROM queues_podset AS pod_set WHERE pod_set.workload_id = workload.id
        )::text, (
            SELECT json_agg(json_build_array(node.name, slice.device_uuid, slice.memory_mib, slice.cores_percent))
            FROM gpus_deviceallocation AS slice JOIN gpus_node AS node ON node.id = slice.node_id
            WHERE slice.workload_id = workload.id AND slice.source = 'decided'
        )::text, EXISTS (
            SELECT FROM scheduler_decision AS moved
            WHERE moved.workload_uid = workload.uid AND moved.action = 'ReplaceNode' AND moved.id > decision.id
        )
    FROM queues_workload AS workload LEFT JOIN LATERAL (
        SELECT * FROM scheduler_decision AS admission
        WHERE admission.workload_uid = workload.uid AND admission.action = 'Admit'
            AND admission.decided_at >= workload.quota_reserved_at - interval '1 second'
        ORDER BY admission.id DESC LIMIT 1
    ) AS decision ON true
    WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        AND NOT workload.has_variants
    ORDER BY workload.id
"""


def _as_decided(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for key, queue, decided_queue, decided_key, text, pod_sets, slices, moved in query(_HELD, [cluster.pk]):
        rows = [_PodSet(*fields) for fields in orjson.loads(pod_sets or "[]")]
        decision = orjson.loads(text or "{}")
        decided = {each["name"]: each for each in decision.get("pod_sets", ()) if "resource_usage" in each}
        for pod_set, problem in _admission(rows, decided):
            yield Violation(Check.USAGE, f"{key}/{pod_set}", problem, namespace_of(key))
        if not decided:
            continue
        if (queue, key) != (decided_queue, decided_key):
            said = f"it holds quota of {queue}, but {decided_key} was given quota of {decided_queue}"
            yield Violation(Check.USAGE, key, said, namespace_of(key))
        if not moved and (problem := _devices(rows, orjson.loads(slices or "[]"), decision, decided)):
            yield Violation(Check.SLICES, key, problem, namespace_of(key))


class _PodSet:
    """A row of a workload that holds quota."""

    def __init__(
        self,
        name: str,
        count: int,
        admitted: int | None,
        flavors: Mapping[str, str],
        usage: Mapping[str, Any],
        nodes: Sequence[str | None],
        reclaimed: int,
    ) -> None:
        self.name = name
        self.count = count
        self.admitted = admitted
        self.flavors = flavors
        self.usage = usage
        self.placed = sum(node is not None for node in nodes)
        self.gave_up = None in nodes
        self.reclaimed = reclaimed


def _admission(rows: Sequence[_PodSet], decided: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Pod sets and their faults."""
    for row in rows:
        problem = _amounts(row)
        if not problem and row.admitted is not None and row.name in decided:
            problem = _against(row, decided[row.name], row.admitted)
        if problem:
            yield row.name, problem
    for name in sorted(decided.keys() - {row.name for row in rows}):
        yield name, "it was given quota, but does not exist"


def _amounts(row: _PodSet) -> str:
    """Return a fault that is visible without the decision; empty if there is none."""
    if row.admitted is None:
        return ""  # `quota` reports it
    if uncharged := row.flavors.keys() - row.usage.keys():
        return f"it has a flavor of {', '.join(sorted(uncharged))}, but is not charged for it"
    for resource, charged in sorted(row.usage.items()):
        if not isinstance(charged, int) or charged < 0 or (charged and (not row.admitted or charged % row.admitted)):
            return f"it is charged {charged} of {resource} for {row.admitted} pods"
    return ""


def _against(row: _PodSet, decided: Mapping[str, Any], admitted: int) -> str:
    count = decided["count"]
    # The admission of an elastic job follows its pod sets as they shrink.
    if admitted != count and not admitted == row.count < count:
        return f"{admitted} pods are admitted, but {count} were decided"
    # A reclaimed pod releases its node once the scheduler has seen it.
    if admitted == count and not row.gave_up and row.placed and not admitted - row.reclaimed <= row.placed <= admitted:
        return f"{row.placed} pods have nodes, but {admitted} are admitted"
    if dict(row.flavors) != decided["flavors"]:
        return f"it has the flavors {_flavors(row.flavors)}, but {_flavors(decided['flavors'])} were decided"
    for resource in sorted(decided["resource_usage"].keys() | row.usage.keys()):
        amount = decided["resource_usage"].get(resource, 0)
        given, charged = amount // count * admitted if count else amount, row.usage.get(resource, 0)
        if charged != given:
            amounts = (
                f"{format_amount(resource, charged)} of {resource}, but {format_amount(resource, given)} were decided"
            )
            return f"it is charged {amounts}"
    return ""


def _devices(
    rows: Sequence[_PodSet],
    slices: Sequence[Sequence[Any]],
    decision: Mapping[str, Any],
    decided: Mapping[str, Mapping[str, Any]],
) -> str:
    held, given = Counter(map(tuple, slices)), Counter(map(tuple, decision.get("devices", ())))
    shrank = any(row.gave_up or row.reclaimed or row.admitted != decided.get(row.name, {}).get("count") for row in rows)
    if held == given or (shrank and held <= given):
        return ""
    more, fewer = held - given, given - held
    parts = [
        f"{what} {', '.join(f'{memory} MiB and {cores} % of {node}/{uuid}' for node, uuid, memory, cores in found)}"
        for what, found in (("holds", more), ("does not hold", fewer))
        if found
    ]
    return f"it {', and '.join(parts)}, unlike its decision"


def _flavors(flavors: Mapping[str, str]) -> str:
    return ", ".join(f"{resource}: {name}" for resource, name in sorted(flavors.items())) or "of nothing"


RULES: Final[Sequence[Callable[[Cluster, datetime], Iterator[Violation]]]] = (_as_decided,)
