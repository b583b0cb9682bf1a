"""Reading manifests into the core's objects: the API's defaults, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.model.quantity import NANOS
from scheduling.model.times import parse_rfc3339
from scheduling.model.topology import TopologyDomain
from scheduling.model.vocabulary import (
    ConditionType,
    PreemptionStrategy,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    TransformationStrategy,
)
from scheduling.simulator.scenario import (
    read_cluster_queue,
    read_cohort,
    read_configuration,
    read_foreign_usage,
    read_local_queue,
    read_node,
    read_resource_flavor,
    read_resource_quota,
)
from scheduling.simulator.simulator import build_simulator, simulate
from scheduling.simulator.workload_manifest import read_workload


def workload(**status: Any) -> dict[str, Any]:
    """A Workload manifest with one pod set that names nothing."""
    metadata = {"name": "w", "namespace": "team", "uid": "u", "creationTimestamp": "2026-01-01T00:00:05Z"}
    return {"metadata": metadata, "spec": {"queueName": "q", "podSets": [{"template": {}}]}, "status": status}


def test_defaults_of_a_cluster_queue() -> None:
    queue = read_cluster_queue({"metadata": {"name": "q"}})
    assert queue.queueing_strategy is QueueingStrategy.BEST_EFFORT_FIFO
    assert queue.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.NEVER
    assert queue.namespace_selector is None, "null selects no namespace"
    assert queue.fair_weight == 1.0
    everything = read_cluster_queue({"metadata": {"name": "q"}, "spec": {"namespaceSelector": {}}})
    assert everything.namespace_selector is not None


def test_quotas_and_limits() -> None:
    quota = {"name": "cpu", "nominalQuota": "1500m", "borrowingLimit": "0"}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}]
    cohort = read_cohort(
        {"metadata": {"name": "c"}, "spec": {"resourceGroups": groups, "fairSharing": {"weight": "0"}}}
    )
    cell = cohort.resource_groups[0].flavors[0].resources["cpu"]
    assert (cell.nominal, cell.borrowing_limit, cell.lending_limit) == (1500, 0, None)
    assert cohort.fair_weight == 0.0


def test_a_workload_without_a_status() -> None:
    found = read_workload(workload())
    assert (found.key, found.priority, found.active, found.created_at) == (
        "team/w",
        0,
        True,
        parse_rfc3339("2026-01-01T00:00:05Z"),
    )
    assert (found.pod_sets[0].name, found.pod_sets[0].count, found.pod_sets[0].min_count) == ("main", 1, None)
    assert not found.holds_quota


def test_a_workload_that_holds_quota_in_a_topology() -> None:
    slices = [
        {
            "domainCount": 2,
            "valuesPerLevel": [{"individual": {"prefix": "n", "roots": ["1", "2"]}}],
            "podCounts": {"individual": [1, 3]},
        }
    ]
    assignment = {
        "name": "main",
        "count": 4,
        "flavors": {"cpu": "f"},
        "resourceUsage": {"cpu": "2"},
        "topologyAssignment": {"levels": ["host"], "slices": slices},
    }
    reserved = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "lastTransitionTime": "2026-01-01T00:00:07Z",
    }
    found = read_workload(
        workload(
            admission={"clusterQueue": "q", "podSetAssignments": [assignment]},
            conditions=[reserved],
            requeueState={"count": 2, "requeueAt": "2026-01-01T00:01:00Z"},
            reclaimablePods=[{"name": "main", "count": 1}],
        )
    )
    assert found.holds_quota
    assert found.admission is not None
    (pod_set,) = found.admission.pod_set_assignments
    assert pod_set.resource_usage == {"cpu": 2000}
    assert pod_set.topology_assignment is not None
    assert pod_set.topology_assignment.domains == (TopologyDomain(("n1",), 1), TopologyDomain(("n2",), 3))
    condition = found.condition(ConditionType.QUOTA_RESERVED)
    assert condition is not None
    assert condition.last_transition_time == parse_rfc3339("2026-01-01T00:00:07Z")
    assert found.requeue_state is not None
    assert found.requeue_state.count == 2
    assert found.reclaimable_pods == {"main": 1}


def test_a_node_without_a_ready_condition_is_not_ready() -> None:
    node = read_node({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}})
    assert (node.ready, node.allocatable) == (False, {"cpu": 4000, "pods": 110})


def test_a_flavor_with_everything() -> None:
    taint = {"key": "spot", "effect": "NoSchedule"}
    toleration = {"key": "spot", "operator": "Exists"}
    spec = {"nodeLabels": {"a": "b"}, "nodeTaints": [taint], "tolerations": [toleration], "topologyName": "t"}
    flavor = read_resource_flavor({"metadata": {"name": "f"}, "spec": spec})
    assert flavor.topology_name == "t"
    assert flavor.tolerations[0].tolerates(flavor.node_taints[0])


@pytest.mark.parametrize(
    ("fair", "strategies"),
    [
        ({}, ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]),
        ({"preemptionStrategies": ["LessThanInitialShare"]}, ["LessThanInitialShare"]),
    ],
)
def test_fair_sharing_is_on_when_its_block_is_there(fair: dict[str, Any], strategies: list[str]) -> None:
    configuration = read_configuration({"fairSharing": fair})
    assert configuration.fair_sharing is not None
    assert configuration.fair_sharing.preemption_strategies == tuple(PreemptionStrategy(s) for s in strategies)
    assert read_configuration({}).fair_sharing is None


def test_transformations() -> None:
    rule = {"input": "a", "strategy": "Replace", "multiplyBy": "b", "outputs": {"c": "500m"}}
    (found,) = read_configuration(
        {
            "transformations": [
                rule,
            ]
        }
    ).transformations
    assert (found.strategy, found.multiply_by, found.outputs) == (
        TransformationStrategy.REPLACE,
        "b",
        {"c": NANOS // 2},
    )


def test_limit_ranges_and_runtime_classes_count_in_requests() -> None:
    bare = {"metadata": {"namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    template = {"spec": {"containers": [{"name": "c"}], "runtimeClassName": "kata"}}
    cells = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [cells]}]
    simulator = build_simulator(
        {
            "namespaces": [{"metadata": {"name": "team"}}],
            "limitRanges": [
                {
                    "metadata": {"name": "sizes", "namespace": "team"},
                    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]},
                }
            ],
            "runtimeClasses": [
                {"metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "1"}}}
            ],
            "resourceFlavors": [{"metadata": {"name": "default"}}],
            "clusterQueues": [{"metadata": {"name": "q"}, "spec": {"namespaceSelector": {}, "resourceGroups": groups}}],
            "localQueues": [{"metadata": {"name": "lq", "namespace": "team"}, "spec": {"clusterQueue": "q"}}],
            "workloads": [
                {
                    "metadata": {**bare["metadata"], "name": name, "uid": name},
                    "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
                }
                for name in ("a", "b")
            ],
        }
    )
    simulator.run()
    (usage,) = simulator.world.cluster_queue_status("q").usage
    assert usage.used == 3000


def test_a_resource_quota_in_whole_units() -> None:
    hard = {"limits.nvidia.com/gpumem": "10k", "limits.nvidia.com/gpucores": "0.5"}
    quota = read_resource_quota({"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    assert (quota.key, quota.hard) == ("default/gpus", {"limits.nvidia.com/gpumem": 10_000})


def test_pods_without_a_workload_use_their_node_until_they_end() -> None:
    def pod(node: str, phase: str) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
        return {"spec": {"nodeName": node, "containers": [container]}, "status": {"phase": phase}}

    pods = [pod("n1", "Running"), pod("n1", "Pending"), pod("n1", "Succeeded"), pod("n2", "Failed"), pod("", "Pending")]
    assert read_foreign_usage(pods) == {"n1": {"cpu": 1000, "pods": 2}}


def test_what_single_cycles_add_to_a_workload() -> None:
    manifest = workload(
        unhealthyNodes=[{"name": "n1"}],
        preemptionGates=[{"name": "opened", "position": "Open"}, {"name": "shut", "position": "Closed"}],
        admissionChecks=[
            {"name": "c", "state": "Ready", "podSetUpdates": [{"name": "main", "nodeSelector": {"pool": "new"}}]}
        ],
    )
    manifest["spec"]["preemptionGates"] = [{"name": name} for name in ("opened", "shut", "unknown")]
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "team/before"}
    manifest["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p"}]
    found = read_workload(manifest)
    assert (found.unhealthy_nodes, found.replaces, found.single_pod) == (("n1",), "team/before", True)
    assert found.closed_preemption_gates == ("shut", "unknown")
    assert found.admission_checks[0].pod_set_updates[0].node_selector == {"pool": "new"}
    manifest["metadata"]["annotations"]["kueue.x-k8s.io/is-group-workload"] = "true"
    assert not read_workload(manifest).single_pod


def test_a_gate_and_the_usage_of_a_local_queue() -> None:
    configuration = read_configuration(
        {
            "featureGates": {"TASBalancedPlacement": True},
            "admissionFairSharing": {"usageHalfLifeTime": "1m30s", "resourceWeights": {"cpu": 2}},
        }
    )
    assert configuration.balanced_placement
    settings = configuration.admission_fair_sharing
    assert settings is not None
    assert (settings.usage_half_life_seconds, settings.usage_sampling_interval_seconds) == (90.0, 300.0)
    assert settings.resource_weights == {"cpu": 2.0}
    usage = {"consumedResources": {"cpu": "1500m"}, "lastUpdate": "1970-01-01T00:01:00Z"}
    queue = read_local_queue(
        {
            "metadata": {"name": "lq"},
            "spec": {"clusterQueue": "q"},
            "status": {"fairSharing": {"admissionFairSharingStatus": usage}},
        }
    )
    assert (queue.consumed, queue.consumed_at) == ({"cpu": 1.5}, 60.0)


def test_single_cycles_say_all_that_the_first_one_decided() -> None:
    groups = [
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "2"}]}],
        }
    ]

    def asks(name: str, cpu: str, **status: Any) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        metadata = {"name": name, "namespace": "team", "uid": name, "creationTimestamp": "2025-12-31T23:00:00Z"}
        pod_sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]
        return {"metadata": metadata, "spec": {"queueName": "lq", "podSets": pod_sets}, "status": status}

    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
    stopping = asks(
        "stopping",
        "1",
        admission={"clusterQueue": "q", "podSetAssignments": [assignment]},
        conditions=[{"type": "QuotaReserved", "status": "True"}, {"type": "Evicted", "status": "True"}],
    )
    result = simulate(
        {
            "cycles": 1,
            "namespaces": [{"metadata": {"name": "team"}}],
            "resourceFlavors": [{"metadata": {"name": "default"}}],
            "clusterQueues": [
                {
                    "metadata": {"name": "q"},
                    "spec": {"namespaceSelector": {}, "resourceGroups": groups},
                }
            ],
            "localQueues": [{"metadata": {"name": "lq", "namespace": "team"}, "spec": {"clusterQueue": "q"}}],
            "workloads": [stopping, asks("large", "2"), asks("small", "1")],
        }
    )
    assert result["firstCycle"] == {
        "admitted": [],
        "preempted": [],
        "evicted": [],
        "replaced": [],
        "pending": {"team/large": "WaitingForQuota", "team/small": "PendingEvaluation"},
    }, "what is stopping keeps its quota in the first cycle"
    assert result["clusterQueues"]["q"]["flavorsReservation"] == {"default": {"cpu": "0"}}, "and has stopped after it"
