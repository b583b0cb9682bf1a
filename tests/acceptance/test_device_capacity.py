"""Slices never exceed a device: random operations on PostgreSQL, with two schedulers that write.

Both believe to lead: one takes over while the other rests, decides, is about to commit, or runs at the same time. The
length follows the Hypothesis profile: 300 operations, and 10,000 with `--hypothesis-profile=long`. Every run is the
same but for who is faster of two that run at the same time.
"""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection
from hypothesis import settings

from accounts.models import Cluster
from gpus.models import Device, DeviceAllocation
from queues.models import PodSet, Workload
from scheduler.leader.engine import Engine
from scheduler.models import Decision
from scheduler.store.batch import Batch
from scheduler.store.lease import LeaseLost
from scheduler.store.saving import save
from tests.acceptance.device_operations import GPU, QUOTAS, Asked, Operations, make_queues, shrunken
from tests.factories import START, make_cluster

pytestmark = pytest.mark.django_db(transaction=True)

OPERATIONS = 10_000 if settings().max_examples >= 2_000 else 300
MAX_RUNS = 20
DIMENSIONS = ("slots", "memory_mib", "cores_percent")
Held = Mapping[int, Sequence[DeviceAllocation]]


def in_threads(*functions: Callable[[], object]) -> None:
    """Run at the same time, each with a connection of its own, as other processes would."""
    failures: list[BaseException] = []

    def run(function: Callable[[], object]) -> None:
        try:
            function()
        except AssertionError as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[function]) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


@dataclass
class Schedulers:
    """Who leads, and whoever led before and does not know better."""

    cluster: Cluster
    now: float = START.timestamp() + 1000
    seen: Counter[str] = field(default_factory=Counter)
    _meanwhile: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.leader = self._start()

    def _start(self) -> Engine:
        return Engine(self.cluster, "test", clock=lambda: self.now, save=self._save)

    def _save(self, batch: Batch) -> None:
        meanwhile, self._meanwhile = (self._meanwhile, None) if batch else (None, self._meanwhile)
        if meanwhile is not None:
            in_threads(meanwhile)
        save(batch)

    def run(self) -> None:
        """The leader decides until nothing more happens."""
        self._settle(self.leader)
        self._meanwhile = None

    def _settle(self, engine: Engine) -> None:
        for _ in range(MAX_RUNS):
            run = engine.run()
            self.seen.update(refused=run.refused, admitted=run.admitted, preempted=run.preempted)
            if not run.more:
                return
        last = Decision.objects.order_by("-id").values_list("workload_name", "action", "reason", "message")[:30]
        raise AssertionError(f"it does not come to rest: {list(last)}")

    def run_while(self, happens: Callable[[], object]) -> None:
        """Something happens between the leader's first decision and its commit."""
        self._meanwhile = happens
        self.run()

    def take_over_at_rest(self) -> None:
        """A new leader runs; then the old one tries to."""
        old, self.leader = self.leader, self._start()
        self.run()
        self._fails(old)

    def take_over_before_commit(self) -> None:
        """A new leader loads, and may run, between a decision of the old one and its commit."""
        old = self.leader
        self._meanwhile = self._replace_leader
        self._fails(old)
        if self._meanwhile is not None:  # the old one had nothing to decide
            self._meanwhile = None
            self._replace_leader()
        self.run()

    def _replace_leader(self) -> None:
        self.leader = self._start()

    def take_over_at_once(self) -> None:
        """Both run at the same time."""
        old = self.leader
        in_threads(lambda: self._fails(old), self._lead)
        self.run()

    def _lead(self) -> None:
        self._replace_leader()
        self._settle(self.leader)

    def _fails(self, old: Engine) -> None:
        """It ends when it notices; with nothing to write it may not."""
        try:
            self._settle(old)
        except LeaseLost:
            self.seen["leases lost"] += 1


def holding() -> list[Workload]:
    """Who holds quota, and so devices."""
    return list(
        Workload.objects.filter(quota_reserved_at__isnull=False)
        .exclude(status="Finished")
        .prefetch_related("pod_sets", "device_allocations__node")
    )


def decided_slices(slices: Iterable[DeviceAllocation]) -> Counter[tuple[Any, ...]]:
    """What is decided, by device, pod and amounts. A pod that goes on under a grown job's workload is the same."""
    return Counter(
        (part.device_uuid, part.replica, part.memory_mib, part.cores_percent, part.slots)
        for part in slices
        if part.source == "decided"
    )


def check_devices(before: Counter[tuple[Any, ...]]) -> None:
    """The columns are the sums of the slices; a device that is overfull has no decided slice that it had not before."""
    devices = Device.objects.select_related("node").prefetch_related("allocations")
    for device in devices:
        slices = list(device.allocations.all())
        decided = [part for part in slices if part.source == "decided"]
        for name in DIMENSIONS:
            total, used, external = (getattr(device, f"{prefix}{name}") for prefix in ("", "used_", "external_"))
            assert used == sum(getattr(part, name) for part in decided), (device.uuid, name)
            assert external == sum(getattr(part, name) for part in slices) - used, (device.uuid, name)
            if used + external > total:
                assert external or shrunken(device), (device.uuid, name, used, total)
                assert decided_slices(slices) <= before, (device.uuid, name, used, external, total)


def check_workloads(asked: Mapping[str, Asked], placed: Mapping[str, int]) -> None:
    """Who holds quota has exactly the slices that it asked for, and nobody else has any. An elastic job that shrank has
    those of its pods that run still as well."""
    workloads = holding()
    for workload in workloads:
        [pod_set] = workload.pod_sets.all()
        wanted = asked[workload.name]
        slices = list(workload.device_allocations.all())
        held = [node for node in pod_set.nodes if node is not None]
        assert pod_set.admitted_count == wanted.pods, workload.name
        assert wanted.pods <= len(held) <= placed.get(workload.name, wanted.pods), workload.name
        assert len(slices) == len(held) * wanted.devices, workload.name
        devices: dict[int, set[str]] = defaultdict(set)
        for part in slices:
            devices[part.replica].add(part.device_uuid)
            assert (part.memory_mib, part.cores_percent, part.slots) == (wanted.memory_mib, wanted.cores_percent, 1)
            assert part.node.name == pod_set.nodes[part.replica]
        assert all(len(uuids) == wanted.devices for uuids in devices.values()), "a pod takes different devices"
    others = DeviceAllocation.objects.filter(source="decided").exclude(workload__in=workloads)
    assert not others.exists()


def check_quotas() -> None:
    """No ClusterQueue uses more than it may borrow, and both together not more than both have."""
    used: Counter[tuple[str, str]] = Counter()
    for queue, usage in PodSet.objects.filter(workload__in=holding()).values_list(
        "workload__cluster_queue_name", "resource_usage"
    ):
        used.update({(queue, resource): amount for resource, amount in usage.items()})
    for resource in QUOTAS["a"]:
        assert all(used[queue, resource] <= sum(cells[resource]) for queue, cells in QUOTAS.items()), resource
        together = sum(used[queue, resource] for queue in QUOTAS)
        assert together <= sum(cells[resource][0] for cells in QUOTAS.values()), resource


def test_slices_never_exceed_a_device_whatever_happens(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(2026)
    cluster = make_cluster()
    make_queues(cluster)
    operations = Operations(cluster, chance)
    schedulers = Schedulers(cluster)
    most = 0
    while operations.counts["all"] < OPERATIONS:
        for _ in range(chance.randint(1, 12)):
            operations.take()
        before = decided_slices(DeviceAllocation.objects.all())
        run: dict[Callable[[], Any], int] = {
            schedulers.run: 8,
            lambda: schedulers.run_while(operations.take): 4,
            schedulers.take_over_at_rest: 2,
            schedulers.take_over_before_commit: 3,
            schedulers.take_over_at_once: 3,
        }
        [decide] = chance.choices(list(run), list(run.values()))
        decide()
        check_devices(before)
        check_workloads(operations.asked, operations.placed)
        check_quotas()
        most = max(
            most, sum(PodSet.objects.filter(workload__in=holding()).values_list("resource_usage__" + GPU, flat=True))
        )
        schedulers.now += chance.choice([1, 60])
    with capsys.disabled():
        sys.stdout.write(
            f"\n{dict(operations.counts)} {dict(schedulers.seen)}, at most {most} devices asked for at once\n"
        )
    assert schedulers.seen["admitted"] > OPERATIONS / 15
    assert schedulers.seen["leases lost"] > OPERATIONS / 50
    assert schedulers.seen["preempted"] > 0
    assert schedulers.seen["refused"] >= OPERATIONS // 1000
