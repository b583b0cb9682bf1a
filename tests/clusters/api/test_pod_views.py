"""The pods of a workload over REST, and their logs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import Role, RoleBinding
from clusters.api.pod_views import FOLLOW_HEADER
from clusters.api_objects import PODS
from clusters.pod_logs import LogQuery, follow_log
from queues.models import Pod
from tests.api_client import SchemaClient
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import ServerThread, make_simulated
from tests.users import client_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def system() -> Any:
    with ServerThread(make_simulated()) as server:
        yield System(server)


@pytest.fixture
def reader(system: System) -> SchemaClient:
    """Who may look at the namespace `team`, and at nothing else."""
    user = User.objects.create_user("reader")
    RoleBinding.objects.create(username="reader", role=Role.VIEWER, namespace="team")
    return client_of(user)


def pods_url(system: System) -> str:
    return f"/api/v1/workloads/team/{system.workload().name}/pods/"


def run(system: System, manifest: dict[str, Any]) -> None:
    system.submit(manifest)
    for _ in range(2):
        system.turn()


def test_the_pods_of_a_workload(system: System, reader: SchemaClient) -> None:
    run(system, gpu_job(parallelism=2, completions=2, run_seconds=1000))
    answer = reader.get(pods_url(system)).json()
    assert answer["next"] is None
    assert [(each["replica"], each["phase"], each["ready"]) for each in answer["results"]] == [
        (0, "Running", True),
        (1, "Running", True),
    ]
    first = answer["results"][0]
    assert (first["reason"], first["restarts"], first["containers"]) == ("", 0, ["main"])
    assert first["node"].startswith("node-")
    assert first["started_at"] is not None
    [device] = first["devices"]
    assert (device["container"], device["memory_mib"], device["cores_percent"]) == ("main", 4000, 30)
    page = reader.get(f"{pods_url(system)}?limit=1").json()
    rest = reader.get(f"{pods_url(system)}?limit=1&after={page['next']}").json()
    assert [*page["results"], *rest["results"]] == answer["results"]


def test_a_pod_that_ended_holds_no_device(system: System, reader: SchemaClient) -> None:
    run(system, gpu_job(run_seconds=5))
    for _ in range(3):
        system.turn()
    [pod] = reader.get(pods_url(system)).json()["results"]
    assert (pod["phase"], pod["reason"], pod["devices"]) == ("Succeeded", "Completed", [])
    assert pod["finished_at"] >= pod["started_at"]


def test_a_pod_that_no_node_takes_says_why(system: System, reader: SchemaClient) -> None:
    run(system, gpu_job(run_seconds=1000))
    stuck = {"phase": "Pending", "ready": False, "reason": "Unschedulable", "message": "0/2 nodes are available"}
    Pod.objects.update(node_name="", **stuck)
    [pod] = reader.get(pods_url(system)).json()["results"]
    assert (pod["phase"], pod["reason"], pod["message"]) == ("Pending", "Unschedulable", "0/2 nodes are available")
    assert pod["node"] == ""


def test_logs_are_shown_to_users_who_see_the_workload(system: System, reader: SchemaClient) -> None:
    run(system, gpu_job(run_seconds=1000))
    system.advance(30)
    log = f"{pods_url(system)}{Pod.objects.get().name}/log/"
    answer = reader.get(log)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    lines = answer.content.decode().splitlines()
    assert lines[0].startswith("starting app on node-")
    assert reader.get(f"{log}?tail=1").content.decode().splitlines() == lines[-1:]
    stamped = reader.get(f"{log}?timestamps=true").content.decode().splitlines()
    since = stamped[1].partition(" ")[0]
    assert reader.get(log, {"since": since}).content.decode().splitlines() == lines[1:]
    assert "previous terminated container" in str(reader.get(f"{log}?previous=true").json())
    stranger = User.objects.create_user("stranger")
    RoleBinding.objects.create(username="stranger", role=Role.ADMIN, namespace="others")
    for url in (pods_url(system), log, f"{log}?follow=true"):
        assert client_of(stranger).get(url).status_code == 404
        assert SchemaClient().get(url).status_code == 401


def test_another_workload_s_pods_and_strangers_in_the_namespace_are_not_shown(
    system: System, reader: SchemaClient
) -> None:
    """The rights of the web process reach further than a reader's: a log is shown of pods of the workload alone."""
    run(system, gpu_job(run_seconds=1000))
    theirs = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "namespace": "team"}}
    system.client.create(PODS, {**theirs, "spec": {"containers": [{"name": "main", "image": "app"}]}})
    system.watcher.resync()
    for name in ("theirs", "none", ".."):
        assert reader.get(f"{pods_url(system)}{name}/log/").status_code == 404


@pytest.mark.parametrize("query", ["tail=-1", "tail=1000000", "tail=x", "since=yesterday", "follow=perhaps"])
def test_a_query_that_makes_no_sense_is_refused(system: System, reader: SchemaClient, query: str) -> None:
    run(system, gpu_job(run_seconds=1000))
    assert reader.get(f"{pods_url(system)}{Pod.objects.get().name}/log/?{query}").status_code == 400


def test_what_the_cluster_says_against_a_log_is_passed_on(system: System, reader: SchemaClient) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn(0.5)
    log = f"{pods_url(system)}{Pod.objects.get().name}/log/"
    waiting = reader.get(log)
    assert (waiting.status_code, waiting.json()["reason"]) == (400, "Invalid")
    assert "is waiting to start" in waiting.json()["message"]
    system.client.delete(PODS, "team", Pod.objects.get().name)
    system.advance(5)
    assert reader.get(log).status_code == 404
    system.cluster.server_url = "http://127.0.0.1:9"
    system.cluster.save()
    silent = reader.get(log)
    assert (silent.status_code, silent.json()["reason"]) == (503, "Unavailable")


def test_a_followed_log_is_handed_over_to_the_web_process(system: System, reader: SchemaClient) -> None:
    run(system, gpu_job(run_seconds=20))
    name = Pod.objects.get().name
    answer = reader.get(f"{pods_url(system)}{name}/log/?follow=true&tail=3")
    query = LogQuery.decoded(answer.headers[FOLLOW_HEADER])
    assert (query.namespace, query.pod, query.tail, answer.content) == ("team", name, 3, b"")
    system.advance(60)
    lines = b"".join(follow_log(query, lambda close: None)).decode().splitlines()
    assert (len(lines), lines[-1]) == (3, "finished, exit code 0")
