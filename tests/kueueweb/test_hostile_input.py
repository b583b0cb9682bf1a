"""Twenty-one requests that answered 500. Each is refused with what is wrong with it, or taken."""

from typing import Any

import orjson
import pytest
from django.db import DataError

from kueueweb.api.errors import error_response
from tests.api_client import SchemaClient

HUGE = "9" * 26
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: q}}\n"
)
TEMPLATE = "template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]"
POD = """apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/pod-group-name: g}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}
spec: {containers: %s}
"""
CLUSTER_QUEUE = (
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a4}\n"
    'spec: {namespaceSelector: {}, fairSharing: {weight: "%s"}}\n'
)
ORDERED_BY_NAME = (
    *("nodes", "cluster-queues", "cohorts", "namespaces", "resource-flavors", "topologies", "admission-checks"),
    *("workload-priority-classes", "priority-classes", "clusters", "runtime-classes"),
)


def apply(client: SchemaClient, text: str) -> Any:
    return client.generic("POST", "/api/v1/manifests/?dry_run=true", text, content_type="application/yaml")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (JOB + f"spec: {{parallelism: {HUGE}, {TEMPLATE}}}}}}}\n", "spec.parallelism"),
        (POD % "[x]", "spec.containers[0]"),
        (POD % "[{name: a, image: b, resources: x}]", "spec.containers[0].resources"),
        (POD % "{a: b}", "spec.containers"),
        (CLUSTER_QUEUE % "1e30", "spec.fairSharing.weight"),
        (CLUSTER_QUEUE % "9999999999999999999Gi", "spec.fairSharing.weight"),
    ],
)
def test_a_manifest_is_refused_where_it_is_wrong(alice: SchemaClient, text: str, path: str) -> None:
    answer = apply(alice, text)
    assert answer.status_code == 400, answer.content
    assert path in {error["path"] for error in answer.json()["errors"]}


def test_a_number_beyond_64_bits_in_a_template_is_as_large_as_a_float(alice: SchemaClient) -> None:
    answer = apply(alice, JOB + f"spec: {{{TEMPLATE}, terminationGracePeriodSeconds: {HUGE}}}}}}}\n")
    assert answer.status_code in (200, 400), answer.content


@pytest.mark.parametrize(("levels", "taken"), [(60, True), (110, True), (125, False), (400, False), (1500, False)])
def test_a_template_may_be_nested_so_deep_and_no_deeper(bob: SchemaClient, levels: int, taken: bool) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    template = f'{{"spec":{{"containers":[{{"name":"c","image":"i","env":[{deep}]}}]}}}}'
    body = f'{{"namespace":"team-a","generate_name":"d-","local_queue":"q","pod_sets":[{{"template":{template}}}]}}'
    answer = bob.generic("POST", "/api/v1/workloads/", body, content_type="application/json")
    assert answer.status_code < 500
    too_deep = answer.status_code == 400 and answer.json()["reason"] == "Malformed"
    assert too_deep is not taken, answer.content


@pytest.mark.parametrize("name", ORDERED_BY_NAME)
def test_a_cursor_holds_no_nul(alice: SchemaClient, name: str) -> None:
    answer = alice.get(f"/api/v1/{name}/?after=WyJhXHUwMDAwYiJd")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "after")


@pytest.mark.parametrize(
    "path",
    [
        "cluster-queues/x",
        "cohorts/x",
        "local-queues/x/y",
        "resource-flavors/x",
        "workloads/x/y/admission-checks/z",
        "workloads",
    ],
)
def test_options_are_not_described(alice: SchemaClient, path: str) -> None:
    answer = alice.options(f"/api/v1/{path}/")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"] or "PUT" in answer.headers["Allow"]
    assert "OPTIONS" not in answer.headers["Allow"]
    assert orjson.loads(answer.content)["reason"] == "MethodNotAllowed"


def test_a_value_that_no_column_holds_is_wrong_input() -> None:
    answer = error_response(DataError("numeric field overflow"), {})
    assert answer is not None
    assert (answer.status_code, answer.data["reason"]) == (400, "Invalid")
