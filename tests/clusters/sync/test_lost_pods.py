"""A pod whose node is unreachable is deleted without its kubelet, where its annotation and Kueue's gate allow it."""

from __future__ import annotations

from base64 import b64decode

import orjson
import pytest

from accounts.models import Cluster
from clusters.api_objects import EVENTS, PODS, JsonObject
from clusters.push.lost_pods import delete_lost_pods
from foundation.redis_client import redis_client
from foundation.wake_ups import FORCED_DELETION_TASK
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)

SAFE = {"kueue.x-k8s.io/safe-to-forcefully-delete": "true"}
_PUSH_QUEUE = "kueueweb:celery:push"


def set_gate(system: System, *, on: bool) -> None:
    Cluster.objects.filter(pk=system.cluster.pk).update(configuration={"featureGates": {"FailureRecoveryPolicy": on}})
    system.cluster.refresh_from_db()


def lose_a_pod(system: System, annotations: dict[str, str], *, node: str = "unreachable") -> JsonObject:
    """Run a job, have its node stop answering, and delete its pod."""
    manifest = gpu_job(run_seconds=10_000)
    manifest["spec"]["template"]["metadata"]["annotations"] |= annotations
    system.submit(manifest)
    system.turn()
    system.turn()
    (pod,) = system.pods()
    assert pod["status"]["phase"] == "Running"
    system.chaos(nodes={pod["spec"]["nodeName"]: node})
    system.advance(1)
    system.client.delete(PODS, "team", pod["metadata"]["name"])
    system.watcher.resync()
    return pod


def requested(system: System) -> list[tuple[str, str]]:
    """The pods whose forced deletion the watcher requests now."""
    redis_client().delete(_PUSH_QUEUE)
    system.watcher.tick()
    found = []
    for message in map(orjson.loads, redis_client().lrange(_PUSH_QUEUE, 0, -1)):
        if message["headers"]["task"] == FORCED_DELETION_TASK:
            found += orjson.loads(b64decode(message["body"]))[1]["pods"]
    return [(namespace, name) for namespace, name in found]


def test_an_overdue_pod_of_an_unreachable_node_is_failed_and_deleted(system: System) -> None:
    set_gate(system, on=True)
    pod = lose_a_pod(system, SAFE)
    key = ("team", pod["metadata"]["name"])
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    system.advance(grace + 55)
    assert requested(system) == []
    assert delete_lost_pods(system.watched(), system.client, [key], system.now) == 0, "it is not due"
    system.advance(10)
    assert requested(system) == [key]
    assert requested(system) == [], "once is enough"
    assert delete_lost_pods(system.watched(), system.client, [key], system.now) == 1
    assert system.client.get(PODS, *key) is None
    (event,) = [each for each in system.client.list(EVENTS).items if each["reason"] == "KueueForcefullyDeleted"]
    assert event["type"] == "Warning"
    assert event["message"] == (
        f"Pod forcefully terminated after {60 + grace}s grace period due to unreachable node "
        f"`{pod['spec']['nodeName']}` (triggered by `kueue.x-k8s.io/safe-to-forcefully-delete` annotation)"
    )


def test_a_pod_that_a_finalizer_keeps_is_failed_once(system: System) -> None:
    set_gate(system, on=True)
    pod = lose_a_pod(system, SAFE)
    key = ("team", pod["metadata"]["name"])
    kept = {"metadata": {"finalizers": ["example.com/kept", "batch.kubernetes.io/job-tracking"]}}
    system.client.patch(PODS, *key, kept)
    system.advance(200)
    assert delete_lost_pods(system.watched(), system.client, [key], system.now) == 1
    for _ in range(2):
        system.watcher.resync()
        assert requested(system) == []
        assert delete_lost_pods(system.watched(), system.client, [key], system.now) == 0
    left = system.client.get(PODS, *key)
    assert left is not None
    conditions = [each["type"] for each in left["status"]["conditions"]]
    assert (left["status"]["phase"], conditions.count("KueueFailureRecovery")) == ("Failed", 1)


def test_a_lost_request_is_made_again_with_the_next_list(system: System) -> None:
    set_gate(system, on=True)
    pod = lose_a_pod(system, SAFE)
    system.advance(200)
    key = ("team", pod["metadata"]["name"])
    assert requested(system) == [key]
    system.watcher.resync()
    assert requested(system) == [key]


@pytest.mark.parametrize(
    ("gate", "annotations", "node"),
    [(False, SAFE, "unreachable"), (True, {}, "unreachable"), (True, SAFE, "not-ready")],
)
def test_other_pods_stay(system: System, gate: bool, annotations: dict[str, str], node: str) -> None:
    set_gate(system, on=gate)
    pod = lose_a_pod(system, annotations, node=node)
    system.advance(200)
    system.watcher.resync()
    key = ("team", pod["metadata"]["name"])
    assert requested(system) == []
    assert delete_lost_pods(system.watched(), system.client, [key], system.now) == 0
    assert system.client.get(PODS, *key) is not None
