"""The results of the virtual cluster in the format of the recordings: cycles, and the state at the end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from scheduling.model.decisions import Admit, CycleResult, Evict, Preempt
from scheduling.model.quantity import format_amount
from scheduling.model.topology import TopologyAssignment
from scheduling.model.workload import Admission, PodSetAssignment
from scheduling.state.status import Usage
from scheduling.world import World


def cycle_result(result: CycleResult, now: float) -> dict[str, Any]:
    """Return a cycle that decided something."""
    return {"atSeconds": now, "admitted": _all_admitted(result), "preempted": _stopped(result.preemptions)}


def single_cycle_result(result: CycleResult, assigned: Mapping[str, Admission | None], world: World) -> dict[str, Any]:
    """Return all decisions of a cycle, and why workloads wait after it. `assigned` are the admissions before it."""
    return {
        "admitted": _all_admitted(result),
        "preempted": _stopped(result.preemptions),
        "evicted": _stopped(result.evictions),
        "replaced": [
            {"workload": found.workload, "topologyAssignment": topologies}
            for found in sorted(result.replacements, key=lambda found: found.workload)
            if (topologies := _topologies(found.pod_sets)) != _topologies_of(assigned.get(found.workload))
        ],
        "pending": {
            waiting.workload: waiting.reason.value
            for name in world.cluster_queue_names()
            for waiting in world.pending(name)
        },
    }


def _all_admitted(result: CycleResult) -> list[dict[str, Any]]:
    return [_admitted(admission) for admission in sorted(result.admissions, key=lambda found: found.workload)]


def _admitted(admission: Admit) -> dict[str, Any]:
    pod_sets = []
    for assignment in admission.pod_sets:
        entry: dict[str, Any] = {
            "name": assignment.name,
            "count": assignment.count,
            "flavors": dict(assignment.flavors),
        }
        if assignment.topology_assignment is not None:
            entry["topologyAssignment"] = _domains(assignment.topology_assignment)
        pod_sets.append(entry)
    return {"workload": admission.workload, "clusterQueue": admission.cluster_queue, "podSets": pod_sets}


def _domains(topology: TopologyAssignment) -> list[dict[str, Any]]:
    return [{"values": list(domain.values), "count": domain.count} for domain in topology.domains]


def _topologies(pod_sets: Iterable[PodSetAssignment]) -> dict[str, list[dict[str, Any]]]:
    return {
        pod_set.name: _domains(pod_set.topology_assignment)
        for pod_set in pod_sets
        if pod_set.topology_assignment is not None
    }


def _topologies_of(admission: Admission | None) -> dict[str, list[dict[str, Any]]]:
    return _topologies(admission.pod_set_assignments) if admission is not None else {}


def _stopped(decisions: Iterable[Preempt | Evict]) -> list[dict[str, str]]:
    return [
        {"workload": decision.workload, "reason": decision.reason.value}
        for decision in sorted(decisions, key=lambda decision: decision.workload)
    ]


def state_at_the_end(world: World) -> dict[str, Any]:
    """Return the remaining workloads, and the usage of each ClusterQueue."""
    result: dict[str, Any] = {"pending": {}, "inadmissible": {}, "clusterQueues": {}}
    fair = world.configuration.fair_sharing is not None
    for name in world.cluster_queue_names():
        waiting = world.pending(name)
        for key, inadmissible in (("pending", False), ("inadmissible", True)):
            names = [entry.workload for entry in waiting if entry.inadmissible is inadmissible]
            if names:
                result[key][name] = names
        view = world.cluster_queue_status(name)
        usage = [row for row in view.usage if row.listed]  # Kueue reports on the flavors of the spec only
        entry: dict[str, Any] = {
            "flavorsReservation": _by_flavor(usage, "used"),
            "borrowed": _by_flavor([row for row in usage if row.borrowed], "borrowed"),
        }
        if fair:
            share = view.weighted_share
            entry["weightedShare"] = "+Inf" if math.isinf(share) else share
        result["clusterQueues"][name] = entry
    return result


def _by_flavor(rows: list[Usage], field_name: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        amount = row.used if field_name == "used" else row.borrowed
        found.setdefault(row.flavor, {})[row.resource] = format_amount(row.resource, amount)
    return found
