"""What a leader publishes after a batch: the workloads of which anything was saved, by name."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from queues.models import ClusterQueue, Cohort, Workload
from queues.services.workloads import cancel
from scheduler.leader.engine import Engine
from scheduler.live.publisher import HEARTBEAT_SECONDS, INTERVAL_SECONDS
from tests.engines import NOW
from tests.factories import START, make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


class Leader:
    """An engine and the frames that it sends, on a clock that the test moves."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.cluster = make_cluster()
        make_cluster_queue(self.cluster, quotas={"default-flavor": {"cpu": 1000}})
        self._now = NOW
        self._engine = Engine(self.cluster, "test", clock=self._read, steady=self._read, send=self._keep)
        self._engine.run()
        assert self.types() == ["snapshot"]

    def _read(self) -> float:
        return self._now

    def _keep(self, cluster: str, frame: bytes, snapshot: bytes | None) -> None:
        assert cluster == self.cluster.name
        self.frames.append(orjson.loads(frame))

    def types(self) -> list[str]:
        return [frame["type"] for frame in self.frames]

    def run(self, seconds: float) -> None:
        """Run so many seconds after the last run."""
        self._now += seconds
        self._engine.run()

    def next_delta(self) -> dict[str, Any]:
        known = len(self.frames)
        self.run(INTERVAL_SECONDS)
        assert self.types()[known:] == ["delta"]
        return self.frames[-1]["data"]  # type: ignore[no-any-return]  # a delta is an object


def test_frames_keep_their_distance_and_a_heartbeat_follows_silence() -> None:
    leader = Leader()
    make_workload(leader.cluster, "one", {"cpu": "1"})
    leader.run(INTERVAL_SECONDS * 0.5)
    assert leader.types() == ["snapshot"], "too early for another frame"
    leader.run(INTERVAL_SECONDS * 0.6)
    assert leader.types() == ["snapshot", "delta"]
    leader.run(HEARTBEAT_SECONDS * 0.9)
    assert leader.types() == ["snapshot", "delta"]
    leader.run(HEARTBEAT_SECONDS * 0.2)
    assert leader.types() == ["snapshot", "delta", "heartbeat"]


def test_a_delta_names_what_came_was_decided_and_went() -> None:
    leader = Leader()
    cluster = leader.cluster
    for name in ("one", "two"):
        make_workload(cluster, name, {"cpu": "1"})
    delta = leader.next_delta()
    assert sorted(delta["workloads"]["changed"]) == ["team/one", "team/two"]
    assert "more" not in delta["workloads"]
    waits = Workload.objects.get(status="Pending")
    cancel(cluster, [(waits.namespace, waits.name)], actor="test")
    assert leader.next_delta()["workloads"] == {"changed": [f"team/{waits.name}"]}


def test_a_flood_is_not_named_one_by_one() -> None:
    leader = Leader()
    for number in range(130):
        make_workload(leader.cluster, f"flood-{number}", {"cpu": "1"})
    workloads = leader.next_delta()["workloads"]
    assert len(workloads["changed"]) == 100
    assert workloads["more"] is True


def test_what_a_sharing_policy_gives_stands_beside_what_is_used() -> None:
    leader = Leader()
    Cohort.objects.create(cluster=leader.cluster, name="all", sharing_policy="proportion", created_at=START)
    ClusterQueue.objects.update(cohort_name="all")
    make_workload(leader.cluster, "w", {"cpu": "400m"})
    changed = leader.next_delta()
    (row,) = changed["cluster_queues"]["main"]["usage"]
    assert (row["nominal"], row["deserved"], row["used"]) == (1000, 400, 400)
    (cell,) = changed["cohorts"]["all"]["usage"]
    assert (cell["deserved"], cell["subtree_quota"]) == (1000, 1000)
