"""The simulated cluster as a whole: objects, controllers and the time that drives them."""

from __future__ import annotations

import heapq
from collections import deque
from pathlib import Path
from typing import Any

import orjson

from clusters.jobs.registry import JOB_KINDS
from simulation.api.errors import bad_request, not_found
from simulation.api.objects import (
    JsonObject,
    condition,
    controller_of,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)
from simulation.api.pods import NodeUsage, is_finished, node_of, pod_condition, with_pod_condition
from simulation.api.registry import Registry, Writer
from simulation.api.resources import BY_KIND, CRDS, KUEUE_GROUP, RESOURCES, Resource, crd_name, crd_of
from simulation.api.store import Change, ObjectStore
from simulation.api.webhooks import RefusedByWebhook
from simulation.chaos import Chaos
from simulation.clock import Clock, VirtualClock
from simulation.controllers.autoscaler import Autoscaler
from simulation.controllers.cron_job_controller import CronJobController
from simulation.controllers.default_scheduler import DefaultScheduler
from simulation.controllers.device_plugin import DevicePlugin
from simulation.controllers.job_controller import JobController
from simulation.controllers.kubelet import Kubelet
from simulation.controllers.node_controller import (
    GarbageCollector,
    NamespaceController,
    NodeController,
    PodCollector,
)
from simulation.controllers.operators import REPORTS, OperatedJobController
from simulation.controllers.replica_controllers import DeploymentController, ReplicaSetController
from simulation.controllers.set_controllers import LeaderWorkerSetController, StatefulSetController
from simulation.environment import Controller, Environment, Options

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

_RETRY_SECONDS = 5.0
"""When a controller tries again what a webhook refused."""
_WorkKey = tuple[str, str, str]
_OWNER = "owner"
_NODE_STATES = {
    "ready": ("True", "KubeletReady"),
    "not-ready": ("False", "KubeletNotReady"),
    "unreachable": ("Unknown", "NodeStatusUnknown"),
}
_MORE_NODE_STATES = ("cordoned", "uncordoned", "gone")


class SimulatedCluster:
    """All state in memory; `settle` brings it up to the clock's present.

    Controllers read what is stored and write what follows, so nothing but the objects needs saving. The same seed,
    start and requests give the same objects, names and failures.

    * seed: what uids, generated names and failures are drawn from.
    * snapshot: a file that the state is loaded from, if it is there, and written to by `save`.
    """

    def __init__(
        self,
        clock: Clock,
        options: Options | None = None,
        seed: str = "1",
        snapshot: Path | None = None,
        history_limit: int = 5_000,
    ) -> None:
        self.clock = clock
        self.chaos = Chaos()
        self.refusal = 0
        """The status that every request is answered with; 0: none."""
        self.snapshot = snapshot
        # Versions of an empty cluster start above those of any earlier one, so that old versions are reported as
        # expired, not as invalid.
        self.store = ObjectStore(int(clock.now()) * 1000, history_limit)
        self.registry = Registry(self.store, clock, f"{seed}@{int(clock.now())}")
        self.environment = Environment(self.registry, options or Options())
        loaded = snapshot is not None and snapshot.exists() and self._load(snapshot)
        usage = NodeUsage(self.store)
        self._plugin = DevicePlugin(self.environment)
        self._usage = usage
        self._kubelet = Kubelet(self.environment, usage, self._plugin)
        self._collector = GarbageCollector(self.environment)
        nodes = NodeController(self.environment, usage, self._plugin)
        self._controllers: dict[str, tuple[Controller, ...]] = {
            "pods": (PodCollector(self.environment, nodes), DefaultScheduler(self.environment, usage), self._kubelet),
            "jobs": (JobController(self.environment),),
            "deployments": (DeploymentController(self.environment),),
            "replicasets": (ReplicaSetController(self.environment),),
            "nodes": (nodes,),
            "provisioningrequests": (Autoscaler(self.environment),),
            "namespaces": (NamespaceController(self.environment),),
            "statefulsets": (StatefulSetController(self.environment),),
            "leaderworkersets": (LeaderWorkerSetController(self.environment),),
            "cronjobs": (CronJobController(self.environment),),
            **{
                kind.plural: (OperatedJobController(self.environment, kind),)
                for kind in JOB_KINDS.values()
                if kind.kind in REPORTS
            },
        }
        self._work: deque[_WorkKey] = deque()
        self._queued: set[_WorkKey] = set()
        self._timers: list[tuple[float, _WorkKey]] = []
        self._waiting_pods: dict[_WorkKey, None] = {}
        self.store.listeners.append(self._on_change)
        if loaded:
            for plural in self._controllers:
                for item in self.store.items(plural):
                    self._enqueue((plural, namespace_of(item), name_of(item)))
        else:
            for name in NAMESPACES:
                self.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def add(self, manifest: JsonObject) -> JsonObject:
        """Create one object, and its namespace if that is missing. Raises ApiError."""
        resource = BY_KIND.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if resource is None:
            unknown = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
            raise bad_request(f"the simulated cluster does not serve {unknown}")
        namespace = ""
        if resource.namespaced:
            namespace = str((manifest.get("metadata") or {}).get("namespace") or "default")
            if self.store.get("namespaces", "", namespace) is None:
                self.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        if resource.plural == "nodes":
            manifest = with_node_defaults(manifest, self.clock.now())
        return self.registry.create(resource, namespace, manifest, Writer("simulated-cluster"))

    def serves(self, resource: Resource) -> bool:
        """Return whether the API serves the kind. A custom resource exists once its CustomResourceDefinition does."""
        if not resource.custom:
            return True
        definition = self.store.get(CRDS, "", crd_name(resource)) or {"spec": {"versions": ()}}
        versions = definition["spec"].get("versions") or ()
        return any(each["name"] == resource.version and each.get("served", True) for each in versions)

    def served(self) -> list[Resource]:
        return [resource for resource in RESOURCES if self.serves(resource)]

    def install_operators(self, *kinds: str) -> None:
        """Install the operators of these kinds of jobs, or of all: the API gets their definitions."""
        for resource in RESOURCES:
            wanted = resource.kind in kinds if kinds else resource.group != KUEUE_GROUP
            if resource.custom and wanted and not self.serves(resource):
                self.add(crd_of(resource))

    def install_kueue_kinds(self) -> None:
        """Install the definitions of Kueue's kinds, in their newest version."""
        newest = {
            resource.kind: resource for resource in RESOURCES if resource.custom and resource.group == KUEUE_GROUP
        }
        for resource in newest.values():
            self.add(crd_of(resource))

    def settle(self) -> float | None:
        """Act on everything that is due by now; return the next time at which something is due."""
        now = self.clock.now()
        while True:
            while self._work:
                self._reconcile(self._work.popleft())
            if not self._timers or self._timers[0][0] > now:
                return self._timers[0][0] if self._timers else None
            self._enqueue(heapq.heappop(self._timers)[1])

    def advance(self, seconds: float) -> None:
        """Let time pass on a virtual clock, step by step, so that each event happens at its own moment."""
        if not isinstance(self.clock, VirtualClock):
            raise TypeError("only a virtual clock can be advanced")
        end = self.clock.now() + seconds
        due = self.settle()
        while due is not None and due <= end:
            self.clock.advance_to(due)
            due = self.settle()
        self.clock.advance_to(end)
        self.settle()

    def set_node_state(self, name: str, state: str) -> None:
        """Make a node "ready", "not-ready", "unreachable", "cordoned", "uncordoned" or "gone".

        Raises ApiError for any other state.
        """
        node = self.store.get("nodes", "", name)
        if node is None:
            raise not_found("nodes", name)
        if state == "gone":
            self.store.remove("nodes", "", name)
        elif state in ("cordoned", "uncordoned"):
            spec = {key: value for key, value in node["spec"].items() if key != "unschedulable"}
            if state == "cordoned":
                spec["unschedulable"] = True
            self.environment.set_object("nodes", {**node, "spec": spec}, "kubectl-cordon")
        elif state in _NODE_STATES:
            value, reason = _NODE_STATES[state]
            entry = {**pod_condition("Ready", value == "True", self.clock.now(), reason), "status": value}
            status = {**(node.get("status") or {}), "conditions": with_pod_condition(node, entry)}
            self.environment.set_status("nodes", node, status, "kubelet")
        else:
            known = ", ".join((*_NODE_STATES, *_MORE_NODE_STATES))
            raise bad_request(f"unknown node state {state!r}; there are {known}")

    def set_device_health(self, uuid: str, healthy: bool) -> None:
        """Make a device healthy or unhealthy, as its node's plugin publishes it. Raises ApiError if no node has it."""
        if not self._plugin.set_device_health(uuid, healthy):
            raise not_found("devices", uuid)

    def save(self) -> None:
        """Write the snapshot, all or nothing; do nothing without a file."""
        if self.snapshot is None:
            return
        state = {**self.store.dump(), "seed": self.registry.seed}
        temporary = self.snapshot.with_suffix(".writing")
        temporary.write_bytes(orjson.dumps(state))
        temporary.replace(self.snapshot)

    def _load(self, snapshot: Path) -> bool:
        state: dict[str, Any] = orjson.loads(snapshot.read_bytes())
        self.store.load(state)
        self.registry.seed = state["seed"]
        return True

    def _on_change(self, plural: str, change: Change) -> None:
        item = change.object
        key = (plural, namespace_of(item), name_of(item))
        if plural in self._controllers or is_deleting(item):
            self._enqueue(key)
        if change.type == "DELETED":
            self._enqueue((_OWNER, "", uid_of(item)))
        owner = controller_of(item)
        if owner is not None:
            resource = BY_KIND.get((owner["apiVersion"], owner["kind"]))
            if resource is not None:
                self._enqueue((resource.plural, namespace_of(item), owner["name"]))
        if plural == "pods":
            self._on_pod(key, change)
        elif plural == "nodes":
            self._on_node(change)

    def _on_pod(self, key: _WorkKey, change: Change) -> None:
        waiting = change.type != "DELETED" and DefaultScheduler.is_waiting(change.object)
        if waiting:
            self._waiting_pods[key] = None
        else:
            self._waiting_pods.pop(key, None)
        if change.type == "DELETED":
            self._kubelet.forget(uid_of(change.object))
        if node_of(change.object) and (change.type == "DELETED" or is_finished(change.object)):
            self._retry_waiting_pods()

    def _on_node(self, change: Change) -> None:
        before, after = _node_admission(change.previous), _node_admission(change.object)
        if before != after or change.type != "MODIFIED":
            self._retry_waiting_pods()
            for pod in self._usage.pods_on(name_of(change.object)):
                self._enqueue(("pods", namespace_of(pod), name_of(pod)))

    def _retry_waiting_pods(self) -> None:
        for key in self._waiting_pods:
            self._enqueue(key)

    def _enqueue(self, key: _WorkKey) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._work.append(key)

    def _reconcile(self, key: _WorkKey) -> None:
        self._queued.discard(key)
        plural, namespace, name = key
        if plural == _OWNER:
            self._collector.owner_is_gone(name)
            return
        for controller in self._controllers.get(plural, ()):
            try:
                due = controller.reconcile(namespace, name)
            except RefusedByWebhook:
                due = self.clock.now() + self.environment.scaled(_RETRY_SECONDS)
            if due is not None:
                heapq.heappush(self._timers, (due, key))
        item = self.store.get(plural, namespace, name)
        if item is not None:
            self._collector.finish_deletion(plural, item)


def with_node_defaults(manifest: JsonObject, now: float) -> JsonObject:
    """Return a node as a kubelet registers it: ready by default, and with its capacity as allocatable resources."""
    status = dict(manifest.get("status") or {})
    status.setdefault("capacity", {"cpu": "64", "memory": "256Gi", "pods": "110"})
    status.setdefault("allocatable", dict(status["capacity"]))
    if not any(entry.get("type") == "Ready" for entry in status.get("conditions") or ()):
        entry = pod_condition("Ready", True, now, "KubeletReady")
        status["conditions"] = [*(status.get("conditions") or ()), entry]
    return {**manifest, "spec": dict(manifest.get("spec") or {}), "status": status}


def _node_admission(node: JsonObject | None) -> tuple[Any, ...]:
    """Return the fields of a node that decide whether pods may be bound to it and run there."""
    if node is None:
        return ()
    ready = (condition(node, "Ready") or {}).get("status")
    spec = node.get("spec") or {}
    allocatable = (node.get("status") or {}).get("allocatable")
    return ready, spec.get("taints"), spec.get("unschedulable"), node["metadata"].get("labels"), allocatable
