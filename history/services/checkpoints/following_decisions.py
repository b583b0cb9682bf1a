"""The decisions that follow from a moment: the cycles that a new leader would have run then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from history.services.checkpoints.past_moments import Moment, cluster_at, showing_moment
from scheduler.store.world_reading import read_whole_world
from scheduling.model.decisions import Admit, CycleResult, Decision, ReplaceNode
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World


def world_at(moment: Moment) -> World:
    """Build the World of a moment, at its time."""
    with showing_moment(moment) as settings:
        return read_whole_world(cluster_at(moment, settings), moment.time.timestamp())[0]


def following_decisions(moment: Moment) -> list[dict[str, Any]]:
    """Return the decisions of cycles until they are idle, in their order, as JSON."""
    return list(decisions_json(run_until_idle(world_at(moment), moment.time.timestamp())))


def decisions_json(results: Iterable[CycleResult]) -> Iterator[dict[str, Any]]:
    """Return each decision as JSON: its kind, workload, ClusterQueue and message, and its reason, preemptor or
    placement if it has one."""
    for result in results:
        for evicted in result.evictions:
            yield {**_common(evicted), "reason": str(evicted.reason)}
        for preempted in result.preemptions:
            yield {**_common(preempted), "reason": str(preempted.reason), "preemptor": preempted.preemptor}
        for admitted in result.admissions:
            yield {**_common(admitted), "pod_sets": _pod_sets(admitted), "pods": _pods(admitted)}
        for replaced in result.replacements:
            yield {**_common(replaced), "node": replaced.node, "pod_sets": _pod_sets(replaced)}
        for said in result.outcomes:
            yield {**_common(said), "reason": str(said.reason)}


def _common(made: Decision) -> dict[str, Any]:
    return {
        "kind": str(made.kind),
        "workload": made.workload,
        "cluster_queue": made.cluster_queue,
        "message": made.message,
    }


def _pod_sets(made: Admit | ReplaceNode) -> list[dict[str, Any]]:
    return [
        {"name": given.name, "count": given.count, "flavors": dict(sorted(given.flavors.items()))}
        for given in made.pod_sets
    ]


def _pods(made: Admit) -> list[dict[str, Any]]:
    return [
        {
            "pod_set": pod.pod_set,
            "replica": pod.replica,
            "node": pod.node,
            "devices": [held.uuid for held in pod.slices],
        }
        for pod in (made.placement.pods if made.placement else ())
    ]
