"""`job-flows/`: the flows of jobs that start after each other, and their state."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from queues.models import Job, Workload
from queues.services.flows.start_gates import open_start_gates
from queues.services.workloads import record_finished
from tests.api_client import SchemaClient
from tests.factories import START

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/api/v1/job-flows/"
FLOW = """
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: nightly, namespace: team-a}
spec: {flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}
"""
TEMPLATE = """
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: %s, namespace: team-a}
spec:
  queue: main
  tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: main, image: busybox}]}}}]
"""


@pytest.fixture
def flow(cluster: Cluster) -> None:
    apply_manifests(cluster, FLOW + TEMPLATE % "a" + TEMPLATE % "b", user=None)


@pytest.mark.usefixtures("flow")
def test_a_flow_has_the_lists_of_its_jobs(cluster: Cluster, bob: SchemaClient) -> None:
    (shown,) = bob.get(ADDRESS).json()["results"]
    assert (shown["namespace"], shown["name"], shown["phase"]) == ("team-a", "nightly", "Pending")
    assert (shown["pending_jobs"], shown["waiting_jobs"]) == (["nightly-a"], ["nightly-b"])
    assert [(job["kind"], job["after"], job["finished_at"]) for job in shown["jobs"]] == [
        ("Job", [], None), ("Job", ["nightly-a"], None),
    ]  # fmt: skip
    name = Workload.objects.get(job__name="nightly-a").name
    record_finished(cluster, [("team-a", name)], now=START)
    (shown,) = bob.get(ADDRESS).json()["results"]
    assert (shown["phase"], shown["completed_jobs"], shown["job_retain_policy"]) == ("Running", ["nightly-a"], "retain")


@pytest.mark.usefixtures("flow")
def test_flows_are_filtered_by_namespace_and_name(alice: SchemaClient) -> None:
    for query, number in (
        ("?namespace=team-a", 1), ("?namespace=team-b", 0), ("?name=nightly", 1), ("?name=weekly", 0),
        ("?search=IGHT", 1), ("?search=team", 0),
        ("?namespace=team-b,team-a", 1), ("?name=weekly,nightly", 1), ("?namespace=team-b,team-c", 0),
    ):  # fmt: skip
        assert len(alice.get(ADDRESS + query).json()["results"]) == number


def test_flows_are_listed_by_pages(cluster: Cluster, alice: SchemaClient) -> None:
    for name in ("c", "a", "b"):
        apply_manifests(cluster, FLOW.replace("nightly", name) + TEMPLATE % "a" + TEMPLATE % "b", user=None)
    Job.objects.filter(name="c-b").update(labels={"volcano.sh/createdByJobFlow": "other.c"})  # of no flow
    first = alice.get(f"{ADDRESS}?limit=2&total=true").json()
    assert ([flow["name"] for flow in first["results"]], first["total"]) == (["a", "b"], 3)
    rest = alice.get(f"{ADDRESS}?limit=2&after={first['next']}").json()
    assert ([flow["name"] for flow in rest["results"]], rest["next"]) == (["c"], None)
    assert [job["name"] for job in rest["results"][0]["jobs"]] == ["c-a"]
    assert alice.get(f"{ADDRESS}?after=x").status_code == 400


@pytest.mark.usefixtures("flow")
def test_a_job_of_a_flow_names_its_workload_and_the_jobs_that_are_left(cluster: Cluster, bob: SchemaClient) -> None:
    before, after = bob.get(ADDRESS).json()["results"][0]["jobs"]
    row = Workload.objects.get(job__name="nightly-b")
    assert (after["workload"], after["local_queue"], after["waits_for"]) == (row.name, "main", ["nightly-a"])
    assert before["waits_for"] == []
    record_finished(cluster, [("team-a", before["workload"])], now=START)
    open_start_gates(cluster, START)
    (_, after) = bob.get(ADDRESS).json()["results"][0]["jobs"]
    assert (after["after"], after["waits_for"]) == (["nightly-a"], [])


@pytest.mark.usefixtures("flow")
def test_another_tenant_sees_no_flow(charlie: SchemaClient) -> None:
    assert charlie.get(ADDRESS).json()["results"] == []
    assert charlie.get(f"{ADDRESS}?namespace=team-a").json()["results"] == []
