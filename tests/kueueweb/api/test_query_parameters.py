"""A parameter that an address does not know is refused, wherever it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import UUID

import pytest
from django.urls import resolve

from accounts.models import Cluster
from kueueweb.api.query_parameters import known_parameters
from queues.models import ClusterQueue
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue

DOCUMENT = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text())
STATUSES = "Admitted, Evicted, Finished, Pending, QuotaReserved"
OPERATIONS = [(path, method) for path, found in DOCUMENT["paths"].items() for method in found]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_what_an_address_knows_is_what_the_document_says(path: str, method: str) -> None:
    typed = path.replace("{token_id}", str(UUID(int=0))).replace("{rule_id}", "1").replace("{question_id}", "1")
    view = resolve(re.sub(r"\{\w+\}", "x", typed)).func
    described = DOCUMENT["paths"][path][method].get("parameters", [])
    names = frozenset(parameter["name"] for parameter in described if parameter["in"] == "query")
    assert (known_parameters(view, method.upper()) or {}).keys() == names


def test_it_is_named_with_those_that_there_are(vera: SchemaClient, cluster: Cluster) -> None:
    answer = vera.get("/api/v1/workloads/?statu=Pending&limit=1")
    assert answer.status_code == 400
    [mistake] = answer.json()["errors"]
    assert (mistake["path"], mistake["value"], mistake["reason"]) == ("statu", "Pending", "UnknownField")
    assert mistake["remedy"] == 'Did you mean "status"?'
    assert "cluster_queue" in mistake["rule"]


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("devices/?healthy=maybe", "must be true or false"),
        ("devices/?total=", "must be true or false"),
        ("device-allocations/?source=", "Required value: supported values are decided, external"),
        ("workloads/?status=", f"Required value: supported values are {STATUSES}"),
        ("devices/?limit=1001", "must be a whole number between 1 and 1000"),
        ("device-usage/?limit=1", "unknown query parameter; this address accepts cluster"),
        ("devices/0/samples/?limit=1", "unknown query parameter; this address accepts cluster, hours, resolution"),
        ("drift/?limit=1", "unknown query parameter; this address accepts cluster"),
        ("workloads/?until=", "must be an RFC 3339 time"),
        ("workloads/?since=2026-02-30T00:00:00Z", "must be an RFC 3339 time"),
        ("decisions/?workload_uid=", "must be a UUID"),
        ("workloads/?namespace=team-a&namespace=team-b", "Duplicate value: it was given 2 times"),
        ("history/?metric=admitted&flavor=a,b", "must be one name: no name contains a comma"),
        ("history/?metric=admitted&resource=cpu,memory", "must be one name: no name contains a comma"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_and_filters_are_never_dropped(
    vera: SchemaClient, cluster: Cluster, query: str, rule: str
) -> None:
    answer = vera.get(f"/api/v1/{query}")
    assert answer.status_code == 400
    assert [mistake["rule"] for mistake in answer.json()["errors"]] == [rule]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("get", "audit/export/?as=AAA", None),
        ("patch", "clusters/default/", '{"serves_kueue_objects": 0}'),
        ("post", "preview/", "null"),
        ("post", "manifests/", "null"),
        ("post", "manifests/", "null\n"),
        ("post", "service-accounts/", '{"name": 0}'),
    ],
)
def test_what_the_document_forbids_is_refused(
    alice: SchemaClient, cluster: Cluster, method: str, path: str, body: str | None
) -> None:
    """Found by schemathesis: each was taken, as if it said something else."""
    answer = alice.generic(method.upper(), f"/api/v1/{path}", body or "", content_type="application/json")
    assert answer.status_code == 400


def test_a_write_that_asks_for_what_it_does_not_have_stores_nothing(alice: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster)
    answer = alice.delete("/api/v1/cluster-queues/main/?try=true")
    assert answer.status_code == 400
    assert ClusterQueue.objects.filter(name="main", deletion_requested_at=None).exists()


def test_other_addresses_are_left_alone(vera: SchemaClient, cluster: Cluster) -> None:
    assert vera.get("/metrics?x=1").status_code == 200
    assert vera.get("/?utm=1").status_code in {200, 503}
