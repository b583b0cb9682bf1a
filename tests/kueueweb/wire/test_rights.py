"""Every role x every address of Kubernetes' wire format: each user sees there what REST shows them, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import AuditRecord, Cluster
from accounts.services.access import WHOLE_KINDS
from clusters.manifests import apply_manifests
from kueueweb.wire.resources import RESOURCES
from kueueweb.wire.urls import ADDRESSES, PENDING_ADDRESSES
from queues.kinds import KINDS
from queues.models import Pod, Workload
from tests.accounts.test_rights_walk import ALL_SEEING, EVERYBODY, TENANTS
from tests.factories import make_node
from tests.kueueweb.wire.conftest import JOB, names

JOB_OF = JOB.replace("APP", "x").replace("queue-name: main", "queue-name: local")
REST = {
    resource.kind: f"/api/v1/{KINDS[resource.kind].plural}/" if resource.kind in KINDS else "/api/v1/workloads/"
    for resource in RESOURCES
}
DEFINITIONS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REST["Job"] = "/api/v1/manifests/job/"
REST["Node"] = "/api/v1/nodes/"
OF_WORKLOADS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "Pod": lambda _, item: item["name"],
    "Event": lambda workload, item: f"{workload}.{item['id']:016x}",
}
"""Kinds that REST shows for each workload -> the name of an object."""


@pytest.fixture
def jobs(cluster: Cluster, clients: dict[str, APIClient]) -> None:
    """A job in each namespace, with a pod."""
    for namespace in ("team-a", "team-b"):
        apply_manifests(cluster, JOB_OF.replace("NAMESPACE", namespace).replace("NAME", f"in-{namespace}"), user=None)
    make_node(cluster, "n1")
    for workload in Workload.objects.filter(job__name__startswith="in-team-"):
        where = {"namespace": workload.namespace, "name": f"of-{workload.namespace}", "uid": f"pod-{workload.pk}"}
        Pod.objects.create(workload=workload, pod_set="main", replica=0, **where)


def key(item: dict[str, Any]) -> tuple[str, str]:
    meta = item.get("metadata", item)
    return meta.get("namespace", ""), meta["name"]


def rest_of(client: APIClient, kind: str) -> list[tuple[str, str]]:
    """The objects of a kind that REST shows."""
    if kind == "Job":
        body = client.get(REST[kind], headers={"Accept": "application/json"}).json()["items"]
    elif kind in OF_WORKLOADS:
        body = [
            {**item, "namespace": namespace, "name": OF_WORKLOADS[kind](workload, item)}
            for namespace, workload in rest_of(client, "Workload")
            for item in client.get(f"/api/v1/workloads/{namespace}/{workload}/{kind.lower()}s/").json()["results"]
        ]
    elif kind in WHOLE_KINDS and client.get(REST[kind]).status_code == 403:
        body = []
    else:
        body = client.get(REST[kind], {"limit": 1000}).json()["results"]
    return sorted(map(key, body))


@pytest.mark.usefixtures("jobs")
def test_lists_show_what_rest_shows(clients: dict[str, APIClient]) -> None:
    seen = 0
    for resource in RESOURCES:
        address = f"/{resource.address(resource.versions[-1])}/{resource.plural}"
        for letter in EVERYBODY:
            answer = clients[letter].get(address)
            if resource.kind in WHOLE_KINDS and letter not in ALL_SEEING:
                assert answer.status_code == 403, (letter, address)
                continue
            assert answer.status_code == 200, (letter, address, answer.content)
            found = sorted(map(key, answer.json()["items"]))
            assert found == rest_of(clients[letter], resource.kind), (letter, address)
            seen += len(found)
    assert seen > len(EVERYBODY) * len(RESOURCES) / 2


@pytest.mark.usefixtures("jobs")
def test_no_address_shows_a_tenant_what_another_has(clients: dict[str, APIClient]) -> None:
    walked = 0
    shown = {
        (letter, resource.kind): set(rest_of(clients[letter], resource.kind))
        for letter in EVERYBODY
        for resource in RESOURCES
    }
    for address, view in ADDRESSES.items():
        for letter in EVERYBODY:
            for namespace, name in shown["A", view.resource.kind]:
                path = "/" + address.replace("<str:namespace>", namespace).replace("<str:name>", name)
                mine = (namespace, name) in shown[letter, view.resource.kind]
                if "<str:name>" in address:
                    code = clients[letter].get(path).status_code
                    # A log is read from the pod's cluster, which does not answer here.
                    fine = (503 if path.endswith("/log") else 200,) if mine else (403, 404)
                    assert code in fine, (letter, path, code)
                elif "<str:namespace>" in address:
                    answer = clients[letter].get(path)
                    assert (answer.status_code == 200 and name in names(answer)) == mine, (letter, path)
                walked += 1
    assert walked > 500


def test_each_address_needs_a_role(clients: dict[str, APIClient]) -> None:
    for address in [
        "api",
        "api/v1",
        "apis",
        "apis/batch",
        "apis/batch/v1",
        "version",
        "openapi/v2",
        DEFINITIONS,
        *ADDRESSES,
        *PENDING_ADDRESSES,
    ]:
        path = "/" + address.replace("<str:namespace>", "team-a").replace("<str:name>", "x")
        for prefix in ("", "/kubernetes/default"):
            for letter, code, reason in (("-", 401, "Unauthorized"), ("X", 403, "Forbidden"), ("O", 403, "Forbidden")):
                answer = clients[letter].get(prefix + path)
                assert (answer.status_code, answer.json()["reason"]) == (code, reason), (letter, prefix + path)
                assert answer.json()["kind"] == "Status"


def test_a_namespace_of_others_is_forbidden_whether_it_exists_or_not(clients: dict[str, APIClient]) -> None:
    answers = [
        clients["B"]
        .get(f"/kubernetes/default/apis/batch/v1/namespaces/{namespace}/jobs")
        .json()["message"]
        .replace(namespace, "NS")
        for namespace in ("team-a", "no-such-team")
    ]
    assert answers[0] == answers[1]
    assert answers[0] == (
        'jobs.batch is forbidden: User "B" cannot list resource "jobs" in API group "batch" in the namespace "NS"'
    )
    record = AuditRecord.objects.filter(verb="refused", namespace="team-a").get()
    assert (record.kind, record.cluster_name, record.username) == ("Job", "default", "B")


def may(client: APIClient, verb: str, group: str, resource: str, namespace: str = "") -> bool:
    """Whether `kubectl auth can-i` says yes."""
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    }
    answer = client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, format="json")
    assert answer.status_code == 201, answer.content
    return bool(answer.json()["status"]["allowed"])


def test_can_i_is_answered_as_the_request_would_be(clients: dict[str, APIClient]) -> None:
    for resource in RESOURCES:
        for letter in EVERYBODY:
            for namespace in ("", "team-a", "team-b") if resource.namespaced else ("",):
                where = f"namespaces/{namespace}/" if namespace else ""
                address = f"/{resource.address(resource.versions[0])}/{where}{resource.plural}"
                answered = clients[letter].get(address).status_code == 200
                said = may(clients[letter], "list", resource.group, resource.plural, namespace)
                assert said == answered, (letter, address)
    assert not may(clients["A"], "list", "apps", "deployments")
    assert {letter for letter in EVERYBODY if may(clients[letter], "get", "batch", "jobs", "team-a")} == set(TENANTS)


def test_whoami_and_the_list_of_rights(clients: dict[str, APIClient]) -> None:
    who = clients["S"].post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, format="json").json()
    assert who["status"]["userInfo"]["username"] == "S"
    body = {"spec": {"namespace": "team-b"}}
    address = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    rules = clients["S"].post(address, body, format="json").json()["status"]["resourceRules"]
    readable = {resource for rule in rules for resource in rule["resources"]}
    assert "resourceflavors" in readable
    assert "jobs" not in readable


def test_messages_do_not_name_the_queues_of_others(clients: dict[str, APIClient], cluster: Cluster) -> None:
    condition = {
        "type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": "2026-01-05T09:00:00Z",
        "message": "Preempted to accommodate a workload; preemptor path: /secret/queue; preemptee path: /mine",
    }  # fmt: skip
    Workload.objects.filter(namespace="team-a").update(conditions=[condition])
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads"
    for letter, knows in (("A", True), ("S", False)):
        [found] = clients[letter].get(path).json()["items"]
        assert ("secret" in found["status"]["conditions"][0]["message"]) is knows
