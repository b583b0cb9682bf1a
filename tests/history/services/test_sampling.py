"""What is noted of a cluster that a scheduler leads: counts, quota, devices and events, as hand-counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from accounts.models import Cluster
from foundation.redis_client import redis_client
from foundation.time_series import Resolution
from gpus.models import ContainerSample, Device
from history.models import CountSample, DeviceSample, QuotaSample, UsageRecord, WorkloadSample
from history.services.sampling.sample import sample
from history.services.waits import bucket_of
from queues.models import Pod, Workload
from queues.services.workloads import record_finished
from scheduler.leader.engine import Engine
from scheduler.live.publisher import numbers, snapshot_key
from scheduler.models import Lease
from tests.factories import make_cluster, make_cluster_queue, make_cohort, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

GPU = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000", "nvidia.com/gpucores": "25"}


def engine_at(cluster: Cluster, now: datetime) -> Engine:
    """A scheduler that has decided all it can, and published that."""
    engine = Engine(cluster, "test", clock=now.timestamp)
    while engine.run().more:
        continue
    publish(engine, now)
    return engine


def publish(engine: Engine, now: datetime) -> None:
    frame = {
        "type": "snapshot",
        "epoch": engine.epoch,
        "sequence": 10**6,
        "time": now,
        "data": numbers(engine.world, engine.rows),
    }
    redis_client().set(snapshot_key(engine.cluster_name), orjson.dumps(frame))


def workloads() -> dict[str, tuple[int, int, int]]:
    """scope and name -> pending, reserving, admitted."""
    rows = WorkloadSample.objects.select_related("subject")
    return {f"{row.subject.scope}:{row.subject.name}": (row.pending, row.reserving, row.admitted) for row in rows}


def counts(kind: str, scope: str = "cluster") -> dict[str, int]:
    """detail -> total."""
    rows = CountSample.objects.filter(subject__kind=kind, subject__scope=scope)
    return dict(rows.values_list("subject__detail", "total"))


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def cluster(now: datetime) -> Cluster:
    """Two queues of 10 cpu in one cohort: six workloads of 2 cpu run in `busy`, one that asks for 30 waits."""
    cluster = make_cluster()
    make_cohort(cluster, "all")
    make_cluster_queue(cluster, "busy", cohort_name="all")
    make_cluster_queue(cluster, "idle", cohort_name="all", local_queue="")
    for index in range(6):
        make_workload(cluster, f"w{index}", {"cpu": "2"}, created_at=now - timedelta(seconds=100))
    make_workload(cluster, "huge", {"cpu": "30"}, created_at=now - timedelta(seconds=100))
    return cluster


def test_it_counts_by_queue_cohort_namespace_and_cluster(cluster: Cluster, now: datetime) -> None:
    engine_at(cluster, now)
    assert sample(cluster, now)
    assert workloads() == {
        "cluster:": (1, 6, 6),
        "cohort:all": (1, 6, 6),
        "cluster_queue:busy": (1, 6, 6),
        "cluster_queue:idle": (0, 0, 0),
        "namespace:team": (1, 6, 6),
        "local_queue:team/queue": (1, 6, 6),
    }
    reason = Workload.objects.get(name="huge").reason
    assert reason
    assert counts("pending", "cluster_queue") == {reason: 1}


def test_what_one_queue_borrows_the_other_lends(cluster: Cluster, now: datetime) -> None:
    engine_at(cluster, now)
    sample(cluster, now)
    rows = QuotaSample.objects.filter(subject__resource="cpu").select_related("subject")
    found = {f"{row.subject.scope}:{row.subject.name}": (row.nominal, row.used, row.borrowed, row.lent) for row in rows}
    assert found == {
        "cluster_queue:busy": (10_000, 12_000, 2_000, 0),
        "cluster_queue:idle": (10_000, 0, 0, 2_000),
        "cohort:all": (20_000, 12_000, 2_000, 2_000),
        "cluster:": (20_000, 12_000, 2_000, 2_000),
        "namespace:team": (None, 12_000, None, None),
    }


def test_starts_waits_and_ends_are_counted_once_however_often_it_is_sampled(cluster: Cluster, now: datetime) -> None:
    engine = engine_at(cluster, now)
    sample(cluster, now)
    record_finished(cluster, [("team", "w0"), ("team", "w1")], now=now)
    engine.run()
    publish(engine, now)
    for _ in range(2):
        sample(cluster, now)
    assert counts("started") == {"": 6}
    assert counts("wait") == {str(bucket_of(100)): 6}
    assert counts("ended", "cluster_queue") == {"Succeeded": 2}
    assert workloads()["cluster:"] == (1, 4, 4)
    assert UsageRecord.objects.count() == 2


def test_a_new_leader_goes_on_with_the_same_series(cluster: Cluster, now: datetime) -> None:
    engine_at(cluster, now)
    sample(cluster, now)
    later = now + timedelta(seconds=15)
    engine_at(cluster, later)
    sample(cluster, later)
    rows = WorkloadSample.objects.filter(subject__scope="cluster").order_by("at")
    assert list(rows.values_list("admitted", "samples")) == [(6, 1), (6, 1)]


@pytest.mark.parametrize("silent", ["no lease", "old lease", "another epoch", "nothing published"])
def test_without_a_leader_there_is_a_gap_and_no_zero(cluster: Cluster, now: datetime, silent: str) -> None:
    engine_at(cluster, now)
    if silent == "no lease":
        Lease.objects.all().delete()
    elif silent == "old lease":
        Lease.objects.update(renewed_at=now - timedelta(minutes=1))
    elif silent == "another epoch":
        Lease.objects.update(epoch=10**6)
    else:
        Cluster.objects.update(name="renamed")
        cluster.refresh_from_db()
    assert not sample(cluster, now)
    assert not WorkloadSample.objects.exists()


def test_slices_count_by_their_larger_share_and_unmeasured_devices_are_not_idle(now: datetime) -> None:
    """Three slices of 8,000 of 16,000 MiB and 25 % are half a device each: one is idle, one works, one unknown."""
    cluster = make_cluster()
    make_cluster_queue(
        cluster,
        quotas={"gpu": {"nvidia.com/gpu": 8, "nvidia.com/gpumem": 10**6, "nvidia.com/gpucores": 800}},
    )
    make_node(cluster, "n1", [{}, {}])
    for name in ("idle", "works", "unknown"):
        make_workload(cluster, name, GPU, submitted_by="bob")
    engine_at(cluster, now)
    for name, percent in (("idle", 0.0), ("works", 20.0)):
        workload = Workload.objects.get(name=name)
        slice_ = workload.device_allocations.get()
        assert slice_.device is not None
        Pod.objects.create(
            workload=workload, pod_set="main", replica=0, namespace="team", name=f"{name}-x", uid=name, phase="Running"
        )
        ContainerSample.objects.create(
            device=slice_.device, namespace="team", pod_name=f"{name}-x", container="main", at=now,
            memory_used_mib=1000.0, utilization_percent=percent,
        )  # fmt: skip
    assert sample(cluster, now)
    held = DeviceSample.objects.get(subject__scope="user", subject__name="team/bob", subject__flavor="gpu")
    assert (held.devices_held, held.devices_idle, held.devices_unmeasured) == (1.5, 0.5, 0.5)
    assert (held.memory_held_mib, held.memory_used_mib) == (24_000, 2_000)
    assert (held.cores_held_percent, held.cores_used_percent) == (75, 20)
    whole = DeviceSample.objects.get(subject__scope="cluster", subject__flavor="")
    assert (whole.devices, whole.memory_mib, whole.cores_percent) == (2, 32_000, 200)
    full = [device for device in Device.objects.all() if device.used_memory_mib == device.memory_mib]
    assert whole.devices_stranded == sum(1 - device.used_cores_percent / 100 for device in full)
    assert DeviceSample.objects.filter(resolution=Resolution.RAW).count() == 6


def test_demand_is_what_is_held_and_what_waiting_workloads_ask_for(now: datetime) -> None:
    """One of two devices is held; 3 pods wait for half a device each, one pod for two; one on hold is left out."""
    cluster = make_cluster()
    make_cluster_queue(
        cluster,
        quotas={"gpu": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 10**6, "nvidia.com/gpucores": 800}},
    )
    make_node(cluster, "n1", [{}, {}])
    make_workload(cluster, "runs", {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}, priority=10)
    engine_at(cluster, now)
    asked = {
        "halves": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8_000, "nvidia.com/gpucores": 25},
        "whole": {"nvidia.com/gpu": 2},
        "held": {"nvidia.com/gpu": 2},
    }
    for name, requests in asked.items():
        waiting = make_workload(cluster, name, GPU, count=3 if name == "halves" else 1, active=name != "held")
        waiting.pod_sets.update(requests=requests)
    assert sample(cluster, now)
    whole = DeviceSample.objects.get(subject__scope="cluster", subject__flavor="")
    held = DeviceSample.objects.get(subject__scope="cluster", subject__flavor="gpu").devices_held
    assert (held, whole.devices_demanded) == (1, 1 + 3 * 0.5 + 2)
