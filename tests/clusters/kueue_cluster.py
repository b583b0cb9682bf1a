"""A cluster that a Kueue runs: its objects as Kueue writes them, on the simulated API server, and us who only look."""

from __future__ import annotations

import urllib.request
from typing import Any

import orjson

from accounts.models import ClusterMode
from clusters.client import JsonObject, TokenBucket, connect
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.simulated.api.resources import RESOURCES, Resource, crd_of
from clusters.sync.watcher import Watcher
from scheduler.leader.observer import Observer
from tests.factories import make_cluster
from tests.simulated_cluster import ServerThread, fetch, post

V1BETA2 = "kueue.x-k8s.io/v1beta2"
V1BETA1 = "kueue.x-k8s.io/v1beta1"
AT = "2026-01-01T00:00:00Z"
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
        self.watcher = Watcher(self.cluster, self.client, clock=self.now)
        self.observer = Observer(self.cluster, "test", clock=self.now)

    def now(self) -> float:
        return float(fetch(f"{self.server.url}/_clock")["now"])

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
        with urllib.request.urlopen(request, timeout=10):
            pass


def _resource(obj: JsonObject) -> Resource:
    return next(each for each in RESOURCES if (each.api_version, each.kind) == (obj["apiVersion"], obj["kind"]))


def _path(resource: Resource, namespace: str, name: str) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    return "/".join(filter(None, (root, f"namespaces/{namespace}" if namespace else "", resource.plural, name)))


def condition(type_: str, status: str, reason: str, message: str = "", at: str = AT) -> JsonObject:
    found = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
    return {**found, "observedGeneration": 1}
