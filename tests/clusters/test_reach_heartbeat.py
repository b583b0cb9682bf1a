"""Heartbeats of a cluster's API server and webhook: answers count, refusals and silence do not."""

from __future__ import annotations

import socket
import threading
import time
from functools import partial

import pytest
from django.db import InterfaceError, connection

from clusters.client_credentials import connect
from clusters.push.sweep import push_pending
from clusters.reach_heartbeat import ReachHeartbeat, reach_servers
from clusters.sync.watcher import Watcher
from foundation.heartbeat import HEARTBEAT_SECONDS, SILENT_SECONDS, Role, is_alive, role_health
from foundation.redis_client import redis_client
from tests.acceptance.processes import wait_for
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)
DAYS = 3 * 24 * 3600.0


@pytest.fixture(autouse=True)
def no_heartbeats() -> None:
    redis_client().delete("kueueweb:heartbeats", "kueueweb:failing")


def test_a_server_that_answers_is_alive_and_one_that_refuses_is_not(system: System) -> None:
    name = system.cluster.name
    heartbeat = ReachHeartbeat(Role.API_SERVER, name, lambda: system.client.ping(HEARTBEAT_SECONDS))
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
        ReachHeartbeat(Role.API_SERVER, "default", lambda: client.ping(0.2)).ask()
    assert not is_alive(Role.API_SERVER, "default")


def test_a_push_that_its_cluster_refuses_is_shown_until_it_succeeds(system: System) -> None:
    name = system.cluster.name

    def shown(after_seconds: float = SILENT_SECONDS + 1.0) -> list[bool]:
        found = role_health([name], time.time() + after_seconds)
        return [each.alive for each in found if each.role == Role.CLUSTER_PUSH]

    system.submit(gpu_job())
    system.engine.run()
    system.chaos(refusal=500)
    push_pending(system.cluster, system.client)
    assert (shown(0.0), shown(), shown(DAYS)) == ([True], [False], [False])
    [before] = [each for each in role_health([name], time.time()) if each.role == Role.CLUSTER_PUSH]
    push_pending(system.cluster, system.client)
    [after] = [each for each in role_health([name], time.time()) if each.role == Role.CLUSTER_PUSH]
    assert after.last_seen_at == before.last_seen_at, "it lasts since then"
    system.chaos(refusal=0)
    push_pending(system.cluster, system.client)
    assert shown() == []


def test_a_webhook_lives_while_the_database_and_the_api_server_answer_it(system: System) -> None:
    name = system.cluster.name
    heartbeat = ReachHeartbeat(Role.WEBHOOK, name, partial(reach_servers, system.cluster, system.client))

    def lives() -> bool:
        redis_client().delete("kueueweb:heartbeats", "kueueweb:failing")
        heartbeat.ask()
        return is_alive(Role.WEBHOOK, name)

    assert lives()
    system.chaos(refusal=500)
    assert not lives()
    system.chaos(refusal=0)
    assert lives()
    connection.close()
    right = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = "/nowhere"
    try:
        assert not lives()
    finally:
        connection.settings_dict["HOST"] = right
    assert lives()


def test_a_webhook_whose_connection_broke_while_it_asked_is_silent_and_asks_again(system: System) -> None:
    """Django has errors of the connection that are no DatabaseError. One of these ended the thread."""

    def ask_on_a_closed_cursor() -> None:
        with connection.cursor() as cursor:
            cursor.close()
            cursor.execute("SELECT 1")

    with pytest.raises(InterfaceError):
        ask_on_a_closed_cursor()
    ReachHeartbeat(Role.WEBHOOK, system.cluster.name, ask_on_a_closed_cursor).ask()
    assert not is_alive(Role.WEBHOOK, system.cluster.name)


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
