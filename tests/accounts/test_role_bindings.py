"""Roles of users and groups, per cluster, per namespace and below a cohort; made over REST and as manifests."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from accounts.models import Cluster, Role, RoleBinding
from accounts.services.access import access_of, clusters_of
from queues.models import ClusterQueue
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue, make_cohort
from tests.users import client_of

pytestmark = pytest.mark.django_db

MANIFEST = """
apiVersion: kueueweb.io/v1
kind: RoleBinding
metadata: {name: researchers}
spec: {group: research, role: submitter, namespace: team-a}
"""


@pytest.fixture
def quentin(cluster: Cluster) -> SchemaClient:
    """A queue admin of the cohort `research`, which has the queue `mine`; the queue `theirs` is in `production`."""
    for name in ("research", "production"):
        make_cohort(cluster, name, parent_name="root")
    make_cluster_queue(cluster, "mine", local_queue="", cohort_name="research")
    make_cluster_queue(cluster, "theirs", local_queue="", cohort_name="production")
    user = User.objects.create_user("quentin")
    RoleBinding.objects.create(username="quentin", role=Role.QUEUE_ADMIN, cohort="research", cluster=cluster)
    return client_of(user)


def test_an_admin_makes_changes_and_deletes_bindings(alice: SchemaClient, cluster: Cluster) -> None:
    url = "/api/v1/role-bindings/eve-looks/"
    made = alice.put(url, {"user": "eve", "role": "viewer", "in_namespace": "team-a"})
    assert made.status_code == 201, made.json()
    eve = User.objects.create_user("eve")
    assert access_of(eve, cluster).roles == {"team-a": {Role.VIEWER}}
    tag = made.headers["ETag"]
    changed = alice.patch(url, {"role": "submitter"}, headers={"If-Match": tag})
    assert changed.status_code == 200, changed.json()
    assert alice.patch(url, {"role": "viewer"}, headers={"If-Match": tag}).status_code == 412
    assert access_of(eve, cluster).may("submit", "Job", "team-a")
    assert alice.delete(url).status_code == 204
    assert not access_of(eve, cluster).has_any_role


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"role": "viewer"}, "user"),
        ({"user": "a", "group": "b", "role": "viewer"}, "user"),
        ({"user": "a"}, "role"),
        ({"user": "a", "role": "king"}, "role"),
        ({"user": "a", "role": "queue-admin"}, "cohort"),
        ({"user": "a", "role": "viewer", "cohort": "research"}, "cohort"),
        ({"user": "a", "role": "queue-admin", "cohort": "research", "in_namespace": "team-a"}, "in_namespace"),
    ],
)
def test_a_binding_that_says_nothing_is_refused(alice: SchemaClient, body: Any, path: str) -> None:
    refused = alice.put("/api/v1/role-bindings/x/", body)
    assert refused.status_code == 400
    assert path in [error["path"] for error in refused.json()["errors"]]


def test_a_group_is_bound_by_a_manifest(alice: SchemaClient, cluster: Cluster) -> None:
    applied = alice.post("/api/v1/manifests/", MANIFEST, content_type="application/yaml")
    assert applied.status_code == 200, applied.json()
    rita = User.objects.create_user("rita")
    assert not access_of(rita, cluster).has_any_role
    rita.groups.add(Group.objects.create(name="research"))
    assert access_of(rita, cluster).may("submit", "Job", "team-a")
    assert alice.get("/api/v1/manifests/rolebinding/researchers/").json()["spec"]["group"] == "research"


def test_a_role_holds_in_its_cluster_only(alice: SchemaClient, cluster: Cluster) -> None:
    west = Cluster.objects.create(name="west")
    user = User.objects.create_user("wilma")
    RoleBinding.objects.create(username="wilma", role=Role.ADMIN, cluster=west)
    wilma = client_of(user)
    assert wilma.get("/api/v1/workloads/?cluster=west").status_code == 200
    assert wilma.get("/api/v1/workloads/").status_code == 403
    assert wilma.get("/api/v1/workloads/?cluster=nowhere").status_code == 403  # nor whether it is there
    assert [row["name"] for row in wilma.get("/api/v1/clusters/?cluster=west").json()["results"]] == ["west"]
    put = wilma.put("/api/v1/role-bindings/me/", {"user": "wilma", "role": "admin"})
    assert put.status_code == 403
    assert wilma.put("/api/v1/role-bindings/x/?cluster=west", {"user": "x", "role": "viewer"}).status_code == 201
    assert not access_of(User.objects.create_user("x"), cluster).has_any_role
    assert set(clusters_of(user).values_list("name", flat=True)) == {"west"}


def test_a_queue_admin_changes_what_is_below_its_cohort_and_nothing_else(quentin: SchemaClient) -> None:
    assert quentin.patch("/api/v1/cluster-queues/mine/", {"stop_policy": "Hold"}).status_code == 200
    assert quentin.put("/api/v1/cluster-queues/new/", {"cohort": "research"}).status_code == 201
    for path, body in (
        ("cluster-queues/mine/", {"cohort": "production"}),  # it may not give away
        ("cluster-queues/mine/", {"cohort": ""}),
        ("cluster-queues/theirs/", {"cohort": "research"}),  # nor take
        ("cohorts/research/", {"labels": {"a": "b"}}),  # what it has in all is for those above
    ):
        assert quentin.patch(f"/api/v1/{path}", body).status_code in (403, 404), path
    assert quentin.put("/api/v1/cluster-queues/alone/", {}).status_code == 403
    assert quentin.delete("/api/v1/cluster-queues/theirs/").status_code in (403, 404)
    assert quentin.put("/api/v1/role-bindings/x/", {"user": "x", "role": "admin"}).status_code == 403
    assert ClusterQueue.objects.get(name="mine").cohort_name == "research"
    assert ClusterQueue.objects.get(name="theirs").cohort_name == "production"
    assert not ClusterQueue.objects.filter(name="alone").exists()


def test_the_same_holds_for_manifests(quentin: SchemaClient) -> None:
    def apply(name: str, cohort: str) -> int:
        text = (
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\n"
            f"metadata: {{name: {name}}}\nspec: {{cohortName: {cohort}, namespaceSelector: {{}}}}\n"
        )
        return int(quentin.post("/api/v1/manifests/", text, content_type="application/yaml").status_code)

    assert apply("mine", "research") == 200
    assert apply("mine", "production") == 403
    assert apply("theirs", "research") == 403
    assert apply("another", "research") == 200
    assert ClusterQueue.objects.get(name="theirs").cohort_name == "production"


def test_a_queue_admin_sees_its_part_of_the_tree(quentin: SchemaClient) -> None:
    assert [row["name"] for row in quentin.get("/api/v1/cluster-queues/").json()["results"]] == ["mine"]
    assert quentin.get("/api/v1/cluster-queues/theirs/").status_code == 404
    assert quentin.get("/api/v1/workloads/").json()["results"] == []


def test_an_auditor_of_a_namespace_reads_its_part_of_the_audit(alice: SchemaClient, cluster: Cluster) -> None:
    user = User.objects.create_user("tom")
    RoleBinding.objects.create(username="tom", role=Role.AUDITOR, namespace="team-a")
    tom = client_of(user)
    for namespace in ("team-a", "team-b"):
        assert alice.put(f"/api/v1/local-queues/{namespace}/q/", {"cluster_queue": "x"}).status_code == 201
    found = tom.get("/api/v1/audit/").json()["results"]
    assert {row["namespace"] for row in found} == {"team-a"}
    assert tom.get("/api/v1/role-bindings/").status_code == 403


def test_a_deleted_user_leaves_no_rights_to_a_new_user_of_the_same_name(cluster: Cluster) -> None:
    eve = User.objects.create_user("eve")
    RoleBinding.objects.create(username="eve", role=Role.ADMIN)
    eve.delete()
    assert not access_of(User.objects.create_user("eve"), cluster).has_any_role


def test_a_user_without_a_role_sees_no_clusters(cluster: Cluster, nobody: APIClient) -> None:
    assert nobody.get("/api/v1/session/").json()["clusters"] == []
