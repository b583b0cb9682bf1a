"""With the rights of its own account, the push deletes pods of nodes that are lost in the place of their kubelets."""

from __future__ import annotations

import time

from clusters.api_objects import EVENTS, NODES, PODS
from clusters.push.lost_pods import delete_lost_pods
from queues.services.workloads import hold
from tests.clusters.system import gpu_job
from tests.kubernetes.system import System

_SECONDS = 30.0
"""Kubernetes' own collector of pods keeps a pod whose node is gone for 40 s."""
_UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def test_a_pod_of_an_unreachable_node_is_failed_told_of_and_deleted(system: System) -> None:
    system.cluster.configuration = {"featureGates": {"FailureRecoveryPolicy": True}}
    system.cluster.save()
    manifest = gpu_job("train", run_seconds=3600)
    safe = {"kueue.x-k8s.io/safe-to-forcefully-delete": "true"}
    manifest["spec"]["template"]["metadata"]["annotations"] |= safe
    system.submit(manifest)
    system.until("its pod runs", lambda: system.phases("train") == ["Running"])
    (pod,) = system.pods("train")
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    finalizers = [*pod["metadata"]["finalizers"], "example.com/kept"]  # else kwok's kubelet is done before
    system.admin.patch(PODS, "team", name, {"metadata": {"finalizers": finalizers}})
    system.admin.delete(PODS, "team", name)

    def is_deleted() -> bool:
        # The node controller takes the taint away every few seconds, since the node is ready.
        system.admin.patch(NODES, "", node, {"spec": {"taints": [_UNREACHABLE]}})
        return delete_lost_pods(system.cluster, system.client, [("team", name)], lambda: time.time() + 120) == 1

    system.until("it is deleted by force", is_deleted)
    left = system.admin.get(PODS, "team", name)
    assert left is not None
    assert left["status"]["phase"] == "Failed"
    assert left["metadata"]["deletionGracePeriodSeconds"] == 0
    conditions = [each["type"] for each in left["status"]["conditions"]]
    assert conditions.count("KueueFailureRecovery") == 1
    assert delete_lost_pods(system.cluster, system.client, [("team", name)], lambda: time.time() + 120) == 0
    events = [each for each in system.admin.list(EVENTS, "team").items if each["reason"] == "KueueForcefullyDeleted"]
    assert [each["involvedObject"]["name"] for each in events] == [name]


def test_quota_is_free_once_the_node_of_a_stopped_job_is_gone(system: System) -> None:
    system.submit(gpu_job("train", run_seconds=3600))
    system.until("its pod runs", lambda: system.phases("train") == ["Running"])
    (pod,) = system.pods("train")
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    system.admin.delete(NODES, "", node)
    hold(system.cluster, [("team", system.workload("train").name)], actor="alice")
    system.until("its quota is free", lambda: system.workload("train").quota_reserved_at is None, _SECONDS)
    assert system.admin.get(PODS, "team", name) is None
