"""A busy cluster: queues with cohorts, borrowing, preemption and fair sharing, and random jobs that arrive and end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from clusters.api_objects import JsonObject

FRAMEWORKS: Final = ("batch/job", "pod")
FAIR_SHARING: Final = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
ROOM: Final = {"cpu": "64", "memory": "256Gi", "pods": "500"}
_API: Final = "kueue.x-k8s.io/v1beta2"
_NAMESPACES: Final = ("team-a", "team-b")
_TIERS: Final = ("spot", "ondemand")
_NODES_PER_TIER: Final = 4
_PRIORITIES: Final = {"low": 10, "normal": 100, "high": 1000}
_MEMORY_PER_CPU: Final = 4
_FIXED: Final = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
_Quotas = tuple[tuple[str, int, dict[str, str]], ...]
_QUEUES: Final[dict[str, tuple[str, _Quotas, dict[str, Any]]]] = {
    "alpha": (
        "left",
        (("spot", 20, {}), ("ondemand", 10, {"borrowingLimit": "10"})),
        {"fairSharing": {"weight": "2"}},
    ),
    "beta": (
        "left",
        (("spot", 20, {"borrowingLimit": "10", "lendingLimit": "10"}), ("ondemand", 10, {})),
        {
            "preemption": {**_FIXED, "reclaimWithinCohort": "LowerPriority"},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        },
    ),
    "gamma": ("right", (("ondemand", 20, {"lendingLimit": "5"}),), {}),
    "delta": (
        "right",
        (("spot", 10, {}), ("ondemand", 20, {"borrowingLimit": "20"})),
        {"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "Never"}},
    ),
    "solo": ("", (("spot", 16, {}),), {"preemption": {"withinClusterQueue": "LowerPriority"}}),
    "strict": (
        "right",
        (("spot", 10, {"borrowingLimit": "10"}),),
        {"queueingStrategy": "StrictFIFO", "preemption": {**_FIXED, "withinClusterQueue": "Never"}},
    ),
}
"""By ClusterQueue, the cohort, the quotas of cpu by flavor, and the fields that differ from the usual ones."""
_GROUP_EVERY: Final = 8
"""One in so many jobs is a group of pods."""
_CPUS: Final = (1, 1, 2, 2, 3, 4, 6, 8)
_PODS: Final = (1, 1, 1, 2, 3, 4)
_SECONDS: Final = (5, 35)


def surroundings() -> Iterator[JsonObject]:
    """All that jobs need, in the order in which it can be made."""
    for namespace in _NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    for tier in _TIERS:
        for number in range(_NODES_PER_TIER):
            name = f"{tier}-{number}"
            metadata = {"name": name, "labels": {"tier": tier, "kubernetes.io/hostname": name}}
            yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        yield _of_kueue("ResourceFlavor", tier, {"nodeLabels": {"tier": tier}})
    yield _of_kueue("Cohort", "root", {})
    yield _of_kueue("Cohort", "left", {"parentName": "root", "fairSharing": {"weight": "2"}})
    yield _of_kueue("Cohort", "right", {"parentName": "root"})
    for name, value in _PRIORITIES.items():
        yield {"apiVersion": _API, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}
    for name, (cohort, quotas, others) in _QUEUES.items():
        yield _of_kueue("ClusterQueue", name, _cluster_queue(cohort, quotas, others))
        for namespace in _NAMESPACES:
            made = _of_kueue("LocalQueue", name, {"clusterQueue": name})
            yield {**made, "metadata": {"name": name, "namespace": namespace}}


def nodes() -> list[str]:
    """The names of the nodes."""
    return [item["metadata"]["name"] for item in surroundings() if item["kind"] == "Node"]


def _of_kueue(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _cluster_queue(cohort: str, quotas: _Quotas, others: dict[str, Any]) -> JsonObject:
    flavors = [
        {
            "name": flavor,
            "resources": [
                {"name": "cpu", "nominalQuota": str(nominal), **limits},
                {"name": "memory", "nominalQuota": f"{nominal * _MEMORY_PER_CPU}Gi"},
            ],
        }
        for flavor, nominal, limits in quotas
    ]
    return {
        "namespaceSelector": {},
        "preemption": _FIXED,
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
        **({"cohortName": cohort} if cohort else {}),
        **others,
    }


def arrivals(seed: int) -> Iterator[Sequence[JsonObject]]:
    """The manifests of one job after the other, without an end."""
    chosen = random.Random(seed)
    number = 0
    while True:
        number += 1
        name, labels = f"job-{number:05d}", {"kueue.x-k8s.io/queue-name": chosen.choice(list(_QUEUES))}
        priority = chosen.choice(("", "low", "normal", "normal", "high"))
        if priority:
            labels["kueue.x-k8s.io/priority-class"] = priority
        metadata = {"name": name, "namespace": chosen.choice(_NAMESPACES), "labels": labels}
        cpu, pods = chosen.choice(_CPUS), chosen.choice(_PODS)
        requests = {"cpu": str(cpu), "memory": f"{cpu * chosen.choice((1, 2, 3))}Gi"}
        template = _template(requests, chosen.randint(*_SECONDS))
        yield _group(metadata, pods, template) if number % _GROUP_EVERY == 0 else [_job(metadata, pods, template)]


def _template(requests: dict[str, str], seconds: int) -> JsonObject:
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    annotations = {"kueueweb.io/run-seconds": str(seconds)}
    return {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}


def _job(metadata: JsonObject, pods: int, template: JsonObject) -> JsonObject:
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _group(metadata: JsonObject, pods: int, template: JsonObject) -> list[JsonObject]:
    labels = {**metadata["labels"], "kueue.x-k8s.io/pod-group-name": metadata["name"]}
    annotations = {**template["metadata"]["annotations"], "kueue.x-k8s.io/pod-group-total-count": str(pods)}
    common = {**metadata, "labels": labels, "annotations": annotations}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**common, "name": f"{metadata['name']}-{number}"},
            "spec": template["spec"],
        }
        for number in range(pods)
    ]
