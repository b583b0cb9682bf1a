"""The quotas that a manager's ClusterQueue gets from its workers: Kueue's sums, and each reason why it gets none."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.multikueue.worker_queues import WorkerQueues, judge, read_queues, sum_of_workers
from queues.kinds.quotas import QuotaSpec, ResourceGroupSpec

GROUP = ResourceGroupSpec(("cpu", "memory"), ("plain",), (QuotaSpec("plain", "cpu", 0),))
EAST = WorkerQueues({"team/local": "a", "other/local": "b"}, {"a": [("cpu", "1200m")], "b": [("cpu", "100")]})
WEST = WorkerQueues({"team/local": "c", "team/more": "c"}, {"c": [("cpu", "2"), ("cpu", "3"), ("memory", "4G")]})


def local_queue(name: str, queue: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"clusterQueue": queue}}


def cluster_queue(name: str, quota: Any) -> dict[str, Any]:
    flavors = [{"name": "plain", "resources": [{"name": "cpu", "nominalQuota": quota}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    return {"metadata": {"name": name}, "spec": {"resourceGroups": groups}}


def test_queues_are_read_as_the_worker_has_them() -> None:
    found = read_queues([local_queue("local", "a")], [cluster_queue("a", "5"), {"metadata": {"name": "b"}, "spec": {}}])
    assert found == WorkerQueues({"team/local": "a"}, {"a": [("cpu", "5")], "b": []})


@pytest.mark.parametrize("queue", [cluster_queue("a", "much"), cluster_queue("a", "-1"), {"metadata": {}}, {}])
def test_queues_that_no_kueue_has_are_a_refusal(queue: dict[str, Any]) -> None:
    found = read_queues([local_queue("local", "a")], [queue])
    assert "does not have Kueue's format" in found.refusal
    assert judge([GROUP], {"team/local"}, {"east": found}).quotas is None


def test_each_cluster_queue_that_the_local_queues_lead_to_counts_once() -> None:
    assert sum_of_workers({"team/local", "team/more"}, [EAST, WEST]) == {"cpu": "6200m", "memory": "4G"}
    assert sum_of_workers({"other/local"}, [EAST, WEST]) == {"cpu": "100"}
    assert sum_of_workers(set(), [EAST, WEST]) == {}


def test_what_no_worker_has_is_zero() -> None:
    found = judge([GROUP], {"team/local"}, {"east": EAST})
    assert (found.automated, found.reason) == (True, "QuotaAutomated")
    assert found.quotas == {"cpu": "1200m", "memory": "0"}
    assert judge([GROUP], {"team/local"}, {}).quotas == {"cpu": "0", "memory": "0"}


@pytest.mark.parametrize(
    "groups",
    [
        (),
        (GROUP, GROUP),
        (ResourceGroupSpec(("cpu",), ("plain", "spot"), ()),),
    ],
)
def test_a_queue_with_other_than_one_flavor_is_not_automated(groups: tuple[ResourceGroupSpec, ...]) -> None:
    found = judge(groups, {"team/local"}, {"east": EAST})
    assert (found.reason, found.quotas) == ("UnsupportedConfiguration", None)


def test_resources_that_the_manager_does_not_cover_are_named() -> None:
    only_cpu = ResourceGroupSpec(("cpu",), ("plain",), ())
    found = judge([only_cpu], {"team/local"}, {"west": WEST})
    assert (found.automated, found.reason, found.quotas) == (False, "UnsupportedConfiguration", None)
    assert found.message == "manager-side coveredResources is missing resources configured on workers: [memory]"


def test_a_worker_that_may_not_be_read_leaves_the_quotas() -> None:
    found = judge([GROUP], {"team/local"}, {"east": EAST, "west": WorkerQueues({}, {}, "clusterqueues is forbidden")})
    assert (found.automated, found.reason, found.quotas) == (False, "QueuesNotReadable", None)
    assert "worker west: clusterqueues is forbidden" in found.message
