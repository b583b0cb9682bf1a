"""A stand-in autoscaler: answers ProvisioningRequests with nodes of one group, up to its maximum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import parse_amount
from scheduling.model.resources import pod_requests
from scheduling.model.times import parse_rfc3339
from simulation.api.objects import JsonObject, condition_is_true, name_of
from simulation.api.pods import pod_condition
from simulation.environment import Environment

_MANAGER = "cluster-autoscaler"
GROUP_LABEL: Final = "autoscaling.kueueweb.io/provisioned-for"
"""On each node that was made for a request: the request's name."""
GROUP_DETAIL: Final = "NodeGroup"
"""The class detail that repeats it."""


class Autoscaler:
    """Accepts a request at once, and creates its nodes after `provision_seconds`.

    A request fails if its pods fit no node of the group, or if it needs more nodes than are left. Created nodes stay
    until they are deleted.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        request = self._environment.store.get("provisioningrequests", namespace, name)
        if request is None or condition_is_true(request, "Provisioned") or condition_is_true(request, "Failed"):
            return None
        if not condition_is_true(request, "Accepted"):
            request = self._say(request, "Accepted", "the request is being looked at")
        options = self._environment.options
        since = parse_rfc3339(request["metadata"]["creationTimestamp"])
        due = since + self._environment.scaled(options.provision_seconds)
        if self._environment.now() < due:
            return due
        self._provision(namespace, request)
        return None

    def _provision(self, namespace: str, request: JsonObject) -> None:
        group = self._environment.options.node_group
        if not group:
            self._say(request, "Failed", "there is no node group that could grow")
            return
        needed = 0
        for entry in request["spec"].get("podSets") or ():
            template = self._environment.store.get("podtemplates", namespace, entry["podTemplateRef"]["name"])
            if template is None:
                self._say(request, "Failed", f"there is no PodTemplate {entry['podTemplateRef']['name']}")
                return
            per_node = _pods_per_node(template["template"], group)
            if not per_node:
                self._say(request, "Failed", "no node of the group is large enough for a pod")
                return
            needed += -(-int(entry["count"]) // per_node)
        left = self._environment.options.max_provisioned - len(self._made())
        if needed > left:
            self._say(request, "Failed", f"{needed} nodes are needed, and the group can grow by {left}")
            return
        for number in range(needed):
            self._environment.create("nodes", self._node(group, request, number), _MANAGER)
        details = {GROUP_DETAIL: name_of(request)}
        self._say(request, "Provisioned", f"{needed} nodes were made", {"provisioningClassDetails": details})

    def _made(self) -> list[JsonObject]:
        nodes = self._environment.store.items("nodes")
        return [node for node in nodes if GROUP_LABEL in (node["metadata"].get("labels") or {})]

    def _node(self, group: Mapping[str, Any], request: JsonObject, number: int) -> JsonObject:
        name = f"{name_of(request)}-node-{number}"[-63:].lstrip("-")
        labels = {**(group.get("labels") or {}), "kubernetes.io/hostname": name, GROUP_LABEL: name_of(request)[:63]}
        ready = pod_condition("Ready", True, self._environment.now(), "KubeletReady")
        status = {
            "capacity": dict(group["allocatable"]),
            "allocatable": dict(group["allocatable"]),
            "conditions": [ready],
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": status,
        }

    def _say(self, request: JsonObject, type_: str, message: str, more: JsonObject | None = None) -> JsonObject:
        status = dict(request.get("status") or {})
        entry = pod_condition(type_, True, self._environment.now(), type_, message)
        status["conditions"] = [*(status.get("conditions") or ()), entry]
        return self._environment.set_status("provisioningrequests", request, {**status, **(more or {})}, _MANAGER)


def _pods_per_node(template: JsonObject, group: Mapping[str, Any]) -> int:
    """Return how many of the pods an empty node of the group holds; none where it has not the labels that they
    ask for."""
    labels = group.get("labels") or {}
    selector = (template.get("spec") or {}).get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return 0
    allocatable = {name: parse_amount(name, text) for name, text in group["allocatable"].items()}
    asked = {**pod_requests(PodTemplate.from_manifest(template)), "pods": 1}
    return min((allocatable.get(name, 0) // amount for name, amount in asked.items() if amount), default=0)
