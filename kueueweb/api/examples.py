"""The examples of the OpenAPI document: for each error and each operation, and a line about each group of addresses."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final


def _error(reason: str, message: str, *located: Mapping[str, Any]) -> dict[str, Any]:
    return {"reason": reason, "message": message, "errors": list(located)}


ERRORS: Final[Mapping[int, dict[str, Any]]] = {
    400: _error(
        "Invalid",
        "pod_sets[0].count: Invalid value: -1: must be greater than or equal to 0",
        {
            "document": 0,
            "path": "pod_sets[0].count",
            "value": -1,
            "rule": "must be greater than or equal to 0",
            "remedy": "Write a whole number from 0.",
            "reason": "Invalid",
        },
    ),
    401: _error("NotAuthenticated", "Authentication credentials were not provided."),
    403: _error("NotPermitted", "alice may not change workloads of namespace ai-research."),
    404: _error("NotFound", "There is no workload ai-research/train."),
    405: _error("MethodNotAllowed", 'Method "PUT" not allowed.'),
    409: _error("Conflict", "Workload ai-research/train has finished."),
    413: _error("TooLarge", "The body has more than 64 MiB; send it in several requests."),
    415: _error("UnsupportedMediaType", 'Unsupported media type "text/plain" in request.'),
    429: _error("LimitReached", "Namespace ai-research has 10,000 unfinished workloads, the most that it may have."),
    503: _error("Unavailable", "The database or Redis does not answer. Try again in a moment."),
}
"""By status. Reasons are stable; messages are for people."""

_EXAMPLES: Final = Path(__file__).with_name("examples.json")


@cache
def examples() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Return requests (`request`; YAML as text) and answers (`answer`) by method and path; lists are shortened to one
    row. `make examples` writes them."""
    found: dict[str, Any] = json.loads(_EXAMPLES.read_text(encoding="utf-8"))
    return {(method, path): body for (method, path), body in ((key.split(" "), body) for key, body in found.items())}


TAGS: Final[Mapping[str, str]] = {
    "admission-checks": "Checks that must be Ready before a workload is admitted (Kueue's AdmissionCheck).",
    "audit": "The audit log: users, actions, times and addresses. It cannot be edited.",
    "auth": "Tokens: by password, or by a device code that a user confirms in the browser.",
    "checkpoints": "The moments of the past that can be shown, and their figures.",
    "cluster-overviews": "Every cluster at a glance.",
    "cluster-queues": "Quotas by flavor and resource, and how they are used (Kueue's ClusterQueue).",
    "clusters": "The Kubernetes clusters: their modes, settings and addresses.",
    "cohorts": "ClusterQueues that lend each other quota, in a tree (Kueue's Cohort).",
    "decisions": "The scheduler's decisions, with their reasons.",
    "device-allocations": "Slices of devices and the workloads that hold them.",
    "device-usage": "The measured use of devices by containers.",
    "devices": "The devices of all nodes, with their slices.",
    "diagnostics": "The state of a cluster's scheduler, push and watcher.",
    "drift": "Differences between the cluster and the decisions.",
    "fragmentation": "The largest requests that still fit, and free capacity that cannot be used.",
    "history": "Numbers over time, for charts.",
    "limit-ranges": "Defaults and limits of pods in a namespace (Kubernetes' LimitRange).",
    "local-queues": "The queues of a namespace, to which its users submit (Kueue's LocalQueue).",
    "manifests": "All objects as Kubernetes manifests: apply, read, compare, delete.",
    "multikueue-clusters": "Clusters to which workloads are dispatched (Kueue's MultiKueueCluster).",
    "manifest-templates": "Manifests that a user saved under a name, to submit them again.",
    "multikueue-configs": "The clusters to which a check dispatches workloads (Kueue's MultiKueueConfig).",
    "namespaces": "The namespaces and their labels.",
    "nodes": "The nodes: capacity, pods, cordon and drain.",
    "headroom": "The amounts that a user may still use, in each queue to which the user may submit.",
    "job-flows": "Jobs that start after each other (Volcano's JobFlow), with their state.",
    "notification-rules": "The notification rules of a user, and their channels.",
    "notifications": "The notifications of a user.",
    "overview": "The state of the cluster in numbers, and the health of kueueweb.",
    "preview": "The result of a submission, without making it.",
    "prices": "Hourly prices of resources, by flavor.",
    "priority-classes": "Priorities of pods (Kubernetes' PriorityClass).",
    "provisioning-request-configs": "How nodes are requested (Kueue's ProvisioningRequestConfig).",
    "published-devices": "Devices that drivers publish for claims (Kubernetes' ResourceSlice).",
    "reports": "Waits, usage, cost, idle devices and preemptions over a period.",
    "reservation-calendar": "The windows in which nodes are reserved.",
    "reservations": "Nodes that are kept free in windows of time.",
    "resource-flavors": "Kinds of nodes with a quota of their own (Kueue's ResourceFlavor).",
    "resource-quotas": "Limits of a namespace (Kubernetes' ResourceQuota).",
    "role-bindings": "Roles of users and groups, by cluster, namespace and cohort.",
    "runtime-classes": "Overheads of runtimes on pods' requests (Kubernetes' RuntimeClass).",
    "saved-views": "List views that a user saved under a name.",
    "scheduling-cycles": "The cycles of the scheduler.",
    "served-objects": "Kueue's objects in clusters where kueueweb serves them.",
    "service-accounts": "Service accounts and their tokens.",
    "session": "The user of the session.",
    "shadow": "Differences between our decisions and Kueue's.",
    "studio": "Questions that a studio answers by running scheduling cycles on a copy of the cluster.",
    "topologies": "Levels of blocks, racks and hosts (Kueue's Topology).",
    "users": "Accounts of people.",
    "workload-priority-classes": "Priorities of workloads (Kueue's WorkloadPriorityClass).",
    "workloads": "Submit, follow, stop, resume and explain workloads.",
}
"""By tag, which is the first part of the path."""
