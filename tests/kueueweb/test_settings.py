"""What the settings promise to commands and workers."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from foundation.wake_ups import SCHEDULE_TASK
from kueueweb.celery import app

ROOT = Path(__file__).resolve().parents[2]


def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A management command in an environment that has nothing of ours."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.django_db
def test_statements_are_not_compiled() -> None:
    """The report of use took more than two seconds on a hundred workloads, nearly all of it in the compiler."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW jit")
        assert cursor.fetchone() == ("off",)


def test_a_command_that_needs_no_database_runs_without_one() -> None:
    done = manage("check")
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_one_says_which_variable_is_missing() -> None:
    done = manage("migrate")
    assert done.returncode != 0
    assert "DATABASE_URL is not set" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_value_stops_a_process_at_its_start() -> None:
    environment = {"PATH": os.environ["PATH"], "LOG_LEVEL": "LOUD"}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "LOG_LEVEL is 'LOUD', but must be one of" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SECRET_KEY", "change-me", "SECRET_KEY is a placeholder or easy to guess"),
        ("SECRET_KEY", "x" * 50, "SECRET_KEY is a placeholder or easy to guess"),
        ("ADMISSION_CHECK_SIGNING_KEY", "short", "ADMISSION_CHECK_SIGNING_KEY is a placeholder"),
        ("DATABASE_URL", "postgresql://kueueweb:change-me@postgres:5432/kueueweb", "The password in DATABASE_URL"),
        ("REDIS_URL", "redis://:change-me@redis:6379/0", "The password in REDIS_URL is a placeholder"),
        ("BEHIND_TLS_PROXY", "true", "TRUSTED_PROXIES is empty"),
        ("BASE_PATH", "kueueweb", "a path such as /kueueweb"),
        ("FRAME_ANCESTORS", "*", "origins such as https://portal.example.org"),
        ("TRUSTED_PROXIES", "the-proxy", "addresses or networks such as 10.0.0.7"),
        ("OIDC_ISSUER", "http://login.company.org", "a URL like https://login.company.org/realms/main"),
        ("OIDC_ISSUER", "https://login.example.com", "OIDC_ISSUER is a placeholder"),
        ("OIDC_ISSUER", "https://login.company.org", "OIDC_CLIENT_ID is not"),
        ("OIDC_CLIENT_SECRET", "change-me", "OIDC_CLIENT_SECRET is a placeholder"),
        ("OIDC_GROUP_ROLES", "ops=admin", "OIDC_ISSUER is not"),
        ("LOCAL_LOGIN", "false", "no user could log in"),
        ("WEBHOOK_TRUSTED_USERS", "system:masters", "service accounts of kueueweb, such as"),
        ("WEBHOOK_TRUSTED_USERS", "kueueweb,system:serviceaccount:kueueweb:*", "service accounts of kueueweb, such as"),
        (
            "WEBHOOK_TRUSTED_USERS",
            "system:serviceaccount:kube-system:job-controller",
            "service accounts of kueueweb, such as",
        ),
    ],
)
def test_a_weak_setting_stops_a_process_at_its_start(variable: str, value: str, says: str) -> None:
    """They were taken in silence."""
    environment = {"PATH": os.environ["PATH"], variable: value}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert says in done.stderr
    if "change-me" in value:
        assert value not in done.stderr


def test_django_has_nothing_to_say_against_a_deployment_behind_a_proxy() -> None:
    """`check --deploy` warned of the key, and that neither HSTS nor a redirect to TLS was on."""
    environment = {
        "PATH": os.environ["PATH"],
        "SECRET_KEY": "a-key-for-one-check-that-is-long-enough-4rk20fjw9s0",
        "BEHIND_TLS_PROXY": "true",
        "TRUSTED_PROXIES": "10.0.0.0/8",
        "ALLOWED_HOSTS": "kueueweb.example.org",
    }
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
    assert SCHEDULE_TASK not in {entry["task"] for entry in schedule.values()}  # a leader ticks without messages


def test_accounts_with_public_passwords_exist_in_the_demo_only() -> None:
    assert not settings.DEMO
    assert settings.DEMO_ACCOUNTS == []


@pytest.mark.django_db
def test_pages_may_load_only_from_here(client: Client) -> None:
    for path in ("/", "/login", "/api/v1/session/"):
        policy = client.get(path).headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe-eval" not in policy
