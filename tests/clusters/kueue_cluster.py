"""A cluster that a Kueue runs: its objects as Kueue writes them, on the simulated API server, and us who only look."""

from __future__ import annotations

import urllib.request
from typing import Any

import orjson

from accounts.models import ClusterMode
from clusters.api_objects import JsonObject
from clusters.client import TokenBucket
from clusters.client_credentials import connect
from clusters.connection import watching_client_for
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.sync.watcher import Watcher
from scheduler.leader.observer import Observer
from simulation.api.resources import RESOURCES, Resource, crd_of
from tests.factories import make_cluster
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import ServerThread, fetch, post

V1BETA2 = "kueue.x-k8s.io/v1beta2"
V1BETA1 = "kueue.x-k8s.io/v1beta1"
AT = "2026-01-01T00:00:00Z"
RACK = "example.com/rack"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class KueueCluster:
    """A mirrored cluster: `write` is what Kueue and its users do, `look` what we do."""

    def __init__(self, server: ServerThread, version: str = V1BETA2, mode: ClusterMode = ClusterMode.OBSERVE) -> None:
        self.server = server
        self.version = version
        served = [each for each in RESOURCES if each.kind in KUEUE_KINDS and each.api_version == version]
        for resource in served:
            self._send("POST", _CRDS, crd_of(resource))
        self.cluster = make_cluster(server_url=server.url, mode=mode)
        server.guard.closed = True
        self.client = connect(server.url, TokenBucket(10_000, 10_000), read_only=True)
        self.watcher = Watcher(self.cluster, watching_client_for(self.cluster), clock=self.now)
        self.observer = Observer(self.cluster, "test", clock=self.now)

    def now(self) -> float:
        return self.server.now()

    def advance(self, seconds: float) -> None:
        post(f"{self.server.url}/_clock", {"advance": seconds})

    def look(self) -> None:
        """The watcher lists everything, and the leader follows."""
        self.watcher.resync()
        self.observer.run()

    def write(self, obj: JsonObject) -> JsonObject:
        """Makes the object, or replaces it, its status included; returns it as the server has it."""
        resource = _resource(obj)
        path = _path(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        servers = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields")
        metadata = {key: value for key, value in obj["metadata"].items() if key not in servers}
        body = {key: value for key, value in obj.items() if key != "status"} | {"metadata": metadata}
        try:
            self._send("PATCH", path, body)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            self._send("POST", path.rpartition("/")[0], body)
        if "status" in obj:
            self._send("PATCH", f"{path}/status", {"status": obj["status"]})
        return fetch(f"{self.server.url}{path}")

    def delete(self, obj: JsonObject) -> None:
        path = _path(_resource(obj), obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        self._send("DELETE", path, None)

    def kueue(self, kind: str, name: str, spec: JsonObject, namespace: str = "", **more: Any) -> JsonObject:
        """One of Kueue's objects in the version of this cluster, written."""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
        return self.write({"apiVersion": self.version, "kind": kind, "metadata": metadata, "spec": spec, **more})

    def _send(self, method: str, path: str, body: JsonObject | None) -> None:
        data = None if body is None else orjson.dumps(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            f"{self.server.url}{path}", data=data, method=method, headers={"Content-Type": kind}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS):
            pass


def _resource(obj: JsonObject) -> Resource:
    return next(each for each in RESOURCES if (each.api_version, each.kind) == (obj["apiVersion"], obj["kind"]))


def _path(resource: Resource, namespace: str, name: str) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return "/".join(filter(None, (root, f"namespaces/{namespace}" if namespace else "", resource.plural, name)))


def condition(type_: str, status: str, reason: str, message: str = "", at: str = AT) -> JsonObject:
    found = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
    return {**found, "observedGeneration": 1}


def configure(kueue: KueueCluster) -> None:
    """Two flavors, a cohort of one ClusterQueue with 4 cpu, and its LocalQueue in namespace `team`."""
    old = kueue.version == V1BETA1
    kueue.write({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"cost": "a"}}})
    kueue.kueue("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]})
    kueue.kueue("ResourceFlavor", "plain", {"nodeLabels": {"gpu": "on"}})
    kueue.kueue("Cohort", "company", {})
    check = {"controllerName": "example.com/budget"}
    active = {"conditions": [condition("Active", "False", "Unknown")]}
    kueue.kueue("AdmissionCheck", "budget", check, status=active)
    priority = {"apiVersion": kueue.version, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}}
    kueue.write({**priority, "value": 1000, "description": "first"})
    quota = {"name": "plain", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    spec = {
        "cohort" if old else "cohortName": "company",
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
    }
    kueue.kueue("ClusterQueue", "main", spec, status={"pendingWorkloads": 1})
    kueue.kueue("LocalQueue", "local", {"clusterQueue": "main"}, "team")


def workload(
    kueue: KueueCluster, name: str, status: JsonObject, template: JsonObject | None = None, **fields: Any
) -> JsonObject:
    """A Workload object of two pods with one cpu each, and its status."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = template or {"spec": {"containers": [container]}}
    old = {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}
    new = {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}
    spec = {
        "queueName": "local",
        "priority": 1000,
        "active": True,
        **(old if kueue.version == V1BETA1 else new),
        "podSets": [{"name": "main", "count": 2, "template": template}],
    }
    return kueue.kueue("Workload", name, spec, "team", status=status, **fields)


def topology(kueue: KueueCluster) -> JsonObject:
    """Two domains, a pod in each, as each version writes it."""
    levels = [RACK, "kubernetes.io/hostname"]
    if kueue.version == V1BETA1:
        domains = [{"values": ["r1", f"node-{n}"], "count": 1} for n in (1, 2)]
        return {"levels": levels, "domains": domains}
    hosts = {"individual": {"prefix": "node-", "roots": ["1", "2"]}}
    piece = {"domainCount": 2, "valuesPerLevel": [{"universal": "r1"}, hosts], "podCounts": {"universal": 1}}
    return {"levels": levels, "slices": [piece]}


def admitted(kueue: KueueCluster, at: str = AT, with_topology: bool = True) -> JsonObject:
    """The status of a workload that Kueue admitted."""
    given = {"name": "main", "count": 2, "flavors": {"cpu": "plain"}, "resourceUsage": {"cpu": "2"}}
    if with_topology:
        given["topologyAssignment"] = topology(kueue)
    check = {"name": "budget", "state": "Ready", "message": "paid", "lastTransitionTime": at}
    return {
        "conditions": [
            condition("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue main", at),
            condition("Admitted", "True", "Admitted", "The workload is admitted", at),
            condition("PodsReady", "True", "Started", "", at),
            condition("FromTheFuture", "True", "NobodyKnows", "", at),
        ],
        "admission": {"clusterQueue": "main", "podSetAssignments": [given]},
        "admissionChecks": [check],
        "requeueState": {"count": 2, "requeueAt": "2026-01-01T00:05:00Z"},
    }


PENDING = {
    "conditions": [condition("QuotaReserved", "False", "WaitingForQuota", "couldn't assign flavors: 1 more needed")]
}
