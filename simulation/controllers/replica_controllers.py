"""Controllers of Deployments and ReplicaSets: keep the requested number of pods, replace finished or outdated ones."""

from __future__ import annotations

from simulation.api.objects import (
    JsonObject,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    random_suffix,
    uid_of,
    with_condition,
)
from simulation.api.pods import is_active, is_ready, owned_pod, pod_condition, template_hash
from simulation.environment import Environment

_MANAGER = "kube-controller-manager"
TEMPLATE_HASH = "pod-template-hash"


class DeploymentController:
    """Keeps one ReplicaSet per template. The present template's has all replicas; the others have none."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        deployment = self._environment.store.get("deployments", namespace, name)
        if deployment is None or is_deleting(deployment):
            return None
        digest = template_hash(deployment["spec"]["template"])
        owned = [item for _, item in self._environment.store.owned_by(uid_of(deployment), "replicasets")]
        current = [item for item in owned if labels_of(item).get(TEMPLATE_HASH) == digest]
        if not current:
            self._create(deployment, digest)
        for item in owned:
            self._scale(item, deployment["spec"]["replicas"] if item in current else 0)
        self._report(deployment)
        return None

    def _create(self, deployment: JsonObject, digest: str) -> None:
        spec = deployment["spec"]
        template = spec["template"]
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), TEMPLATE_HASH: digest}
        replica_set: JsonObject = {
            "metadata": {
                "name": f"{name_of(deployment)}-{digest}",
                "namespace": namespace_of(deployment),
                "labels": labels,
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": {
                "replicas": spec["replicas"],
                "selector": {"matchLabels": {**spec["selector"]["matchLabels"], TEMPLATE_HASH: digest}},
                "template": {**template, "metadata": {**metadata, "labels": labels}},
            },
        }
        self._environment.create("replicasets", replica_set, _MANAGER)

    def _scale(self, replica_set: JsonObject, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            scaled = {**replica_set, "spec": {**replica_set["spec"], "replicas": replicas}}
            self._environment.set_object("replicasets", scaled, _MANAGER)

    def _report(self, deployment: JsonObject) -> None:
        sets = [item for _, item in self._environment.store.owned_by(uid_of(deployment), "replicasets")]
        ready = sum((item.get("status") or {}).get("readyReplicas", 0) for item in sets)
        replicas = sum((item.get("status") or {}).get("replicas", 0) for item in sets)
        status = dict(deployment.get("status") or {})
        available = pod_condition(
            "Available", ready >= deployment["spec"]["replicas"], self._environment.now(), "MinimumReplicasAvailable"
        )
        status.update(
            {
                "observedGeneration": deployment["metadata"]["generation"],
                "replicas": replicas,
                "readyReplicas": ready,
                "availableReplicas": ready,
                "updatedReplicas": replicas,
                "conditions": with_condition(list(status.get("conditions") or ()), available),
            }
        )
        if status != deployment.get("status"):
            self._environment.set_status("deployments", deployment, status, _MANAGER)


class ReplicaSetController:
    """Keeps the number of active pods."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        replica_set = self._environment.store.get("replicasets", namespace, name)
        if replica_set is None or is_deleting(replica_set):
            return None
        active = self._active(replica_set)
        wanted = replica_set["spec"]["replicas"]
        for pod in sorted(active, key=lambda pod: (is_ready(pod), name_of(pod)))[: max(0, len(active) - wanted)]:
            self._environment.delete("pods", pod)
        for _ in range(wanted - len(active)):
            self._create_pod(replica_set)
        active = self._active(replica_set)
        status = {"replicas": len(active), "readyReplicas": sum(1 for pod in active if is_ready(pod))}
        if replica_set.get("status") != status:
            self._environment.set_status("replicasets", replica_set, status, _MANAGER)
        return None

    def _active(self, replica_set: JsonObject) -> list[JsonObject]:
        return [pod for _, pod in self._environment.store.owned_by(uid_of(replica_set), "pods") if is_active(pod)]

    def _create_pod(self, replica_set: JsonObject) -> None:
        template = replica_set["spec"]["template"]
        version = str(self._environment.store.resource_version)
        suffix = random_suffix(self._environment.registry.seed, uid_of(replica_set), version)
        pod = owned_pod(replica_set, template, f"{name_of(replica_set)}-{suffix}")
        pod["metadata"]["generateName"] = f"{name_of(replica_set)}-"
        self._environment.create("pods", pod, _MANAGER)
