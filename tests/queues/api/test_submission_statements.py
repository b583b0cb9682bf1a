"""The cost of submitting and of ending workloads, in counts that hold on every machine: a thousand workloads take as
many statements as two, triggers write lines for the request and not for each workload, and each further workload takes
few calls of functions."""

from __future__ import annotations

import cProfile
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import AuditRecord, Cluster
from queues.models import PodSet, Workload
from scheduler.models import Change
from tests import manifest_texts as texts
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue
from tests.users import cluster, make_user

__all__ = ["cluster"]

pytestmark = pytest.mark.django_db

WORKLOADS = 18
"""Statements of a POST of workloads, with the savepoints of the test's transaction."""
JOBS = 27
"""Statements of an apply of Jobs."""
ENDS = 8
"""Statements of a report that workloads have ended, in a request of one piece."""
FEW, MANY = 2, 200
CALLS = 125
"""Calls of functions, of Python and of C, for a further workload in a POST; 235 if each document is read for itself."""
CALLS_OF_ENDS = 100
"""The same for a further workload that ends; twice as many if the body is checked twice."""


@pytest.fixture
def client(cluster: Cluster) -> SchemaClient:
    client = SchemaClient()
    client.force_authenticate(make_user("alice"))
    make_cluster_queue(cluster, "research")
    return client


def workloads(prefix: str, count: int) -> bytes:
    """Of three shapes, with names of their own."""
    return orjson.dumps(
        [
            {
                "namespace": "team-a",
                "name": f"{prefix}-{number}",
                "local_queue": "research-local",
                "pod_sets": [{"count": 1 + number % 3, "requests": {"cpu": "500m"}}],
            }
            for number in range(count)
        ]
    )


def jobs(prefix: str, count: int) -> str:
    return texts.joined(*(texts.job(f"{prefix}-{number}") for number in range(count)))


def cost(client: SchemaClient, url: str, body: Any, kind: str, status: int) -> tuple[int, int]:
    """Statements, and lines of the audit about the objects."""
    before = AuditRecord.objects.filter(kind=kind).count()
    with CaptureQueriesContext(connection) as queries:
        answer = client.post(url, body, content_type=kind_of(body))
    assert answer.status_code == status, answer.json()
    return len(queries), AuditRecord.objects.filter(kind=kind).count() - before


def kind_of(body: bytes | str) -> str:
    return "application/json" if isinstance(body, bytes) else "application/yaml"


def test_a_post_of_many_workloads_costs_the_statements_of_a_few(client: SchemaClient) -> None:
    url = "/api/v1/workloads/"
    cost(client, url, workloads("warm", FEW), "Workload", 201)
    assert cost(client, url, workloads("few", FEW), "Workload", 201) == (WORKLOADS, 1)
    Change.objects.all().delete()
    assert cost(client, url, workloads("many", MANY), "Workload", 201) == (WORKLOADS, 1)
    assert Change.objects.filter(kind="workload").count() == MANY
    assert set(PodSet.objects.filter(workload__name="many-4").values_list("count", "requests__cpu")) == {(2, 500)}


def test_an_apply_of_many_jobs_costs_the_statements_of_a_few(client: SchemaClient) -> None:
    url = "/api/v1/manifests/"
    cost(client, url, jobs("warm", FEW), "Job", 200)
    assert cost(client, url, jobs("few", FEW), "Job", 200) == (JOBS, 1)
    assert cost(client, url, jobs("many", MANY), "Job", 200) == (JOBS, 1)
    assert Workload.objects.filter(job__name__startswith="many-").count() == MANY


def ends(prefix: str, count: int) -> bytes:
    keys = [{"namespace": "team-a", "name": f"{prefix}-{number}"} for number in range(count)]
    return orjson.dumps({"workloads": keys, "reason": "Succeeded", "message": "over"})


def test_the_end_of_many_workloads_costs_the_statements_of_a_few(client: SchemaClient) -> None:
    url = "/api/v1/workloads/finish/"
    for prefix, count in (("warm", FEW), ("few", FEW), ("many", MANY)):
        cost(client, "/api/v1/workloads/", workloads(prefix, count), "Workload", 201)
    Workload.objects.update(quota_reserved_at=timezone.now())
    cost(client, url, ends("warm", FEW), "Workload", 200)
    assert cost(client, url, ends("few", FEW), "Workload", 200) == (ENDS, 1)
    assert cost(client, url, ends("many", MANY), "Workload", 200) == (ENDS, 1)
    assert Workload.objects.filter(status="Finished", name__startswith="many-").count() == MANY


def test_a_further_workload_that_ends_costs_few_calls(cluster: Cluster) -> None:
    client = APIClient()
    client.force_authenticate(make_user("alice"))

    def calls(prefix: str, count: int) -> int:
        client.post("/api/v1/workloads/", workloads(prefix, count), content_type="application/json")
        with cProfile.Profile() as profile:
            answer = client.post("/api/v1/workloads/finish/", ends(prefix, count), content_type="application/json")
        assert len(answer.json()["changed"]) == count
        return sum(entry.callcount for entry in profile.getstats())

    calls("warm", FEW)
    few, many = calls("few", FEW), calls("many", MANY)
    assert (many - few) / (MANY - FEW) <= CALLS_OF_ENDS


def test_a_further_workload_of_a_post_costs_few_calls(cluster: Cluster) -> None:
    client = APIClient()  # it checks no answer against the schema, which costs calls of its own
    client.force_authenticate(make_user("alice"))

    def calls(prefix: str, count: int) -> int:
        body = workloads(prefix, count)
        with cProfile.Profile() as profile:
            assert client.post("/api/v1/workloads/", body, content_type="application/json").status_code == 201
        return sum(entry.callcount for entry in profile.getstats())

    calls("warm", FEW)
    few = calls("few", MANY)
    assert (calls("many", 2 * MANY) - few) / MANY <= CALLS


def test_workloads_that_differ_in_their_names_alone_are_all_stored_as_asked(client: SchemaClient) -> None:
    """Equal documents are read once; a wrong name among them is told with its document's number."""
    like = {"namespace": "team-a", "labels": {"app": "x"}, "pod_sets": [{"requests": {"cpu": "1"}}]}
    other = {**like, "labels": {"app": "y"}}
    body: list[dict[str, Any]] = [
        {**like, "name": "a"}, {**like, "name": "b"}, {**other, "name": "c"}, {**like, "generate_name": "d-"},
        {**like, "generate_name": "d-"},
    ]  # fmt: skip
    answer = client.post("/api/v1/workloads/", body, format="json")
    assert answer.status_code == 201, answer.json()
    stored = Workload.objects.order_by("pk").values_list("name", "labels__app")
    assert [(name[:2], app) for name, app in stored] == [("a", "x"), ("b", "x"), ("c", "y"), ("d-", "x"), ("d-", "x")]
    wrong = [{**like, "name": "e"}, {**like, "name": "E!"}, {**like, "name": 7}, like, {**like, "name": "a"}]
    answer = client.post("/api/v1/workloads/", wrong, format="json")
    assert answer.status_code == 400
    assert [each["document"] for each in answer.json()["errors"]] == [1, 2, 3]
    answer = client.post("/api/v1/workloads/", [{**like, "name": "e"}, {**like, "name": "a"}], format="json")
    assert (answer.status_code, answer.json()["errors"][0]["document"]) == (409, 1)


def test_pod_sets_that_look_alike_and_differ_are_read_apart(client: SchemaClient) -> None:
    """Equal pod sets are read once, and a mistake in one is told of each workload that has it."""
    wrong = [{"count": 1, "requests": {"cpu": "much"}}]
    right = [{"count": 1, "requests": {"cpu": "1"}}]
    body = [
        {"namespace": "team-a", "name": f"w-{number}", "pod_sets": pod_sets}
        for number, pod_sets in enumerate((right, wrong, right, wrong))
    ]
    answer = client.post("/api/v1/workloads/", body, format="json")
    assert answer.status_code == 400
    assert [each["document"] for each in answer.json()["errors"]] == [1, 3]
