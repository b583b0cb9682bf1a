"""Rows that are corrupted by SQL, while all processes run: the database refuses it, or the auditor tells of it within a
minute; none is silent. A healthy installation has no findings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from django.db import DatabaseError, connection, transaction

from accounts.models import AuditFinding, AuditRecord
from clusters.audit.auditor import audit, audit_and_heal
from gpus.models import Device, DeviceAllocation
from queues.models import FlavorQuota, PodSet, Workload
from queues.services.workloads import cancel, change_priority, hold, release, requeue
from scheduler.leader.engine import Engine
from scheduler.leader.recovery import Recovery
from simulation.fleet import GpuNodes
from tests.clusters.system import System, gpu_job
from tests.factories import make_cluster_queue, make_resource_flavor
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

NODES: Final = GpuNodes(
    "node", 4, "V100", "NVIDIA-V100", devices=4, memory_mib=32_768, cpu="64", memory="256Gi", slots=10
)
ROOM: Final = 10**9


def later() -> datetime:
    """A time at which nothing is too young to be judged."""
    return datetime.now(UTC) + timedelta(hours=1)


MINUTE: Final = timedelta(minutes=1)
AUDIT_EVERY: Final = timedelta(seconds=25)

WORKLOAD: Final = "UPDATE queues_workload SET {} WHERE id = %(workload)s"
POD_SET: Final = "UPDATE queues_podset SET {} WHERE workload_id = %(workload)s"
SLICE: Final = "UPDATE gpus_deviceallocation SET {} WHERE workload_id = %(workload)s"
USAGE: Final = "resource_usage = (SELECT jsonb_object_agg(key, {}) FROM jsonb_each(resource_usage))"
FLAVORS: Final = "flavors = (SELECT jsonb_object_agg(key, '{}'::text) FROM jsonb_each(flavors))"
TRUE: Final = """conditions || '[{{"type": "{}", "status": "True", "reason": "x", "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z"}}]'"""
COPY: Final = """INSERT INTO gpus_deviceallocation (device_uuid, source, pod_set, replica, container, container_index,
        namespace, pod_name, pod_uid, memory_mib, cores_percent, slots, mig_instance, qos_policy, app_class, malformed,
        created_at, cluster_id, device_id, workload_id, node_id)
    SELECT device_uuid, source, pod_set, replica, container, container_index + {}, namespace, pod_name, pod_uid,
        memory_mib, cores_percent, slots, mig_instance, qos_policy, app_class, malformed, created_at, cluster_id,
        device_id, workload_id, node_id
    FROM gpus_deviceallocation WHERE workload_id = %(workload)s"""
REFUSED: Final = "refused"
MENDED: Final = "mended"
"""The scheduler may decide on a workload that waits before the auditor looks, and so puts its row right: then a line of
the audit or of its log tells of it."""

RUNNING: Final = {
    "time-of-reservation-moved": (WORKLOAD.format("quota_reserved_at = quota_reserved_at + interval '1 day'"), "state"),
    "time-of-admission-lost": (WORKLOAD.format("admitted_at = NULL"), "state"),
    "time-of-eviction-made-up": (WORKLOAD.format("evicted_at = now()"), "state"),
    "status-pending": (WORKLOAD.format("status = 'Pending'"), "state"),
    "status-evicted": (WORKLOAD.format("status = 'Evicted'"), "state"),
    "condition-of-the-end-made-up": (WORKLOAD.format(f"conditions = {TRUE.format('Finished')}"), "state"),
    "queue-unknown": (WORKLOAD.format("cluster_queue_name = 'no-such-queue'"), "references"),
    "queue-of-others": (WORKLOAD.format("cluster_queue_name = 'other'"), "usage"),
    "name-of-another": (WORKLOAD.format("name = 'renamed-' || name"), "usage"),
    "job-lost": (WORKLOAD.format("job_id = NULL"), "references"),
    "told-ahead": (WORKLOAD.format("pushed_sequence = push_sequence + 1000000"), "told"),
    "sequence-fallen": (WORKLOAD.format("push_sequence = 0"), "told"),
    "workload-deleted": ("DELETE FROM queues_workload WHERE id = %(workload)s", REFUSED),
    "usage-larger": (POD_SET.format(USAGE.format("value::text::numeric * 1000")), "usage"),
    "usage-smaller": (POD_SET.format(USAGE.format("1")), "usage"),
    "usage-below-zero": (POD_SET.format(USAGE.format("-1")), "usage"),
    "usage-of-a-resource-lost": (POD_SET.format("resource_usage = resource_usage - 'cpu'"), "usage"),
    "flavor-unknown": (POD_SET.format(FLAVORS.format("no-such-flavor")), "references"),
    "flavor-of-others": (POD_SET.format(FLAVORS.format("other-flavor")), "usage"),
    "flavor-of-a-resource-lost": (POD_SET.format("flavors = flavors - 'cpu'"), "usage"),
    "count-larger": (POD_SET.format("admitted_count = 100, count = 100"), "usage"),
    "count-below-zero": (POD_SET.format("admitted_count = -1"), REFUSED),
    "count-lost": (POD_SET.format("admitted_count = NULL"), "quota"),
    "node-unknown": (POD_SET.format("""nodes = '["no-such-node"]'"""), "slices"),
    "nodes-lost": (POD_SET.format("nodes = '[]'"), "slices"),
    "pod-set-renamed": (POD_SET.format("name = 'renamed'"), "usage"),
    "pod-set-deleted": ("DELETE FROM queues_podset WHERE workload_id = %(workload)s", "usage"),
    "slices-deleted": ("DELETE FROM gpus_deviceallocation WHERE workload_id = %(workload)s", "slices"),
    "slice-twice": (COPY.format(0), REFUSED),
    "slice-of-another-container": (COPY.format(1), "slices"),
    "slice-smaller": (SLICE.format("memory_mib = 1"), "slices"),
    "slice-of-another-node": (
        SLICE.format("""(device_id, device_uuid) = (SELECT id, uuid FROM gpus_device
            WHERE node_id <> gpus_deviceallocation.node_id ORDER BY id LIMIT 1)"""),
        "slices",
    ),
    "slice-of-another-name": (SLICE.format("device_uuid = 'GPU-elsewhere'"), "slices"),
    "slice-of-another-pod-set": (SLICE.format("pod_set = 'elsewhere'"), "slices"),
    "slice-of-another-replica": (SLICE.format("replica = 7"), "slices"),
    "slice-without-owner": (SLICE.format("workload_id = NULL"), REFUSED),
    "slice-found": (SLICE.format("source = 'external'"), "slices"),
}  # fmt: skip
WAITING: Final = {
    "waits-status-admitted": (WORKLOAD.format("status = 'Admitted'"), "state"),
    "waits-with-a-time": (WORKLOAD.format("quota_reserved_at = now()"), "state"),
    "waits-and-is-charged": (POD_SET.format("""admitted_count = 1, resource_usage = '{"cpu": 1000}'"""), "quota"),
}
"""Statements that corrupt one workload, and the check that finds each."""
ELSEWHERE: Final = {
    "slots": ("UPDATE gpus_device SET used_slots = used_slots + 1 WHERE id = %(device)s", "device-counters"),
    "memory": ("UPDATE gpus_device SET used_memory_mib = 0 WHERE id = %(device)s", "device-counters"),
    "overfull": ("UPDATE gpus_device SET used_memory_mib = 40000 WHERE id = %(device)s", REFUSED),
    "device": ("DELETE FROM gpus_device WHERE id = %(device)s", REFUSED),
}
CORRUPTIONS: Final = {**RUNNING, **WAITING, **ELSEWHERE}


@pytest.fixture
def large() -> Iterator[System]:
    """A system with room for all the workloads."""
    with ServerThread(make_simulated(nodes=NODES)) as server:
        system = System(server)
        make_resource_flavor(system.cluster, "other-flavor")
        make_cluster_queue(system.cluster, "other", {"other-flavor": {"cpu": 1000}}, local_queue="other")
        FlavorQuota.objects.update(nominal_quota=ROOM)
        yield system


class AllProcesses:
    """The leader, which runs beside the auditor and recovers from errors."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._recovery = Recovery(
            system.cluster, lambda aside: Engine(system.cluster, "test", clock=system.now, aside=aside)
        )

    def turn(self, seconds: float = 1.0) -> None:
        for _ in range(3):
            self._recovery.run()
        for _ in range(2):
            self._system.push()
        self._system.advance(seconds)
        self._system.push()
        self._system.watcher.resync()
        self._recovery.run()


def corrupt(statement: str, **keys: int) -> bool:
    """Whether the database takes it, as any client of it may write."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL application_name = 'psql'")
            cursor.execute(statement, keys)
            assert cursor.rowcount > 0
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except DatabaseError:
        return False
    return True


def told_of(name: str) -> set[str]:
    """The checks that tell of a workload, by its name."""
    findings = AuditFinding.objects.filter(confirmed=True)
    return {found.check_name for found in findings if name in f"{found.subject} {found.message}"}


def start_all(system: System, processes: AllProcesses) -> dict[str, int]:
    """One workload for each corruption, as it must be before: name -> row id."""
    for name in RUNNING:
        system.submit(gpu_job(name, mib=2000, cores=2, run_seconds=100_000))
    for name in WAITING:
        system.submit(gpu_job(name, mib=30_000_000, run_seconds=100_000))
    for _ in range(6):
        processes.turn(3.0)
    keys = dict(Workload.objects.values_list("job__name", "pk"))
    for names, status in ((RUNNING, "Admitted"), (WAITING, "Pending")):
        assert {Workload.objects.get(pk=keys[name]).status for name in names} == {status}
    return keys


def is_mended(pk: int, logged: str) -> bool:
    """Whether a waiting workload waits as before, and a line tells that it was put right."""
    row = Workload.objects.get(pk=pk)
    waits = (row.status, row.quota_reserved_at) == ("Pending", None)
    charged = PodSet.objects.filter(workload=row, admitted_count__isnull=False).exists()
    told = row.name in logged or AuditRecord.objects.filter(name=row.name, after__has_key="status").exists()
    return waits and not charged and told


def test_no_corruption_is_silent(large: System, caplog: pytest.LogCaptureFixture) -> None:
    processes = AllProcesses(large)
    keys = start_all(large, processes)
    assert audit(large.cluster, large.client, later()) == []
    device = Device.objects.exclude(used_slots=0).order_by("-pk")[0].pk
    outcomes: dict[str, set[str]] = {}
    for name, (statement, _) in CORRUPTIONS.items():
        refused = not corrupt(statement, workload=keys.get(name, 0), device=device)
        outcomes[name] = {REFUSED} if refused else set()
    now = later()
    end = now + MINUTE
    while now <= end:
        processes.turn()
        audit_and_heal(large.cluster, large.client, now)
        for name, found in outcomes.items():
            found |= told_of("" if name in ELSEWHERE else name)
        now += AUDIT_EVERY
    for name in WAITING:
        if is_mended(keys[name], caplog.text):
            outcomes[name].add(MENDED)
    silent = {name: found for name, found in outcomes.items() if not found & {CORRUPTIONS[name][1], MENDED}}
    assert silent == {}


def test_a_busy_healthy_installation_is_never_told_of(large: System) -> None:
    chance = random.Random(1)
    FlavorQuota.objects.filter(resource="cpu").update(nominal_quota=20_000)
    processes = AllProcesses(large)
    now, reclaimed = later(), 0
    for turn in range(24):
        for number in range(chance.randint(0, 5)):
            # Of three pods two run at a time: the place of one is reclaimed when two have ended.
            pods = chance.choice([{}, {"parallelism": 2, "completions": 3}])
            large.submit(gpu_job(f"job-{turn}-{number}", run_seconds=chance.choice([1, 5, 60]), **pods))
        unfinished = list(Workload.objects.exclude(status="Finished").values_list("namespace", "name"))
        if unfinished:
            cancel(large.cluster, [chance.choice(unfinished)], actor="alice")
            change_priority(large.cluster, [chance.choice(unfinished)], chance.randint(0, 9), actor="alice")
            requeue(large.cluster, [chance.choice(unfinished)], actor="alice")
            held = [chance.choice(unfinished)]
            hold(large.cluster, held, actor="alice")
            release(large.cluster, held, actor="alice")
        processes.turn(chance.choice([1.0, 5.0, 20.0]))
        assert [str(found) for found in audit_and_heal(large.cluster, large.client, now)] == []
        reclaimed += PodSet.objects.filter(reclaimable_count__gt=0).exclude(workload__status="Finished").count()
        now += AUDIT_EVERY
    assert reclaimed
    assert DeviceAllocation.objects.exists()
