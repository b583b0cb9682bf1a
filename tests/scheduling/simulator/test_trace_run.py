"""A trace through a configuration: figures that can be computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.vendor import NVIDIA
from scheduling.simulator.trace_job import CLASSES, TraceJob
from scheduling.simulator.trace_run import run_trace
from scheduling.world import World

GPU = "nvidia.com/gpu"
HOUR = 3600.0


def queue(name: str, devices: int, cohort: str = "", **spec: Any) -> dict[str, Any]:
    quota = {"name": GPU, "nominalQuota": devices}
    group = {"coveredResources": [GPU], "flavors": [{"name": "gpus", "resources": [quota]}]}
    spec |= {"resourceGroups": [group], "namespaceSelector": {}} | ({"cohortName": cohort} if cohort else {})
    return {"metadata": {"name": name}, "spec": spec}


def local_queue(name: str, cluster_queue: str, namespace: str = "team") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterQueue": cluster_queue}}


def configuration(*queues: dict[str, Any], local: list[dict[str, Any]]) -> dict[str, Any]:
    return {"resourceFlavors": [{"metadata": {"name": "gpus"}}], "clusterQueues": list(queues), "localQueues": local}


def job(name: str, at: float, hours: float, devices: int = 1, queue: str = "a", **fields: Any) -> TraceJob:
    return TraceJob(name, "team", queue, at * HOUR, hours * HOUR, 1, devices, {GPU: str(devices), "cpu": "1"}, **fields)


ONE = configuration(queue("all", 2), local=[local_queue("a", "all")])


def test_waits_use_and_hours_of_one_queue() -> None:
    """Two devices: `large` waits an hour for `first`, `last` another two hours for `large`."""
    found = run_trace(ONE, [job("first", 0, 1), job("large", 0, 2, 2), job("last", 2, 1)])
    assert (found.jobs, found.started, found.finished, found.devices, found.hours) == (3, 3, 3, 2.0, 2.0)
    assert found.utilisation == pytest.approx((1 + 2) / 4)
    assert found.waits["all"].median_seconds == HOUR
    assert found.waits["1 device"].mean_of_started_seconds == HOUR / 2
    assert found.waits["2 to 7 devices"].median_seconds == HOUR
    [of_queue] = found.queues.values()
    assert (of_queue.used_hours, of_queue.below_hours) == (3.0, 1.0)


def test_jobs_that_never_start_wait_forever() -> None:
    found = run_trace(ONE, [job("too-large", 0, 1, 3), job("b", 1, 1)])
    assert (found.started, found.waits["2 to 7 devices"].median_seconds) == (1, None)
    assert found.waits["all"].p90_seconds is None


def test_preempted_work_is_lost_and_counts_for_its_queue() -> None:
    queues = [queue("own", 2, "all", preemption={"reclaimWithinCohort": "Any"}), queue("guest", 0, "all")]
    local = [local_queue("own", "own"), local_queue("guest", "guest")]
    jobs = [job("borrows", 0, 10, 2, "guest"), job("claims", 3, 1, 2, "own"), job("ends", 20, 1, 1, "own")]
    found = run_trace(configuration(*queues, local=local), jobs)
    assert (found.preemptions, found.lost_hours) == (1, 6.0)
    assert (found.queues["guest"].preemptions, found.queues["own"].preemptions) == (1, 0)
    assert found.queues["guest"].used_hours == 6.0 + 20.0
    assert found.finished == 3


def test_fairness_is_one_for_equal_use_of_quota() -> None:
    local = [local_queue("a", "a"), local_queue("b", "b")]
    two = configuration(queue("a", 1), queue("b", 1), local=local)
    both = [job("a1", 0, 5), job("b1", 0, 5, queue="b"), job("end", 5, 1)]
    assert run_trace(two, both).fairness == pytest.approx(1.0)
    assert run_trace(two, [both[0], job("b1", 4, 1, queue="b"), both[2]]).fairness == pytest.approx(
        (5 + 1) ** 2 / (2 * 26)
    )


def test_a_job_asks_for_quota_in_its_own_queue_else_in_its_namespace_else_in_the_first() -> None:
    local = [local_queue("x", "one", "other"), local_queue("a", "two"), local_queue("b", "three")]
    queues = configuration(queue("one", 9), queue("two", 9), queue("three", 9), local=local)
    jobs = [job("b", 0, 1, queue="b"), job("none", 0, 1, queue="none")]
    jobs.append(TraceJob("elsewhere", "unknown", "q", 0, 60, 1, 1, {GPU: "1"}))
    found = run_trace(queues, jobs)
    assert {name: each.waits.jobs for name, each in found.queues.items()} == {"three": 1, "two": 1, "one": 1}


def test_a_queue_that_does_not_exist_refuses() -> None:
    found = run_trace(configuration(queue("all", 2), local=[local_queue("a", "gone")]), [job("a", 0, 1)])
    assert (found.jobs, found.refused, found.started) == (1, 1, 0)


def test_devices_of_nodes_are_used_and_their_fragments_are_counted() -> None:
    devices = tuple(Device(f"g{index}", index, NVIDIA.common_word, "A", 10, 1000, 100) for index in range(2))

    def add(world: World) -> None:
        world.set_placement_policies("binpack", "binpack")
        world.set_node(Node("n1", {}, allocatable={"cpu": 8000, "memory": 2**40, "pods": 100}, devices=devices))

    found = run_trace(
        configuration(queue("all", 100), local=[local_queue("a", "all")]), [job(f"j{n}", n, 4) for n in range(4)], add
    )
    assert (found.devices, found.started) == (2.0, 4)
    assert found.waits["all"].p90_seconds == 2 * HOUR  # two devices, though the quota has a hundred
    assert found.fragmented is not None


@pytest.mark.parametrize(("devices", "size"), [(0, 0), (0.5, 1), (1, 2), (1.5, 2), (2, 3), (7.9, 3), (8, 4), (64, 4)])
def test_jobs_are_classed_by_their_devices(devices: float, size: int) -> None:
    assert job("a", 0, 1, 1).size == CLASSES[2]
    assert TraceJob("a", "t", "q", 0, 1, 1, devices, {}).size == CLASSES[size]


def test_a_trace_without_jobs_is_refused() -> None:
    with pytest.raises(ValueError, match="trace: Required value"):
        run_trace(ONE, [])
