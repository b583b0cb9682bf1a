"""Quotas that follow the nodes of their flavor."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import AuditRecord, Cluster
from accounts.services.apply_result import Action
from clusters.manifests import apply_manifests
from foundation.exceptions import ManifestErrors
from gpus.models import Node
from queues.kinds import KINDS
from queues.models import ClusterQueue, FlavorQuota
from queues.services.configuration import apply_json, manifest_of
from scheduler.housekeeping.node_quotas import follow_nodes
from tests.factories import START, make_cluster, make_resource_flavor

pytestmark = pytest.mark.django_db

FLAVOR = "pool"


@pytest.fixture
def cluster() -> Cluster:
    """Two nodes of a flavor with 8 cpu each; pods of others take 1, and pods of ours that others placed 2."""
    cluster = make_cluster()
    make_resource_flavor(cluster, FLAVOR, node_labels={"pool": "a"})
    make_node(cluster, "n1", foreign_usage={"cpu": 3000}, unplaced_usage={"cpu": 2000})
    make_node(cluster, "n2")
    make_node(cluster, "elsewhere", labels={})
    return cluster


def admin() -> User:
    return User.objects.create_superuser("root")


def make_node(cluster: Cluster, name: str, **fields: Any) -> Node:
    fields = {"labels": {"pool": "a"}, "allocatable": {"cpu": 8000, "pods": 110}, **fields}
    return Node.objects.create(cluster=cluster, name=name, created_at=START, **fields)


def queue(name: str, *cells: dict[str, str], **cell: Any) -> dict[str, Any]:
    quota = {"name": "cpu", "nominal_quota": "1", **cell}
    group = {"covered_resources": ["cpu"], "flavors": [{"name": FLAVOR, "resources": [quota]}]}
    return {"resource_groups": [group], "node_quotas": list(cells), "cohort": "all"}


def following(share: str, headroom: str = "0") -> dict[str, str]:
    return {"flavor": FLAVOR, "resource": "cpu", "share": share, "headroom": headroom}


def store(cluster: Cluster, name: str, body: dict[str, Any], kind: str = "ClusterQueue") -> Any:
    return apply_json(cluster, KINDS[kind], body, name=name, actor="alice")


def nominal(name: str) -> int:
    return FlavorQuota.objects.get(resource_group__cluster_queue__name=name).nominal_quota


def test_a_share_of_what_others_leave_less_the_headroom(cluster: Cluster) -> None:
    store(cluster, "half", queue("half", following("50%", "500m")))
    store(cluster, "third", queue("third", following("33.33%")))
    store(cluster, "fixed", queue("fixed"))
    store(cluster, "greedy", queue("greedy", following("1%", "5")))
    assert follow_nodes(cluster) == 3
    assert {name: nominal(name) for name in ("half", "third", "fixed", "greedy")} == {
        "half": 15_000 // 2 - 500,
        "third": 4_999,
        "fixed": 1_000,
        "greedy": 0,
    }
    assert follow_nodes(cluster) == 0, "nothing has changed"


def test_nodes_that_come_and_go_change_the_quota_and_the_audit_says_so(cluster: Cluster) -> None:
    store(cluster, "all", queue("all", following("100%")))
    follow_nodes(cluster)
    assert nominal("all") == 15_000
    generation = ClusterQueue.objects.get().generation
    make_node(cluster, "n3")
    assert follow_nodes(cluster) == 1
    assert nominal("all") == 23_000
    assert ClusterQueue.objects.get().generation > generation, "who read the older quota hears of it"
    Node.objects.filter(name__startswith="n").delete()
    follow_nodes(cluster)
    assert nominal("all") == 0
    Node.objects.all().delete()
    assert follow_nodes(cluster) == 0, "while no node is known the quota stays as it is"


@pytest.mark.django_db(transaction=True)
def test_each_change_is_audited(cluster: Cluster) -> None:
    store(cluster, "all", queue("all", following("100%")))
    follow_nodes(cluster)
    record = AuditRecord.objects.get(kind="ClusterQueue", verb="update")
    before, after = ({"quotas": {"pool cpu": {"nominal_quota": amount}}} for amount in (1_000, 15_000))
    assert (record.name, record.before, record.after) == ("all", before, after)


def test_a_cohort_follows_too(cluster: Cluster) -> None:
    body = queue("all", following("10%"))
    del body["cohort"]
    store(cluster, "all", body, "Cohort")
    assert follow_nodes(cluster) == 1
    assert FlavorQuota.objects.get().nominal_quota == 1_500


def test_a_file_that_is_applied_again_changes_nothing(cluster: Cluster) -> None:
    """The file says the amount of the day on which it was written."""
    store(cluster, "all", queue("all", following("50%")))
    written = manifest_of(ClusterQueue.objects.get())
    assert json.loads(written["metadata"]["annotations"]["kueueweb.io/node-quotas"]) == [following("50%")]
    follow_nodes(cluster)
    del written["metadata"]["resourceVersion"]
    (applied,) = apply_manifests(cluster, json.dumps(written), user=admin()).objects
    assert (applied.action, nominal("all")) == (Action.UNCHANGED, 7_500)
    store(cluster, "all", queue("all"))
    assert nominal("all") == 1_000, "without the setting the amount is its author's"


@pytest.mark.parametrize(
    ("body", "path", "rule"),
    [
        (queue("q", following("0%")), "node_quotas[0].share", "must be a percentage above 0%"),
        (queue("q", following("101%")), "node_quotas[0].share", "must be a percentage above 0%"),
        (queue("q", following("half")), "node_quotas[0].share", "must be a percentage above 0%"),
        (queue("q", following("50%", "-1")), "node_quotas[0].headroom", "must not be negative"),
        (queue("q", following("50%"), following("50%")), "node_quotas", "Duplicate value: pool/cpu"),
        (queue("q", following("50%") | {"flavor": "pol"}), "node_quotas", "pol/cpu has no quota in resourceGroups"),
        (queue("q", following("50%"), lending_limit="1"), "node_quotas", "pool/cpu must have no lendingLimit"),
    ],
)
def test_what_is_refused(cluster: Cluster, body: dict[str, Any], path: str, rule: str) -> None:
    with pytest.raises(ManifestErrors) as refused:
        store(cluster, "q", body)
    (error,) = refused.value.errors
    assert error.path == path
    assert error.rule.startswith(rule)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("half", "must be a JSON list"),
        ('[{"flavor": "pool", "resource": "cpu"}]', "[0].share: Required value"),
        ('[{"flavor": "pol", "resource": "cpu", "share": "50%"}]', "pol/cpu has no quota in resourceGroups"),
    ],
)
def test_an_annotation_that_says_it_wrongly(cluster: Cluster, text: str, rule: str) -> None:
    store(cluster, "all", queue("all"))
    written = manifest_of(ClusterQueue.objects.get())
    written["metadata"]["annotations"] = {"kueueweb.io/node-quotas": text}
    with pytest.raises(ManifestErrors) as refused:
        apply_manifests(cluster, json.dumps(written), user=admin())
    (error,) = refused.value.errors
    assert error.path == "metadata.annotations[kueueweb.io/node-quotas]"
    assert error.rule.startswith(rule)
