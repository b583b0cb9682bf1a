"""Flavors over REST, with what is promised of their nodes."""

from __future__ import annotations

import pytest

from accounts.models import Cluster
from gpus.models import Node
from tests.api_client import SchemaClient
from tests.factories import make_cluster_queue, make_resource_flavor
from tests.users import EPOCH

pytestmark = pytest.mark.django_db


def test_a_flavor_that_promises_more_than_its_nodes_have_says_so(cluster: Cluster, alice: SchemaClient) -> None:
    make_resource_flavor(cluster, "small", node_labels={"pool": "small"})
    make_cluster_queue(cluster, quotas={"small": {"cpu": 9_000, "memory": 2**30}})
    url = "/api/v1/resource-flavors/small/"
    assert alice.get(url).json()["capacity"] == [], "no node is known"
    Node.objects.create(
        cluster=cluster,
        name="n1",
        labels={"pool": "small"},
        allocatable={"cpu": 8_000, "memory": 2**34},
        foreign_usage={"cpu": 500},
        created_at=EPOCH,
    )
    cpu, memory = alice.get(url).json()["capacity"]
    assert cpu == {
        "resource": "cpu", "promised": 9_000, "allocatable": 8_000, "used_by_others": 500, "exceeded": True,
        "followed_by": [],
    }  # fmt: skip
    assert (memory["resource"], memory["exceeded"]) == ("memory", False)
