"""Kinds of other projects: their owners, and the kinds to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FOREIGN_GROUPS: Final[Mapping[str, str]] = {
    "batch.volcano.sh": "Volcano",
    "scheduling.volcano.sh": "Volcano",
    "bus.volcano.sh": "Volcano",
    "flow.volcano.sh": "Volcano",
    "autoscaling": "Kubernetes",
    "kueue.x-k8s.io": "Kueue",
    "apps": "Kubernetes",
    "resource.k8s.io": "Kubernetes",
    "": "Kubernetes",
}
"""API group -> its project, used in the error message for unsupported kinds."""

_LEFT_TO_THE_CLUSTER: Final = "Leave it out of this call, and apply it with kubectl"
REPLACEMENTS: Final[Mapping[tuple[str, str], str]] = {
    ("batch.volcano.sh", "CronJob"): "Write it as a CronJob of batch/v1 whose jobTemplate names a queue",
    ("flow.volcano.sh", "JobTemplate"): "Apply it together with a JobFlow that names it, or write its spec as a Job of "
    "batch.volcano.sh/v1alpha1, which is translated",
    ("scheduling.volcano.sh", "PodGroup"): "Apply it together with the pods that name it, or write its name as the "
    "label kueue.x-k8s.io/pod-group-name of its pods, and minMember as their annotation "
    "kueue.x-k8s.io/pod-group-total-count",
    ("apps", "ReplicaSet"): "Write it as a Deployment, which creates its own ReplicaSets",
    ("autoscaling", "HorizontalPodAutoscaler"): f"{_LEFT_TO_THE_CLUSTER}: the workloads of its Deployment follow",
    **dict.fromkeys(
        [("resource.k8s.io", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")],
        f"{_LEFT_TO_THE_CLUSTER}: claims of jobs are read from the cluster",
    ),
    ("argoproj.io", "Workflow"): "Leave it out of this call, and label its pods with a queue: then they are workloads",
    (
        "argoproj.io",
        "WorkflowTemplate",
    ): "Leave it out of this call, and label its pods with a queue: then they are workloads",
    (
        "tekton.dev",
        "PipelineRun",
    ): "Leave it out of this call, and label its pods with a queue: then they are workloads",
}
"""(API group, kind) -> the alternative."""
