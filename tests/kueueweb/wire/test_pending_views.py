"""Kueue's visibility API on the web process: positions in the whole queue, names of readable namespaces only."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from scheduler.leader.engine import Engine
from tests.kueueweb.wire.conftest import submit

ROOT = "/apis/visibility.kueue.x-k8s.io/v1beta2"
QUEUE = f"{ROOT}/clusterqueues/research/pendingworkloads"
OTHER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team-b}
spec: {clusterQueue: research}
"""


def waiting(cluster: Cluster) -> None:
    """Two jobs run; b of team-a, then c of team-b, then d of team-a wait."""
    apply_manifests(cluster, OTHER, user=None)
    for name, namespace in (("a", "team-a"), ("z", "team-b")):
        submit(cluster, name, namespace)
    Engine(cluster, "test").run()
    for name, namespace in (("b", "team-a"), ("c", "team-b"), ("d", "team-a")):
        submit(cluster, name, namespace)
    Engine(cluster, "test").run()


def positions(answer: Any) -> list[tuple[str, int, int]]:
    """The jobs of an answer, with both positions."""
    body = answer.json()
    assert body["kind"] == "PendingWorkloadsSummary", body
    return [
        (
            item["metadata"]["ownerReferences"][0]["name"],
            item["positionInClusterQueue"],
            item["positionInLocalQueue"],
        )
        for item in body["items"]
    ]


@pytest.mark.django_db(transaction=True)
def test_a_cluster_queue(alice: APIClient, bob: APIClient, charlie: APIClient, queues: Cluster) -> None:
    waiting(queues)
    assert positions(alice.get(QUEUE)) == [("b", 0, 0), ("c", 1, 0), ("d", 2, 1)]
    assert positions(bob.get(QUEUE)) == [("b", 0, 0), ("d", 2, 1)]
    assert positions(bob.get(QUEUE, {"limit": 1, "offset": 1})) == [("d", 2, 1)]
    assert positions(charlie.get(QUEUE)) == [("c", 1, 0)]
    assert positions(alice.get(QUEUE.replace("v1beta2", "v1beta1"))) == positions(alice.get(QUEUE))


@pytest.mark.django_db(transaction=True)
def test_a_local_queue(alice: APIClient, bob: APIClient, charlie: APIClient, queues: Cluster) -> None:
    waiting(queues)
    address = f"{ROOT}/namespaces/team-a/localqueues/main/pendingworkloads"
    assert positions(alice.get(address)) == positions(bob.get(address)) == [("b", 0, 0), ("d", 2, 1)]
    refused = charlie.get(address)
    assert (refused.status_code, refused.json()["details"]["kind"]) == (403, "localqueues/pendingworkloads")


def test_a_queue_that_the_user_may_not_see_is_not_found(alice: APIClient, charlie: APIClient, queues: Cluster) -> None:
    submit(queues, "a")
    answers = [alice.get(QUEUE.replace("research", "missing")), charlie.get(QUEUE)]
    assert [answer.status_code for answer in answers] == [404, 404]
    names = ("missing", "research")
    assert len({answer.json()["message"].replace(name, "Q") for answer, name in zip(answers, names, strict=True)}) == 1
    refused = alice.get(QUEUE, {"limit": "many"})
    assert (refused.status_code, refused.json()["message"]) == (
        400, "limit, offset: Invalid value: must be whole numbers",
    )  # fmt: skip
