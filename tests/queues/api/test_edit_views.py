"""Changing configuration over REST: by the rules of Kueue, told with our paths, and the scheduler hears of it."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import Cluster, Role, RoleBinding
from queues.models import ClusterQueue, FlavorQuota, LocalQueue, ResourceFlavor
from scheduler.models import Change
from tests.api_client import SchemaClient
from tests.factories import START, make_cluster_queue, make_resource_flavor
from tests.users import client_of

URL = "/api/v1/cluster-queues/research/"
GROUPS = [
    {
        "covered_resources": ["cpu", "memory"],
        "flavors": [
            {
                "name": "on-demand",
                "resources": [
                    {"name": "cpu", "nominal_quota": "4500m", "borrowing_limit": "2", "lending_limit": None},
                    {"name": "memory", "nominal_quota": "16Gi", "borrowing_limit": None, "lending_limit": "1Gi"},
                ],
            }
        ],
    }
]
QUEUE: dict[str, Any] = {
    "labels": {"team": "science"},
    "annotations": {"note": "of the lab"},
    "cohort": "company",
    "queueing_strategy": "StrictFIFO",
    "namespace_selector": {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}},
    "flavor_fungibility": {"when_can_borrow": "TryNextFlavor", "when_can_preempt": "MayStopSearch", "preference": ""},
    "preemption": {
        "within_cluster_queue": "LowerPriority",
        "reclaim_within_cohort": "Any",
        "borrow_within_cohort": {"policy": "LowerPriority", "max_priority_threshold": 100},
    },
    "admission_checks": [{"name": "budget", "on_flavors": ["on-demand"]}],
    "stop_policy": "Hold",
    "fair_weight": "2.5",
    "admission_mode": "UsageBasedAdmissionFairSharing",
    "preempt_for_devices": True,
    "preemption_protection": {"minimum_run_seconds": 60},
    "resource_groups": GROUPS,
}


def test_what_is_put_is_what_one_gets(alice: SchemaClient, cluster: Cluster) -> None:
    created = alice.put(URL, QUEUE)
    assert created.status_code == 201
    body = created.json()
    assert {field: body[field] for field in QUEUE} == QUEUE
    assert FlavorQuota.objects.get(resource="cpu").nominal_quota == 4500

    generation = ClusterQueue.objects.get().generation
    again = alice.put(URL, alice.get(URL).json())
    assert again.status_code == 200
    assert ClusterQueue.objects.get().generation == generation  # nothing changed


def test_what_is_left_out_is_kueues_default(alice: SchemaClient, cluster: Cluster) -> None:
    alice.put(URL, QUEUE)
    body = alice.put(URL, {}, headers={"If-Match": "*"}).json()
    assert (body["cohort"], body["queueing_strategy"], body["resource_groups"]) == ("", "BestEffortFIFO", [])
    assert (body["namespace_selector"], body["labels"], body["preemption_protection"]) == (None, {}, {})
    assert body["preemption"]["borrow_within_cohort"] == {"policy": "Never", "max_priority_threshold": None}
    assert body["preempt_for_devices"] is False


def test_patch_changes_what_it_names(alice: SchemaClient, cluster: Cluster) -> None:
    alice.put(URL, QUEUE)
    Change.objects.all().delete()
    body = alice.patch(
        URL, {"stop_policy": "None", "labels": {"team": None, "tier": "gold"}, "fair_weight": None}
    ).json()
    assert (body["stop_policy"], body["labels"], body["fair_weight"]) == ("None", {"tier": "gold"}, "1")
    assert {field: body[field] for field in ("cohort", "preemption", "resource_groups", "admission_checks")} == {
        field: QUEUE[field] for field in ("cohort", "preemption", "resource_groups", "admission_checks")
    }
    assert Change.objects.filter(kind="clusterqueue", key="research").exists()
    assert alice.patch("/api/v1/cluster-queues/none/", {}).status_code == 404


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"queueing_strategy": "LIFO"}, "queueing_strategy"),
        ({"cohort": "No Name"}, "cohort"),
        ({"fair_weight": "-1"}, "fair_weight"),
        ({"admission_mode": "Fast"}, "admission_mode"),
        (
            {"preemption": {"reclaim_within_cohort": "Never", "borrow_within_cohort": {"policy": "LowerPriority"}}},
            "preemption",
        ),
        ({"preemption": {"reclaim": "Any"}}, "preemption.reclaim"),
        ({"admission_checks": [{"name": "budget", "on_flavors": ["gone"]}]}, "admission_checks[0].on_flavors[0]"),
        ({"namespace_selector": {"matchLabels": {"a": 1}}}, "namespace_selector.matchLabels[a]"),
        (
            {
                "resource_groups": [
                    {
                        "covered_resources": ["cpu"],
                        "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominal_quota": "x"}]}],
                    }
                ]
            },
            "resource_groups[0].flavors[0].resources[0].nominal_quota",
        ),
        ({"preemption_protection": {"minimum_run_seconds": "soon"}}, "preemption_protection.minimum_run_seconds"),
        ({"preempt_for_devices": "perhaps"}, "preempt_for_devices"),
        ({"cohorts": "x"}, "cohorts"),
        ({"name": "other"}, "name"),
        ({"labels": {"a": 1}}, "labels[a]"),
    ],
)
def test_refuses_as_kueue_does_with_our_paths(
    alice: SchemaClient, cluster: Cluster, change: dict[str, Any], path: str
) -> None:
    alice.put(URL, QUEUE)
    response = alice.put(URL, {**QUEUE, **change}, headers={"If-Match": "*"})
    assert response.status_code == 400
    assert any(error["path"].startswith(path) for error in response.json()["errors"]), response.json()["errors"]
    body = alice.get(URL).json()
    assert {field: body[field] for field in QUEUE} == QUEUE


def test_warns_as_kubernetes_does(alice: SchemaClient, cluster: Cluster) -> None:
    lonely = {"cohort": "", "resource_groups": GROUPS}
    response = alice.put(URL, lonely)
    assert response.status_code == 201
    assert response.headers["Warning"].startswith("299 - ")


def test_only_cluster_admins(bob: SchemaClient, vera: SchemaClient, cluster: Cluster) -> None:
    make_cluster_queue(cluster, "research")
    for client in (bob, vera):
        assert client.put(URL, QUEUE).status_code == 403
        assert client.patch(URL, {}).status_code == 403
        assert client.delete(URL).status_code == 403
        assert client.put("/api/v1/local-queues/team-a/mine/", {"cluster_queue": "research"}).status_code == 403
    assert ClusterQueue.objects.get().cohort_name == ""


def test_the_other_kinds(alice: SchemaClient, cluster: Cluster) -> None:
    cohort = {"parent": "company", "fair_weight": "3", "resource_groups": GROUPS, "preemption_protection": {}}
    flavor = {"node_labels": {"gpu": "v100"}, "node_taints": [], "tolerations": [{"key": "g", "operator": "Exists"}]}
    for url, body in (
        ("/api/v1/cohorts/science/", cohort),
        ("/api/v1/resource-flavors/v100/", {**flavor, "topology": ""}),
        ("/api/v1/local-queues/team-a/main/", {"cluster_queue": "research", "stop_policy": "None", "fair_weight": "1"}),
    ):
        created = alice.put(url, body)
        assert created.status_code == 201, created.json()
        assert {field: created.json()[field] for field in body} == body
        assert alice.put(url, created.json()).status_code == 200
        assert alice.delete(url).status_code == 204
        assert alice.get(url).status_code == 404
        assert alice.delete(url).status_code == 404
    assert not LocalQueue.objects.exists()


def test_a_frozen_field(alice: SchemaClient, cluster: Cluster) -> None:
    url = "/api/v1/local-queues/team-a/main/"
    alice.put(url, {"cluster_queue": "research"})
    refused = alice.patch(url, {"cluster_queue": "production"})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "cluster_queue")


def test_deleting_what_is_in_use_waits(alice: SchemaClient, cluster: Cluster) -> None:
    make_resource_flavor(cluster, "on-demand")
    alice.put(URL, QUEUE)
    waiting = alice.delete("/api/v1/resource-flavors/on-demand/")
    assert waiting.status_code == 202
    assert waiting.json()["deletion_requested_at"] is not None
    assert alice.delete(URL).status_code == 204
    assert not ResourceFlavor.objects.exists()  # it went with what held it


@pytest.mark.parametrize("body", [[], "x", 1])
def test_bodies_that_are_no_objects(alice: SchemaClient, cluster: Cluster, body: Any) -> None:
    assert alice.put(URL, body).status_code == 400


def test_a_queue_admin_gets_one_answer_about_local_queues_of_hidden_namespaces(cluster: Cluster) -> None:
    client = client_of(User.objects.create(username="queues"))
    RoleBinding.objects.create(cluster=cluster, username="queues", role=Role.QUEUE_ADMIN, cohort="all")
    make_cluster_queue(cluster, "apart", local_queue="")
    LocalQueue.objects.create(
        cluster=cluster, namespace="hidden", name="there", cluster_queue_name="apart", created_at=START
    )
    for method in ("PATCH", "DELETE"):
        answers = []
        for name in ("there", "none"):
            url = f"/api/v1/local-queues/hidden/{name}/"
            answer = client.generic(method, url, '{"stop_policy": "Hold"}', content_type="application/json")
            answers.append((answer.status_code, answer.json()["message"].replace(name, "NAME")))
        assert answers[0] == answers[1]
        assert answers[0][0] == 403
