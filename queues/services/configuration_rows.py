"""Configuration rows -> our JSON. Amounts are Kubernetes quantities; what Kueue nests is nested the same way.

Parts of Kubernetes' own objects keep their keys as they are there: label selectors, taints, tolerations and parameters.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from queues.models import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LimitRange,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    RuntimeClass,
    Topology,
    WorkloadPriorityClass,
)
from scheduling.model.quantity import format_amount


def _object_json(row: Any) -> dict[str, Any]:
    """What every object has."""
    return {
        "uid": row.uid,
        "name": row.name,
        "labels": row.labels,
        "annotations": row.annotations,
        "generation": row.generation,
        "created_at": row.created_at,
        "deletion_requested_at": row.deletion_requested_at,
    }


def _resource_group_json(group: ResourceGroup) -> dict[str, Any]:
    cells: dict[str, list[dict[str, Any]]] = {flavor: [] for flavor in group.flavors}
    for quota in group.quotas.all():
        cells.setdefault(quota.flavor, []).append(
            {
                "name": quota.resource,
                "nominal_quota": format_amount(quota.resource, quota.nominal_quota),
                "borrowing_limit": _limit(quota.resource, quota.borrowing_limit),
                "lending_limit": _limit(quota.resource, quota.lending_limit),
            }
        )
    return {
        "covered_resources": group.covered_resources,
        "flavors": [{"name": flavor, "resources": resources} for flavor, resources in cells.items()],
    }


def _limit(resource: str, amount: int | None) -> str | None:
    return None if amount is None else format_amount(resource, amount)


def _resource_groups_json(row: ClusterQueue | Cohort) -> list[dict[str, Any]]:
    return [_resource_group_json(group) for group in row.resource_groups.all()]


def _weight(row: Any) -> str:
    return f"{row.fair_sharing_weight.normalize():f}"


def cluster_queue_json(row: ClusterQueue) -> dict[str, Any]:
    """A ClusterQueue whose `resource_groups__quotas` are prefetched."""
    return {
        **_object_json(row),
        "cohort": row.cohort_name,
        "queueing_strategy": row.queueing_strategy,
        "namespace_selector": row.namespace_selector,
        "flavor_fungibility": {
            "when_can_borrow": row.when_can_borrow,
            "when_can_preempt": row.when_can_preempt,
            "preference": row.flavor_preference,
        },
        "preemption": {
            "within_cluster_queue": row.within_cluster_queue,
            "reclaim_within_cohort": row.reclaim_within_cohort,
            "borrow_within_cohort": {
                "policy": row.borrow_within_cohort_policy,
                "max_priority_threshold": row.borrow_within_cohort_max_priority_threshold,
            },
        },
        "admission_checks": [
            {"name": check["name"], "on_flavors": check.get("onFlavors") or []} for check in row.admission_checks
        ],
        "stop_policy": row.stop_policy,
        "fair_weight": _weight(row),
        "admission_mode": row.admission_mode,
        "preempt_for_devices": row.preempt_for_devices,
        "preemption_protection": row.preemption_protection,
        "resource_groups": _resource_groups_json(row),
    }


def cohort_json(row: Cohort) -> dict[str, Any]:
    """A Cohort whose `resource_groups__quotas` are prefetched."""
    return {
        **_object_json(row),
        "parent": row.parent_name,
        "fair_weight": _weight(row),
        "preemption_protection": row.preemption_protection,
        "resource_groups": _resource_groups_json(row),
    }


def local_queue_json(row: LocalQueue) -> dict[str, Any]:
    """A LocalQueue."""
    return {
        **_object_json(row),
        "namespace": row.namespace,
        "cluster_queue": row.cluster_queue_name,
        "stop_policy": row.stop_policy,
        "fair_weight": _weight(row),
    }


def resource_flavor_json(row: ResourceFlavor) -> dict[str, Any]:
    """A ResourceFlavor."""
    return {
        **_object_json(row),
        "node_labels": row.node_labels,
        "node_taints": row.node_taints,
        "tolerations": row.tolerations,
        "topology": row.topology_name,
    }


def _topology_json(row: Topology) -> dict[str, Any]:
    return {**_object_json(row), "levels": row.levels}


def _admission_check_json(row: AdmissionCheck) -> dict[str, Any]:
    return {
        **_object_json(row),
        "controller_name": row.controller_name,
        "parameters": row.parameters,
        "active": row.active,
    }


def _workload_priority_class_json(row: WorkloadPriorityClass) -> dict[str, Any]:
    return {**_object_json(row), "value": row.value, "description": row.description}


def _priority_class_json(row: PriorityClass) -> dict[str, Any]:
    return {
        **_object_json(row),
        "value": row.value,
        "description": row.description,
        "global_default": row.global_default,
        "preemption_policy": row.preemption_policy,
    }


def _resource_quota_json(row: ResourceQuota) -> dict[str, Any]:
    return {
        **_object_json(row),
        "namespace": row.namespace,
        "hard": row.hard,
        "scopes": row.scopes,
        "scope_selector": row.scope_selector,
    }


def _limit_range_json(row: LimitRange) -> dict[str, Any]:
    return {**_object_json(row), "namespace": row.namespace, "limits": row.limits}


def _runtime_class_json(row: RuntimeClass) -> dict[str, Any]:
    return {
        **_object_json(row),
        "handler": row.handler,
        "pod_overhead": row.pod_overhead,
        "scheduling": row.scheduling,
    }


RENDERERS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "AdmissionCheck": _admission_check_json,
    "ClusterQueue": cluster_queue_json,
    "Cohort": cohort_json,
    "LimitRange": _limit_range_json,
    "LocalQueue": local_queue_json,
    "Namespace": _object_json,
    "PriorityClass": _priority_class_json,
    "ResourceFlavor": resource_flavor_json,
    "ResourceQuota": _resource_quota_json,
    "RuntimeClass": _runtime_class_json,
    "Topology": _topology_json,
    "WorkloadPriorityClass": _workload_priority_class_json,
}
