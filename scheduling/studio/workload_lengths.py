"""The workloads of a World as forward runs need them: running and waiting ones, their likes, and bounds of their
lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduling.estimates.likeness import like_levels
from scheduling.estimates.snapshot import RunningWorkload, WaitingWorkload
from scheduling.model.workload import Workload
from scheduling.world import World

Floats = npt.NDArray[np.float64]

STOPPING_SECONDS: Final = 15.0
"""Until the pods of an evicted workload have stopped."""


def known_workload(world: World, key: str) -> Workload:
    """Return a workload that the World knows."""
    found = world.workload(key)
    assert found is not None
    return found


def waiting_workloads(world: World, cluster_queue: str) -> list[WaitingWorkload]:
    """Return the waiting workloads of a ClusterQueue in queue order; variants are replaced by their parent, at the
    place of the first variant."""
    found: dict[str, WaitingWorkload] = {}
    covered = _covered(world, cluster_queue)
    for position in world.pending(cluster_queue):
        key = known_workload(world, position.workload).parent or position.workload
        if key in found or world.workload(key) is None:
            continue
        workload, objects = known_workload(world, key), world.objects
        requests = objects.requests(key, cluster_queue)
        found[key] = WaitingWorkload(
            key,
            like_levels(workload.namespace, workload.queue_name, cluster_queue, workload.name, requests),
            objects.queued_at(key),
            (
                sum(each.count for each in workload.pod_sets),
                *(requests.get(name, 0) for name in covered),
            ),
            workload.maximum_execution_time_seconds,
        )
    return [*found.values()]


def _covered(world: World, cluster_queue: str) -> list[str]:
    spec = world.objects.cluster_queue(cluster_queue)
    return sorted({name for group in spec.resource_groups for name in group.covered_resources}) if spec else []


def running_workloads(world: World) -> dict[str, RunningWorkload]:
    """Return the workloads that hold quota, by key."""
    found = {}
    objects = world.objects
    for key, cluster_queue in sorted(objects.reserving().items()):
        workload = known_workload(world, key)
        requests = objects.requests(key, cluster_queue)
        found[key] = RunningWorkload(
            like_levels(workload.namespace, workload.queue_name, cluster_queue, workload.name, requests),
            objects.reserved_at(key),
            0,
            (),
            workload.maximum_execution_time_seconds,
        )
    return found


def bounded_lengths(
    lasts: Floats, running: Mapping[str, RunningWorkload], waiting: Sequence[WaitingWorkload], now: float
) -> Floats:
    """Return the (draws, running + waiting) lengths, none longer than its workload's maximumExecutionTimeSeconds."""
    ages = [max(0.0, now - each.since) for each in running.values()] + [0.0] * len(waiting)
    workloads: list[RunningWorkload | WaitingWorkload] = [*running.values(), *waiting]
    declared = [each.declared_seconds or np.inf for each in workloads]
    bounded: Floats = np.minimum(lasts, np.maximum(np.array(declared) - np.array(ages), 1.0))
    return bounded
