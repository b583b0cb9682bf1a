"""A backup restored into an empty database, as docs/operations.md says: scheduling goes on where the cluster is."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from clusters.audit.auditor import audit
from clusters.sync.watcher import Watcher
from gpus.models import DeviceAllocation
from queues.models import ClusterQueue, Workload
from scheduler.leader.engine import Engine
from tests.clusters.system import System, gpu_job
from tests.databases import new_database, postgres_tool

pytestmark = pytest.mark.django_db(transaction=True)


def statuses() -> dict[str, str]:
    return dict(Workload.objects.exclude(job=None).order_by("job__name").values_list("job__name", "status"))


def turns(system: System, count: int) -> None:
    for _ in range(count):
        system.turn()


def test_scheduling_goes_on_from_a_backup(system: System, tmp_path: Path) -> None:
    """`first` runs all the time, `second` ends after the backup, `third` and `fourth` are made after it."""
    system.apply(gpu_job("first", run_seconds=3600))
    system.apply(gpu_job("second", run_seconds=25))
    turns(system, 3)
    assert statuses() == {"first": "Admitted", "second": "Admitted"}
    dump = tmp_path / "kueueweb.dump"
    postgres_tool("pg_dump", "--format", "custom", "--file", str(dump), str(connection.settings_dict["NAME"]))
    second = system.workload("second")
    system.apply(gpu_job("third", run_seconds=3600))
    turns(system, 8)
    assert statuses() == {"first": "Admitted", "second": "Finished", "third": "Admitted"}

    with new_database("restored") as database:
        postgres_tool("pg_restore", "--clean", "--if-exists", "--no-owner", "--dbname", database, str(dump))
        call_command("migrate", verbosity=0)
        assert statuses() == {"first": "Admitted", "second": "Admitted"}
        assert system.workload("second").uid == second.uid
        system.watcher = Watcher(system.cluster, system.client, clock=system.now)
        system.engine = Engine(system.cluster, "after the restore", clock=system.now)
        system.watcher.resync()
        turns(system, 4)
        assert statuses() == {"first": "Admitted", "second": "Finished", "third": "Admitted"}
        system.apply(gpu_job("fourth", run_seconds=3600))
        turns(system, 3)
        assert statuses()["fourth"] == "Admitted"
        assert DeviceAllocation.objects.count() == 3
        assert ClusterQueue.objects.get().name == "main"
        assert audit(system.cluster, system.client, system.moment()) == []
        assert sorted(pod["status"]["phase"] for pod in system.pods()) == ["Running"] * 3 + ["Succeeded"]
