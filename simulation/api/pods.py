"""Pods: their requests, the nodes that may run them, and the usage of the nodes."""

from __future__ import annotations

import copy
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping

import orjson

from scheduling.model.quantity import parse_amount
from scheduling.model.selectors import (
    HOSTNAME_LABEL,
    Taint,
    Toleration,
    matches_node_selector,
    required_node_affinity,
    untolerated_taint,
)
from simulation.api.objects import (
    JsonObject,
    condition_is_true,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    timestamp,
    with_condition,
)
from simulation.api.store import Change, ObjectKey, ObjectStore

PODS = "pods"
_UNLIMITED_WHEN_ABSENT = ("cpu", "memory", PODS, "ephemeral-storage")


def owned_pod(
    owner: JsonObject,
    template: JsonObject,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return a pod of a controller's template; labels and annotations are added to the template's."""
    metadata = template.get("metadata") or {}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace_of(owner),
            "labels": {**(metadata.get("labels") or {}), **(labels or {})},
            "annotations": {**(metadata.get("annotations") or {}), **(annotations or {})},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": copy.deepcopy(template.get("spec") or {}),
    }


def template_hash(*templates: JsonObject) -> str:
    """Ten hexadecimal digits that differ when a template differs."""
    return hashlib.sha256(orjson.dumps(templates, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]


def phase_of(pod: JsonObject) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_finished(pod: JsonObject) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: JsonObject) -> bool:
    """Return whether the pod has neither finished nor is being deleted, which is what a Job counts as active."""
    return not is_finished(pod) and not is_deleting(pod)


def is_ready(pod: JsonObject) -> bool:
    return condition_is_true(pod, "Ready") and not is_deleting(pod)


def node_of(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName") or "")


def requests_of(pod: JsonObject) -> dict[str, int]:
    """Amounts in base units: the sum over containers, at least the largest init container, and one pod."""
    spec = pod["spec"]
    total: dict[str, int] = defaultdict(int)
    for container in spec.get("containers") or ():
        for resource, amount in _container_requests(container).items():
            total[resource] += amount
    for container in spec.get("initContainers") or ():
        for resource, amount in _container_requests(container).items():
            total[resource] = max(total[resource], amount)
    for resource, text in (spec.get("overhead") or {}).items():
        total[resource] += parse_amount(resource, text)
    total[PODS] = 1
    return dict(total)


def _container_requests(container: JsonObject) -> dict[str, int]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {resource: parse_amount(resource, text) for resource, text in requests.items()}


def pod_condition(kind: str, status: bool, now: float, reason: str = "", message: str = "") -> JsonObject:
    """Return one entry of status.conditions."""
    entry = {"type": kind, "status": "True" if status else "False", "lastTransitionTime": timestamp(now)}
    if reason:
        entry["reason"] = reason
    if message:
        entry["message"] = message
    return entry


def with_pod_condition(pod: JsonObject, entry: JsonObject) -> list[JsonObject]:
    return with_condition(list((pod.get("status") or {}).get("conditions") or ()), entry)


def selection_refusal(pod: JsonObject, node: JsonObject) -> str:
    """Return why the node's labels, taints or readiness exclude the pod; "" if they do not."""
    spec = pod["spec"]
    labels = {HOSTNAME_LABEL: name_of(node), **labels_of(node)}
    affinity = required_node_affinity(spec)
    if not matches_node_selector(spec.get("nodeSelector") or {}, labels) or (
        affinity is not None and not affinity.matches(name_of(node), labels)
    ):
        return "node(s) didn't match Pod's node affinity/selector"
    tolerations = [Toleration.from_manifest(entry) for entry in spec.get("tolerations") or ()]
    taints = [Taint.from_manifest(entry) for entry in node["spec"].get("taints") or ()]
    taint = untolerated_taint(taints, tolerations)
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    return "node(s) were unschedulable" if node["spec"].get("unschedulable") else ""


class NodeUsage:
    """The requests of the bound, unfinished pods on each node; follows the store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._pods: dict[str, dict[ObjectKey, None]] = defaultdict(dict)
        for pod in store.items("pods"):
            self._add(pod, 1)
        store.listeners.append(self._on_change)

    def pods_on(self, node: str) -> Iterator[JsonObject]:
        """Yield the pods bound to a node, finished ones too."""
        for key in list(self._pods.get(node, ())):
            pod = self._store.get("pods", *key)
            if pod is not None:
                yield pod

    def lacking(self, pod: JsonObject, node: JsonObject) -> str:
        """Return the first resource of which the node has too little left for the pod; "" if it fits. The pod itself
        may already be counted (the kubelet's admission) or not (the scheduler's filter)."""
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        used = self._used.get(name_of(node), {})
        counted = node_of(pod) == name_of(node)
        for resource, amount in sorted(requests_of(pod).items()):
            if resource not in allocatable:
                # The kubelet ignores extended resources that its node does not have; the scheduler does not.
                if counted or resource in _UNLIMITED_WHEN_ABSENT:
                    continue
                return resource
            others = used.get(resource, 0) - (amount if counted else 0)
            if amount and others + amount > parse_amount(resource, allocatable[resource]):
                return resource
        return ""

    def _on_change(self, plural: str, change: Change) -> None:
        if plural != "pods":
            return
        if change.previous is not None:
            self._add(change.previous, -1)
        if change.type != "DELETED":
            self._add(change.object, 1)

    def _add(self, pod: JsonObject, sign: int) -> None:
        node = node_of(pod)
        if not node:
            return
        key = (namespace_of(pod), name_of(pod))
        if sign > 0:
            self._pods[node][key] = None
        else:
            self._pods[node].pop(key, None)
        if not is_finished(pod):
            for resource, amount in requests_of(pod).items():
                self._used[node][resource] += sign * amount
