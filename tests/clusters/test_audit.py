"""The auditor: each rule of the books is seen broken, told of when it stays so, and put right where that is safe."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db.models import F

from accounts.models import AuditFinding
from clusters.api_objects import PODS
from clusters.audit.auditor import audit, audit_and_heal
from gpus.api.reads import drifts
from gpus.models import Device, DeviceAllocation
from queues.models import Job, Pod, PodSet, Workload
from tests.cluster_kinds import DEPLOYMENTS
from tests.clusters.system import System, deployment, gpu_job
from tests.simulated_cluster import pod

pytestmark = pytest.mark.django_db(transaction=True)


def later() -> datetime:
    """A time at which nothing is too young to be judged."""
    return datetime.now(UTC) + timedelta(hours=1)


MINUTE = timedelta(minutes=1)


@pytest.fixture
def running(system: System) -> System:
    system.submit(gpu_job(run_seconds=10_000))
    for _ in range(2):
        system.turn()
    assert [each["status"]["phase"] for each in system.pods()] == ["Running"]
    return system


def wrong(system: System) -> set[str]:
    return {violation.check.value for violation in audit(system.cluster, system.client, later())}


def without_quota(system: System) -> None:
    PodSet.objects.update(admitted_count=None, flavors={}, resource_usage={})


def miscounted(system: System) -> None:
    first = Device.objects.order_by("pk")[0]
    Device.objects.filter(pk=first.pk).update(used_memory_mib=F("used_memory_mib") + 1)


def unowned(system: System) -> None:
    held = DeviceAllocation.objects.get()
    row = Workload.objects.create(
        cluster=system.cluster,
        namespace="team",
        name="ended",
        status="Finished",
        created_at=later(),
        finished_at=later(),
    )
    held.pk, held.workload = None, row
    held.save()
    Device.objects.filter(pk=held.device_id or 0).update(used_slots=2, used_memory_mib=8000, used_cores_percent=60)


def untold(system: System) -> None:
    Workload.objects.update(push_sequence=F("push_sequence") + 1)


def stray_pod(system: System) -> None:
    stray = pod("stray")
    stray["metadata"]["labels"] = {"kueueweb.io/managed": "true", "kueueweb.io/job-uid": str(system.workload().uid)}
    system.client.create(PODS, stray)


def told_ahead(system: System) -> None:
    Workload.objects.update(pushed_sequence=F("push_sequence") + 1_000_000)


def without_its_queue(system: System) -> None:
    Workload.objects.update(cluster_queue_name="no-such-queue")


def without_its_flavor(system: System) -> None:
    PodSet.objects.update(flavors={"cpu": "no-such-flavor"})


def of_another_device(system: System) -> None:
    """As an update by hand leaves it: the counters are right, the device's name is not."""
    DeviceAllocation.objects.update(device_uuid="GPU-elsewhere")


BREAKS: list[tuple[Callable[[System], None], set[str], bool]] = [
    (without_quota, {"quota"}, False),
    (miscounted, {"device-counters"}, True),
    (unowned, {"slices"}, True),
    (untold, {"told"}, True),
    (stray_pod, {"pods"}, False),
    (told_ahead, {"told"}, True),
    (without_its_queue, {"references", "usage"}, False),
    (without_its_flavor, {"references", "usage"}, False),
    (of_another_device, {"slices"}, False),
]


@pytest.mark.parametrize(("break_it", "checks", "heals"), BREAKS, ids=[breaks.__name__ for breaks, _, _ in BREAKS])
def test_a_broken_rule_is_seen_and_put_right_where_that_is_safe(
    running: System, break_it: Callable[[System], None], checks: set[str], heals: bool
) -> None:
    assert wrong(running) == set()
    break_it(running)
    assert wrong(running) == checks
    assert audit_and_heal(running.cluster, running.client, later()) == [], "it may be on its way"
    assert not [drift for drift in drifts(running.cluster.pk) if drift.kind == "inconsistent"]
    found = audit_and_heal(running.cluster, running.client, later() + MINUTE)
    assert {each.check_name for each in found} == checks
    assert sorted(drift.message for drift in drifts(running.cluster.pk) if drift.kind == "inconsistent") == sorted(
        f"{each.check_name}: {each.subject}: {each.message}" for each in found
    )
    running.push()
    assert wrong(running) == (set() if heals else checks)
    audit_and_heal(running.cluster, running.client, later() + 2 * MINUTE)
    assert AuditFinding.objects.exists() is not heals


def test_a_workload_whose_job_and_pods_are_gone_ends(system: System) -> None:
    """Rows that an older version left behind are found too."""
    system.apply(deployment(1))
    for _ in range(2):
        system.turn()
    system.client.delete(DEPLOYMENTS, "team", "web")
    system.advance(60)
    Pod.objects.all().delete()
    Job.objects.update(deletion_requested_at=system.moment())
    for minutes in range(2):
        audit_and_heal(system.cluster, system.client, later() + minutes * MINUTE)
    system.engine.run()
    row = system.workload()
    assert (row.status, row.reason) == ("Finished", "OwnerNotFound")
    assert not DeviceAllocation.objects.exists()


def test_the_command_says_what_is_wrong(running: System, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("audit_state", seconds=0)
    assert capsys.readouterr().out == "default: 0 violations\n"
    miscounted(running)
    with pytest.raises(SystemExit, match="1"):
        call_command("audit_state", seconds=0)
    assert "device-counters: " in capsys.readouterr().out
