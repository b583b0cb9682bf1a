"""What the settings promise to commands and workers."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from kueueweb.celery import app

ROOT = Path(__file__).resolve().parents[2]


def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A management command in an environment that has nothing of ours."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_command_that_needs_no_database_runs_without_one() -> None:
    done = manage("check")
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_one_says_which_variable_is_missing() -> None:
    done = manage("migrate")
    assert done.returncode != 0
    assert "DATABASE_URL is not set" in done.stderr


def test_a_bad_value_stops_a_process_at_its_start() -> None:
    environment = {"PATH": os.environ["PATH"], "LOG_LEVEL": "LOUD"}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "LOG_LEVEL is 'LOUD', but should be one of" in done.stderr


def test_only_the_schedulers_task_goes_to_its_queue() -> None:
    router = app.amqp.router
    queues = {
        name: router.route({}, name)["queue"].name
        for name in ("scheduler.tasks.run_cycles", "clusters.tasks.push_cluster")
    }
    assert queues == {"scheduler.tasks.run_cycles": "scheduler", "clusters.tasks.push_cluster": "push"}


def test_ticks_do_not_pile_up() -> None:
    app.loader.import_default_modules()
    schedule: dict[str, dict[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    for entry in schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]
        assert entry["task"] in app.tasks


def test_accounts_with_public_passwords_exist_in_the_demo_only() -> None:
    assert not settings.DEMO
    assert settings.DEMO_ACCOUNTS == []


@pytest.mark.django_db
def test_pages_may_load_only_from_here(client: Client) -> None:
    for path in ("/", "/admin/login/", "/api/v1/session/"):
        policy = client.get(path).headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe-eval" not in policy
