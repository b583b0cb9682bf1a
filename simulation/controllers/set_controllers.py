"""Controllers of StatefulSets and LeaderWorkerSets: numbered pods that are recreated under their names."""

from __future__ import annotations

from collections.abc import Iterator

from simulation.api.objects import (
    JsonObject,
    is_deleting,
    labels_of,
    name_of,
    uid_of,
)
from simulation.api.pods import is_active, is_finished, is_ready, owned_pod, template_hash
from simulation.environment import Environment

_MANAGER = "kube-controller-manager"
_REVISION = "controller-revision-hash"
_LWS = "leaderworkerset.sigs.k8s.io"


class _NumberedPods:
    """The pods that an object owns, by name. Finished ones are deleted, so that they can be recreated."""

    def __init__(self, environment: Environment, owner: JsonObject) -> None:
        self._environment = environment
        owned = [pod for _, pod in environment.store.owned_by(uid_of(owner), "pods")]
        for pod in owned:
            if is_finished(pod) and not is_deleting(pod):
                environment.delete("pods", pod)
        self.by_name = {name_of(pod): pod for _, pod in environment.store.owned_by(uid_of(owner), "pods")}

    def is_ready(self, name: str) -> bool:
        pod = self.by_name.get(name)
        return pod is not None and is_active(pod) and is_ready(pod)

    def remove_others(self, names: list[str]) -> None:
        for name in self.by_name.keys() - set(names):
            if not is_deleting(self.by_name[name]):
                self._environment.delete("pods", self.by_name[name])

    def replace_one(self, names: list[str], revision: str) -> None:
        """Delete the last pod of an older template, once all pods after it are ready."""
        for name in reversed(names):
            pod = self.by_name.get(name)
            if pod is not None and labels_of(pod).get(_REVISION) != revision:
                if not is_deleting(pod):
                    self._environment.delete("pods", pod)
                return
            if not self.is_ready(name):
                return

    def updated(self, names: list[str], revision: str) -> int:
        pods = [self.by_name[name] for name in names if name in self.by_name]
        return sum(labels_of(pod).get(_REVISION) == revision for pod in pods)


class StatefulSetController:
    """Creates pods one after another, or all at once with the policy Parallel."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        stateful_set = self._environment.store.get("statefulsets", namespace, name)
        if stateful_set is None or is_deleting(stateful_set):
            return None
        spec = stateful_set["spec"]
        revision = f"{name}-{template_hash(spec['template'])}"
        names = [f"{name}-{number}" for number in range(int(spec["replicas"]))]
        pods = _NumberedPods(self._environment, stateful_set)
        pods.remove_others(names)
        pods.replace_one(names, revision)
        for number, pod_name in enumerate(names):
            if pod_name not in pods.by_name:
                labels = {
                    "statefulset.kubernetes.io/pod-name": pod_name, "apps.kubernetes.io/pod-index": str(number),
                    _REVISION: revision,
                }  # fmt: skip
                made = owned_pod(stateful_set, spec["template"], pod_name, labels=labels)
                self._environment.create("pods", made, _MANAGER)
            if spec.get("podManagementPolicy") != "Parallel" and not pods.is_ready(pod_name):
                break
        self._report(stateful_set, names, revision)
        return None

    def _report(self, stateful_set: JsonObject, names: list[str], revision: str) -> None:
        pods = _NumberedPods(self._environment, stateful_set)
        ready, updated = sum(map(pods.is_ready, names)), pods.updated(names, revision)
        before = stateful_set.get("status") or {}
        current = revision if updated == len(names) else before.get("currentRevision") or revision
        status = {
            "observedGeneration": stateful_set["metadata"]["generation"],
            "replicas": len(pods.by_name),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": revision,
        }
        if status != before:
            self._environment.set_status("statefulsets", stateful_set, status, _MANAGER)


class LeaderWorkerSetController:
    """Creates groups of a leader and its workers, all at once."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reconcile(self, namespace: str, name: str) -> float | None:
        lws = self._environment.store.get("leaderworkersets", namespace, name)
        if lws is None or is_deleting(lws):
            return None
        groups = [dict(self._wanted(lws, number)) for number in range(int(lws["spec"].get("replicas", 1)))]
        wanted = {pod_name: pod for group in groups for pod_name, pod in group.items()}
        pods = _NumberedPods(self._environment, lws)
        pods.remove_others(list(wanted))
        templates = lws["spec"]["leaderWorkerTemplate"]
        revision = template_hash(templates.get("leaderTemplate") or {}, templates["workerTemplate"])
        pods.replace_one(list(wanted), revision)
        for pod_name, pod in wanted.items():
            if pod_name not in pods.by_name:
                pod["metadata"]["labels"][_REVISION] = revision
                self._environment.create("pods", pod, _MANAGER)
        pods = _NumberedPods(self._environment, lws)
        status = {
            "observedGeneration": lws["metadata"]["generation"],
            "replicas": sum(any(pod_name in pods.by_name for pod_name in group) for group in groups),
            "readyReplicas": sum(all(map(pods.is_ready, group)) for group in groups),
            "updatedReplicas": sum(pods.updated(list(group), revision) == len(group) for group in groups),
        }
        if status != lws.get("status"):
            self._environment.set_status("leaderworkersets", lws, status, _MANAGER)
        return None

    @staticmethod
    def _wanted(lws: JsonObject, group: int) -> Iterator[tuple[str, JsonObject]]:
        templates = lws["spec"]["leaderWorkerTemplate"]
        leader_name = f"{name_of(lws)}-{group}"
        for worker in range(int(templates.get("size", 1))):
            labels = {
                f"{_LWS}/name": name_of(lws), f"{_LWS}/group-index": str(group), f"{_LWS}/worker-index": str(worker),
            }  # fmt: skip
            leads = worker == 0
            template = (templates.get("leaderTemplate") if leads else None) or templates["workerTemplate"]
            name = leader_name if leads else f"{leader_name}-{worker}"
            annotations = {} if leads else {f"{_LWS}/leader-name": leader_name}
            yield name, owned_pod(lws, template, name, labels=labels, annotations=annotations)
