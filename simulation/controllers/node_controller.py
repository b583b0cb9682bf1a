"""Controllers of nodes that stop answering, pods of deleted nodes, and objects of deleted namespaces and owners."""

from __future__ import annotations

from scheduling.model.selectors import Taint, Toleration
from scheduling.model.times import parse_rfc3339
from simulation.api.objects import (
    JsonObject,
    condition,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)
from simulation.api.pods import NodeUsage, is_finished, node_of, pod_condition, with_pod_condition
from simulation.api.registry import FOREGROUND, ORPHAN
from simulation.api.resources import BY_PLURAL, RESOURCES
from simulation.controllers.device_plugin import DevicePlugin
from simulation.environment import Environment

_MANAGER = "kube-controller-manager"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


class NodeController:
    """Taints nodes by their Ready condition and, after a while, evicts the pods of those that stay not ready."""

    def __init__(self, environment: Environment, usage: NodeUsage, plugin: DevicePlugin) -> None:
        self._environment = environment
        self._usage = usage
        self._plugin = plugin

    def reconcile(self, namespace: str, name: str) -> float | None:
        node = self._environment.store.get("nodes", "", name)
        if node is None:
            self._collect_pods(name)
            return None
        ready = condition(node, "Ready") or {"status": "Unknown", "lastTransitionTime": None}
        self._set_taints(node, str(ready["status"]))
        if ready["status"] == "True":
            self._plugin.answer_handshake(node)
            return None
        if ready["lastTransitionTime"] is None:
            return None
        return self._evict(name, parse_rfc3339(ready["lastTransitionTime"]))

    def _set_taints(self, node: JsonObject, ready: str) -> None:
        key = {"True": "", "False": NOT_READY}.get(ready, UNREACHABLE)
        before = node["spec"].get("taints") or []
        taints = [taint for taint in before if taint["key"] not in (NOT_READY, UNREACHABLE)]
        if key:
            taints += [{"key": key, "effect": "NoSchedule"}, {"key": key, "effect": "NoExecute"}]
        if taints != before:
            self._environment.set_object("nodes", {**node, "spec": {**node["spec"], "taints": taints}}, _MANAGER)

    def _evict(self, name: str, since: float) -> float | None:
        due = since + self._environment.scaled(self._environment.options.eviction_seconds)
        if self._environment.now() < due:
            return due
        for pod in self._usage.pods_on(name):
            tolerations = [Toleration.from_manifest(entry) for entry in pod["spec"].get("tolerations") or ()]
            tolerated = any(entry.tolerates(Taint.from_manifest(_UNREACHABLE_TAINT)) for entry in tolerations)
            if not is_deleting(pod) and not is_finished(pod) and not tolerated:
                self._environment.delete("pods", pod)
        return None

    def _collect_pods(self, name: str) -> None:
        for pod in self._usage.pods_on(name):
            collect_pod(self._environment, pod, "PodGC: node no longer exists")


def collect_pod(environment: Environment, pod: JsonObject, why: str) -> None:
    """Fail and delete a pod that no kubelet will end, as Kubernetes' pod garbage collector does."""
    if not is_finished(pod):
        entry = pod_condition("DisruptionTarget", True, environment.now(), "DeletionByPodGC", why)
        conditions = with_pod_condition(pod, entry)
        status = {**pod["status"], "phase": "Failed", "conditions": conditions}
        pod = environment.set_status("pods", pod, status, _MANAGER)
    environment.registry.remove(BY_PLURAL["pods"], pod)


class PodCollector:
    """Pods that were bound to a node that is not there, and those that are deleted before they were bound."""

    def __init__(self, environment: Environment, nodes: NodeController) -> None:
        self._environment = environment
        self._nodes = nodes

    def reconcile(self, namespace: str, name: str) -> float | None:
        pod = self._environment.store.get("pods", namespace, name)
        if pod is None:
            return None
        if not node_of(pod):
            if is_deleting(pod) and not is_finished(pod):
                collect_pod(self._environment, pod, "PodGC: unscheduled and terminating")
        elif self._environment.store.get("nodes", "", node_of(pod)) is None:
            self._nodes.reconcile("", node_of(pod))
        return None


class NamespaceController:
    """A namespace that is being deleted takes everything in it along, then goes itself."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        found = self._environment.store.get("namespaces", "", name)
        if found is None or not is_deleting(found):
            return None
        remaining = False
        for resource in RESOURCES:
            for item in self._environment.store.items(resource.plural, name) if resource.namespaced else ():
                self._environment.delete(resource.plural, item)
                remaining = remaining or self._environment.store.get(resource.plural, name, name_of(item)) is not None
        if remaining:
            return self._environment.now() + self._environment.scaled(self._environment.options.stop_seconds)
        metadata = {**found["metadata"], "finalizers": []}
        self._environment.set_object("namespaces", {**found, "metadata": metadata}, _MANAGER)
        return None


class GarbageCollector:
    """Deletes owned objects with their owner, and finishes deletions in the foreground or with orphans."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def owner_is_gone(self, uid: str) -> None:
        """Delete objects of this owner, unless they have another owner that exists."""
        for plural, item in self._environment.store.owned_by(uid):
            references = item["metadata"].get("ownerReferences") or ()
            if all(reference["uid"] == uid or not self._exists(item, reference) for reference in references):
                self._environment.delete(plural, item)

    def finish_deletion(self, plural: str, item: JsonObject) -> None:
        """Drop the finalizers of foreground and orphan deletion once their work is done."""
        finalizers = item["metadata"].get("finalizers") or []
        if not is_deleting(item) or not {FOREGROUND, ORPHAN} & set(finalizers):
            return
        owned = self._environment.store.owned_by(uid_of(item))
        if ORPHAN in finalizers:
            for kind, dependent in owned:
                kept = [entry for entry in dependent["metadata"]["ownerReferences"] if entry["uid"] != uid_of(item)]
                metadata = {**dependent["metadata"], "ownerReferences": kept}
                self._environment.set_object(kind, {**dependent, "metadata": metadata}, _MANAGER)
        else:
            for kind, dependent in owned:
                self._environment.delete(kind, dependent)
            if self._environment.store.owned_by(uid_of(item)):
                return
        metadata = {**item["metadata"], "finalizers": [x for x in finalizers if x not in (FOREGROUND, ORPHAN)]}
        self._environment.set_object(plural, {**item, "metadata": metadata}, _MANAGER)

    def _exists(self, item: JsonObject, reference: JsonObject) -> bool:
        for resource in RESOURCES:
            if (resource.api_version, resource.kind) == (reference["apiVersion"], reference["kind"]):
                namespace = namespace_of(item) if resource.namespaced else ""
                owner = self._environment.store.get(resource.plural, namespace, reference["name"])
                return owner is not None and uid_of(owner) == reference["uid"]
        return False


_UNREACHABLE_TAINT = {"key": UNREACHABLE, "effect": "NoExecute"}
