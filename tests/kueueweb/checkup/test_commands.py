"""`manage.py doctor` and `manage.py preflight` on rows and servers of the tests, and on settings that are refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.models import AuditFinding, Cluster
from foundation.heartbeat import SILENT_SECONDS, Role, note_failure, note_recovery, touch_heartbeat
from scheduler.models import Lease
from tests.factories import make_workload

ROOT = Path(__file__).resolve().parents[3]


def checkup(command: str, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the findings by check."""
    out = io.StringIO()
    code = 0
    try:
        call_command(command, "-o", "json", *arguments, stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, {each["check"]: each for each in json.loads(out.getvalue())["checks"]}


@pytest.mark.django_db
def test_doctor_names_each_process_that_shows_no_life(cluster: Cluster) -> None:
    code, found = checkup("doctor")
    assert code == 1
    assert {name for name, each in found.items() if name.startswith("process-") and each["status"] == "fail"} == {
        "process-beat", "process-push", "process-scheduler", "process-studio", f"process-watcher/{cluster.name}",
    }  # fmt: skip
    assert found[f"leader/{cluster.name}"]["status"] == "fail"
    assert all(each["remedy"] for each in found.values() if each["status"] != "ok")


@pytest.mark.django_db
def test_doctor_finds_life_where_there_is_some(cluster: Cluster) -> None:
    for role in (Role.BEAT, Role.PUSH, Role.SCHEDULER, Role.STUDIO):
        touch_heartbeat(role)
    touch_heartbeat(Role.WATCHER, cluster.name)
    Lease.objects.create(cluster=cluster, holder="one", epoch=3, acquired_at=timezone.now(), renewed_at=timezone.now())
    _, found = checkup("doctor")
    assert {each["status"] for name, each in found.items() if name.startswith("process-")} == {"ok"}
    assert found[f"leader/{cluster.name}"]["message"] == "one in epoch 3"


@pytest.mark.django_db
def test_doctor_tells_of_a_cluster_that_does_not_answer_the_push(cluster: Cluster) -> None:
    check = f"process-{Role.CLUSTER_PUSH}/{cluster.name}"
    note_failure(Role.CLUSTER_PUSH, cluster.name, SILENT_SECONDS + 1.0)
    assert checkup("doctor")[1][check]["status"] == "fail"
    note_recovery(Role.CLUSTER_PUSH, cluster.name)
    assert check not in checkup("doctor")[1]
    note_failure(Role.CLUSTER_PUSH, cluster.name)
    assert check not in checkup("doctor")[1], "a single failure says little"


@pytest.mark.django_db
def test_doctor_tells_of_refused_decisions_and_of_the_auditor(cluster: Cluster) -> None:
    make_workload(cluster, "refused", push_error="pods is forbidden")
    AuditFinding.objects.create(
        cluster=cluster, check_name="quota", subject="q", message="m", confirmed=True, first_seen_at=timezone.now()
    )
    _, found = checkup("doctor")
    assert found[f"push/{cluster.name}"]["status"] == "warn"
    assert found[f"books/{cluster.name}"]["status"] == "fail"


@pytest.mark.django_db
def test_a_cluster_that_is_not_there_and_one_that_does_not_answer_are_told_of(cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(server_url="http://127.0.0.1:1")
    code, found = checkup("doctor", "--cluster", cluster.name, "--cluster", "elsewhere")
    assert code == 1
    assert found["cluster/elsewhere"]["message"] == "this cluster does not exist"
    assert "does not answer" in found[f"cluster/{cluster.name}"]["message"]


@pytest.mark.django_db
def test_preflight_asks_for_no_process(cluster: Cluster, settings: Any) -> None:
    settings.DEMO = True
    _, found = checkup("preflight")
    assert not [name for name in found if name.startswith(("process-", "leader", "webhook"))]
    assert found["settings-demo"]["status"] == "warn"
    assert {"settings", "database", "redis", f"cluster/{cluster.name}"} <= set(found)


@pytest.mark.parametrize("command", ["doctor", "preflight"])
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SECRET_KEY": "change-me"}, "SECRET_KEY is a placeholder"),
        ({"DATABASE_URL": "nonsense"}, "DATABASE_URL is 'nonsense'"),
        ({"TOKEN_DAYS": "x"}, "TOKEN_DAYS"),
    ],
)
def test_a_setting_that_is_refused_is_a_finding(command: str, variables: dict[str, str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == ""
    [line, count] = done.stdout.splitlines()
    assert line.startswith("fail  settings  ")
    assert words in line
    assert count == "0 ok, 0 warn, 1 fail"
