"""What a leader publishes after a batch: the workloads of which anything was saved, by name."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from queues.models import Workload
from queues.services.workloads import cancel
from scheduler.leader.engine import Engine
from scheduler.live import publisher
from tests.engines import start
from tests.factories import make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)


class Recorder:
    """Stands where the channel layer's thread does."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []

    def send(self, cluster: str, frame: bytes, snapshot: bytes | None = None) -> None:
        self.frames.append(orjson.loads(frame))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    recorder = Recorder()
    monkeypatch.setattr(publisher, "_publisher", lambda: recorder)
    return recorder.frames


def next_delta(engine: Engine, sent: list[dict[str, Any]]) -> dict[str, Any]:
    """Frames keep a distance from each other."""
    known, end = len(sent), time.monotonic() + 30
    while len(sent) == known:
        assert time.monotonic() < end
        engine.run()
    assert sent[-1]["type"] == "delta"
    return sent[-1]["data"]  # type: ignore[no-any-return]  # a delta is an object


def test_a_delta_names_what_came_was_decided_and_went(sent: list[dict[str, Any]]) -> None:
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
    engine = start(cluster)
    engine.run()
    assert [frame["type"] for frame in sent] == ["snapshot"]
    for name in ("one", "two"):
        make_workload(cluster, name, {"cpu": "1"})
    delta = next_delta(engine, sent)
    assert sorted(delta["workloads"]["changed"]) == ["team/one", "team/two"]
    assert "more" not in delta["workloads"]
    waits = Workload.objects.get(status="Pending")
    cancel(cluster, [(waits.namespace, waits.name)], actor="test")
    assert next_delta(engine, sent)["workloads"] == {"changed": [f"team/{waits.name}"]}


def test_a_flood_is_not_named_one_by_one(sent: list[dict[str, Any]]) -> None:
    cluster = make_cluster()
    make_cluster_queue(cluster, quotas={"default-flavor": {"cpu": 1000}})
    engine = start(cluster)
    engine.run()
    for number in range(130):
        make_workload(cluster, f"flood-{number}", {"cpu": "1"})
    workloads = next_delta(engine, sent)["workloads"]
    assert len(workloads["changed"]) == 100
    assert workloads["more"] is True
