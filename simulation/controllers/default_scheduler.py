"""The cluster's own scheduler: binds pods that name no other, by labels, taints and free amounts."""

from __future__ import annotations

from collections import Counter

from simulation.api.objects import JsonObject, condition, condition_is_true, is_deleting, name_of
from simulation.api.pods import (
    NodeUsage,
    is_finished,
    node_of,
    pod_condition,
    selection_refusal,
    with_pod_condition,
)
from simulation.api.registry import Writer
from simulation.environment import Environment

_MANAGER = "kube-scheduler"
DEFAULT_SCHEDULER = "default-scheduler"


class DefaultScheduler:
    """Binds to the first node, in order of names, that takes the pod."""

    def __init__(self, environment: Environment, usage: NodeUsage) -> None:
        self._environment = environment
        self._usage = usage

    def reconcile(self, namespace: str, name: str) -> float | None:
        pod = self._environment.store.get("pods", namespace, name)
        if pod is None or not self.is_waiting(pod):
            return None
        refusals: Counter[str] = Counter()
        for node in self._environment.store.items("nodes"):
            refusal = self._refusal(pod, node)
            if not refusal:
                target = {"target": {"kind": "Node", "name": name_of(node)}}
                self._environment.registry.bind(namespace, name, target, Writer(_MANAGER))
                return None
            refusals[refusal] += 1
        self._report(pod, refusals)
        return None

    @staticmethod
    def is_waiting(pod: JsonObject) -> bool:
        """Return whether the pod belongs to this scheduler and is still unbound."""
        spec = pod["spec"]
        mine = spec.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        return mine and not (node_of(pod) or spec.get("schedulingGates") or is_deleting(pod) or is_finished(pod))

    def _refusal(self, pod: JsonObject, node: JsonObject) -> str:
        if not condition_is_true(node, "Ready"):
            return "node(s) were not ready"
        refusal = selection_refusal(pod, node)
        if refusal:
            return refusal
        lacking = self._usage.lacking(pod, node)
        return f"Insufficient {lacking}" if lacking else ""

    def _report(self, pod: JsonObject, refusals: Counter[str]) -> None:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(refusals.items()))
        message = f"0/{refusals.total()} nodes are available: {reasons}."
        before = condition(pod, "PodScheduled")
        if before is not None and before.get("message") == message:
            return
        entry = pod_condition("PodScheduled", False, self._environment.now(), "Unschedulable", message)
        status = {**pod["status"], "conditions": with_pod_condition(pod, entry)}
        self._environment.set_status("pods", pod, status, _MANAGER)
