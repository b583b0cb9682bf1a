"""Pods, their logs, nodes and events in Kubernetes' wire format."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Role, RoleBinding
from clusters.api.pod_views import FOLLOW_HEADER
from clusters.pod_logs import LogQuery
from gpus.models import Node
from kueueweb.wire.observed import event_objects
from queues.models import Job, Pod, Workload, WorkloadEvent
from tests.clusters.system import System, gpu_job
from tests.kueueweb.wire.conftest import TABLE, client_for, names
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

PODS: Final = "/api/v1/namespaces/team/pods"
EVENTS: Final = "/api/v1/namespaces/team/events"


@pytest.fixture
def system() -> Iterator[System]:
    with ServerThread(make_simulated()) as server:
        yield System(server)


@pytest.fixture
def dora(system: System) -> APIClient:
    """A viewer of the namespace `team`."""
    RoleBinding.objects.create(username="dora", role=Role.VIEWER, namespace="team")
    return client_for("dora")


@pytest.fixture
def erin(system: System) -> APIClient:
    """An admin of another namespace."""
    RoleBinding.objects.create(username="erin", role=Role.ADMIN, namespace="others")
    return client_for("erin")


def run(system: System, **job: Any) -> None:
    """A job of two pods that run."""
    system.submit(gpu_job(parallelism=2, completions=2, run_seconds=1000, **job))
    for _ in range(2):
        system.turn()


def cells(client: APIClient, path: str, **query: str) -> list[dict[str, Any]]:
    """The rows of a table, by the names of its columns."""
    table = client.get(path, query, headers={"Accept": TABLE}).json()
    columns = [column["name"] for column in table["columnDefinitions"]]
    return [dict(zip(columns, row["cells"], strict=True)) for row in table["rows"]]


def test_pods_are_their_template_with_the_state_that_the_cluster_reports(system: System, dora: APIClient) -> None:
    run(system)
    first, second = dora.get(PODS).json()["items"]
    assert [first["metadata"]["name"], second["metadata"]["name"]] == sorted(Pod.objects.values_list("name", flat=True))
    assert (first["spec"]["nodeName"], first["status"]["phase"]) == (Pod.objects.earliest("name").node_name, "Running")
    assert [each["name"] for each in first["spec"]["containers"]] == ["main"]
    assert first["metadata"]["creationTimestamp"] <= first["status"]["startTime"]
    table = cells(dora, PODS)
    assert [(row["Ready"], row["Status"], row["Restarts"]) for row in table] == [("1/1", "Running", 0)] * 2
    assert table[0]["Age"] != "<unknown>"
    one = dora.get(f"{PODS}/{first['metadata']['name']}").json()
    assert one == {**first, "metadata": one["metadata"]}


def test_pods_are_selected_by_job_node_and_phase(system: System, dora: APIClient) -> None:
    run(system)
    workload = Workload.objects.get()
    assert workload.job is not None
    everything = sorted(Pod.objects.values_list("name", flat=True))
    node = Pod.objects.earliest("name").node_name
    assert names(dora.get(PODS, {"labelSelector": f"batch.kubernetes.io/job-name={workload.job.name}"})) == everything
    assert names(dora.get(PODS, {"labelSelector": "job-name=another"})) == []
    on_node = sorted(Pod.objects.filter(node_name=node).values_list("name", flat=True))
    assert names(dora.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})) == on_node
    assert names(dora.get(PODS, {"fieldSelector": "status.phase=Running"})) == everything
    assert names(dora.get(PODS, {"fieldSelector": "status.phase!=Running"})) == []


def test_the_selector_of_a_job_selects_its_pods_and_is_not_stored(system: System, dora: APIClient) -> None:
    run(system)
    submitter = RoleBinding.objects.create(username="sam", role=Role.ADMIN, namespace="team").username
    sam, row = client_for(submitter), Job.objects.get()
    url = f"/apis/batch/v1/namespaces/team/jobs/{row.name}"
    there = sam.get(url).json()
    [(label, uid)] = there["spec"]["selector"]["matchLabels"].items()
    found = dora.get(PODS, {"labelSelector": f"{label}={uid}"})
    assert names(found) == sorted(Pod.objects.values_list("name", flat=True))
    stored = {name: value for name, value in row.manifest["spec"].items() if name != "selector"}
    changed = {**there, "metadata": {**there["metadata"], "labels": {**there["metadata"]["labels"], "team": "a"}}}
    assert sam.put(url, changed, format="json").status_code == 200
    row.refresh_from_db()
    assert row.manifest["metadata"]["labels"]["team"] == "a"
    assert row.manifest["spec"] == stored


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"phase": "Pending", "ready": False, "reason": "ImagePullBackOff"}, "ImagePullBackOff"),
        ({"phase": "Pending", "ready": False, "reason": "Unschedulable"}, "Pending"),
        ({"phase": "Succeeded", "ready": False, "reason": "Completed"}, "Completed"),
        ({"terminating": True}, "Terminating"),
    ],
)
def test_the_word_for_a_pod_is_kubectls(system: System, dora: APIClient, values: dict[str, Any], status: str) -> None:
    run(system)
    Pod.objects.update(**values)
    assert {row["Status"] for row in cells(dora, PODS)} == {status}


def test_a_pod_that_moved_to_the_next_workload_is_listed_once(system: System, dora: APIClient) -> None:
    run(system)
    pod = Pod.objects.latest("name")
    workload = Workload.objects.get()
    job, workload.job, workload.pk, workload.name = workload.job, None, None, "later"
    workload.uid = "7e1f8c1e-1111-4c5e-9f5e-000000000001"
    workload.save(force_insert=True)
    Pod.objects.create(
        workload=workload, pod_set=pod.pod_set, replica=0, namespace="team", name=pod.name, uid=pod.uid, phase="Failed"
    )
    assert job is not None
    found = {item["metadata"]["name"]: item["status"]["phase"] for item in dora.get(PODS).json()["items"]}
    assert len(found) == 2
    assert found[pod.name] == "Failed"


def test_logs(system: System, dora: APIClient, erin: APIClient) -> None:
    run(system)
    system.advance(30)
    log = f"{PODS}/{Pod.objects.earliest('name').name}/log"
    answer = dora.get(log)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    lines = answer.content.decode().splitlines()
    assert lines[0].startswith("starting app on node-")
    assert dora.get(f"{log}?tailLines=1").content.decode().splitlines() == lines[-1:]
    assert dora.get(f"{log}?limitBytes=8").content == b"starting"
    stamped = dora.get(f"{log}?timestamps=true").content.decode().splitlines()
    since = stamped[1].partition(" ")[0]
    assert dora.get(log, {"sinceTime": since}).content.decode().splitlines() == lines[1:]
    followed = LogQuery.decoded(dora.get(f"{log}?follow=true&tailLines=3").headers[FOLLOW_HEADER])
    assert (followed.namespace, followed.tail) == ("team", 3)
    for query in ("", "?follow=true"):
        assert erin.get(log + query).status_code == 403
    never_restarted = dora.get(f"{log}?previous=true")
    assert (never_restarted.status_code, "previous terminated container" in never_restarted.json()["message"]) == (
        400,
        True,
    )
    for query in ("tailLines=-1", "sinceTime=yesterday", "sinceSeconds=x", "follow=perhaps", "previous=perhaps",
        "insecureSkipTLSVerifyBackend=true", "tailLines=100001", "container=..", "container=" + 64 * "x",
    ):  # fmt: skip
        refused = dora.get(f"{log}?{query}")
        assert (refused.status_code, refused.json()["kind"]) == (400, "Status"), query
    assert dora.get(f"{PODS}/none/log").status_code == 404


def test_events_of_a_workload_as_kubectl_describe_asks_for_them(system: System, dora: APIClient) -> None:
    run(system)
    WorkloadEvent.objects.update(at=timezone.now())
    workload = Workload.objects.get()
    WorkloadEvent.objects.create(
        cluster=workload.cluster, workload_uid="7e1f8c1e-1111-4c5e-9f5e-000000000001", namespace="team",
        workload_name="another", at=timezone.now(), reason="Other",
    )  # fmt: skip
    selector = (
        f"involvedObject.name={workload.name},involvedObject.namespace=team,involvedObject.kind=Workload,"
        f"involvedObject.uid={workload.uid}"
    )
    items = dora.get(EVENTS, {"fieldSelector": selector}).json()["items"]
    reasons = list(WorkloadEvent.objects.filter(workload_uid=workload.uid).values_list("reason", flat=True))
    assert [item["reason"] for item in items] == reasons
    assert "QuotaReserved" in reasons
    assert items[0]["involvedObject"]["name"] == workload.name
    assert dora.get(f"{EVENTS}/{items[0]['metadata']['name']}").json()["reason"] == reasons[0]
    assert names(dora.get(EVENTS, {"fieldSelector": "involvedObject.kind=Job"})) == []
    assert names(dora.get(EVENTS, {"fieldSelector": "involvedObject.uid=no-uid"})) == []
    assert names(dora.get(EVENTS, {"labelSelector": "app=x"})) == []
    assert len(names(dora.get(EVENTS, {"fieldSelector": "reason=Other"}))) == 1
    assert {row["Object"] for row in cells(dora, EVENTS)} == {f"workload/{workload.name}", "workload/another"}


def test_lists_of_events_are_bounded(system: System, dora: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run(system)
    WorkloadEvent.objects.update(at=timezone.now())
    newest = list(WorkloadEvent.objects.order_by("-id").values_list("id", flat=True))
    monkeypatch.setattr(event_objects, "MAX_EVENTS", 2)
    for others in ("involvedObject.name!=x", "involvedObject.uid!=x", "metadata.name!=x", "involvedObject.name="):
        assert len(names(dora.get(EVENTS, {"fieldSelector": others}))) <= 2, others
    for missing in ("x", "x.zzzzzzzzzzzzzzzz", "x.ffffffffffffffff", f"x.{newest[0]:016x}"):
        assert dora.get(f"{EVENTS}/{missing}").status_code == 404, missing
    found = names(dora.get(EVENTS))
    assert [int(name.rpartition(".")[2], 16) for name in found] == sorted(newest[:2])
    WorkloadEvent.objects.filter(id=newest[0]).update(at=timezone.now() - timedelta(hours=2))
    assert len(names(dora.get(EVENTS))) == 1
    about = {"fieldSelector": f"involvedObject.name={Workload.objects.get().name}"}
    assert len(names(dora.get(EVENTS, about))) == len(newest)
    assert len(names(dora.get("/api/v1/events", about))) == 1, "only a namespace and a name are one workload"
    assert len(names(dora.get(EVENTS, {"fieldSelector": "involvedObject.name=gone"}))) == 0
    first = dora.get(EVENTS, {**about, "limit": "2"}).json()
    rest = dora.get(EVENTS, {**about, "continue": first["metadata"]["continue"]}).json()
    assert len(first["items"]) == 2
    assert len(first["items"]) + len(rest["items"]) == len(newest)
    foreign = dora.get(PODS, {"continue": first["metadata"]["continue"]})
    assert (foreign.status_code, foreign.json()["reason"]) == (410, "Expired")


def test_nodes(system: System, dora: APIClient, erin: APIClient) -> None:
    system.watcher.resync()
    assert names(dora.get("/api/v1/nodes")) == names(erin.get("/api/v1/nodes")) == ["node-01", "node-02"]
    row = Node.objects.get(name="node-01")
    item = dora.get("/api/v1/nodes/node-01").json()
    assert item["metadata"]["uid"] == row.uid
    assert item["status"]["allocatable"]["cpu"]
    assert row.annotations
    assert "annotations" not in item["metadata"]
    Node.objects.filter(name="node-01").update(cordoned=True, uid="")
    states = [row["Status"] for row in cells(dora, "/api/v1/nodes")]
    assert states == ["Ready,SchedulingDisabled", "Ready"]
    assert dora.get("/api/v1/nodes/node-01").json()["metadata"]["uid"] == f"node-{row.pk}"


def test_the_cluster_alone_writes_them(system: System, dora: APIClient) -> None:
    RoleBinding.objects.create(username="dora", role=Role.ADMIN, namespace="")
    run(system)
    pod = f"{PODS}/{Pod.objects.earliest('name').name}"
    for method, path in (
        ("post", PODS), ("delete", PODS), ("delete", pod), ("patch", pod), ("put", pod), ("post", "/api/v1/nodes"),
        ("patch", "/api/v1/nodes/node-01"), ("delete", EVENTS),
    ):  # fmt: skip
        answer = getattr(dora, method)(path, {}, format="json")
        assert (answer.status_code, answer.json()["reason"]) == (405, "MethodNotAllowed"), (method, path)
    assert Pod.objects.count() == 2
