"""The heartbeat of a cluster's API server: answers count, refusals and silence do not."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from django.db import connection

from clusters.api_server_heartbeat import ApiServerHeartbeat
from clusters.client import connect
from clusters.sync.watcher import Watcher
from foundation.heartbeat import Role, is_alive, role_health
from foundation.redis_client import redis_client
from tests.acceptance.processes import wait_for
from tests.clusters.system import System

pytestmark = pytest.mark.django_db(transaction=True)
DAYS = 3 * 24 * 3600.0


@pytest.fixture(autouse=True)
def no_heartbeats() -> None:
    redis_client().delete("kueueweb:heartbeats")


def test_a_server_that_answers_is_alive_and_one_that_refuses_is_not(system: System) -> None:
    name = system.cluster.name
    heartbeat = ApiServerHeartbeat(name, system.client)
    for code in (500, 429, 410):
        system.chaos(refusal=code)
        heartbeat.ask()
        assert not is_alive(Role.API_SERVER, name), code
    system.chaos(refusal=0)
    heartbeat.ask()
    assert is_alive(Role.API_SERVER, name)
    [later] = [each for each in role_health([name], time.time() + DAYS) if each.role == Role.API_SERVER]
    assert not later.alive, "and it is not forgotten"


def test_a_server_that_answers_nothing_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = connect(f"http://127.0.0.1:{listening.getsockname()[1]}", read_only=True)
        ApiServerHeartbeat("default", client, timeout_seconds=0.2).ask()
    assert not is_alive(Role.API_SERVER, "default")


def test_a_watcher_asks_its_server(system: System) -> None:
    stopped = threading.Event()

    def run() -> None:
        Watcher(system.cluster, system.client).run(stopped)
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_for("an answer of the API server", lambda: is_alive(Role.API_SERVER, system.cluster.name))
    finally:
        stopped.set()
        thread.join()
