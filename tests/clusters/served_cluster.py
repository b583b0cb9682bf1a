"""A cluster whose Kueue objects are ours to serve: its users with kubectl, the watcher, the engine and the push."""

from __future__ import annotations

import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any

import orjson

from clusters.api_objects import JsonObject
from clusters.client import TokenBucket
from clusters.client_credentials import connect
from clusters.connection import watching_client_for
from clusters.push.kueue_objects import serving
from clusters.push.sweep import PushReport, push_pending
from clusters.served.kueue_kinds import KUEUE_KINDS
from clusters.sync.watcher import Watcher
from scheduler.leader.engine import Engine
from simulation.api.resources import RESOURCES, Resource, crd_of
from tests.clusters.kueue_cluster import V1BETA2
from tests.engines import send_and_wait
from tests.factories import make_cluster
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import ServerThread, fetch, post

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ServedCluster:
    """Kueue's CRDs in one version, and nobody there but us and those who use kubectl."""

    def __init__(self, server: ServerThread, version: str = V1BETA2, name: str = "default") -> None:
        self.server = server
        self.version = version
        for resource in RESOURCES:
            if resource.kind in KUEUE_KINDS and resource.api_version == version:
                self.send("POST", _CRDS, crd_of(resource))
        self.cluster = make_cluster(name, server_url=server.url, serves_kueue_objects=True)
        self.client = connect(server.url, TokenBucket(10_000, 10_000))
        self.watcher = Watcher(self.cluster, watching_client_for(self.cluster), clock=self.now)
        self.engine = Engine(self.cluster, "test", clock=self.now, steady=self.now, send=send_and_wait)
        serving.forget()

    def now(self) -> float:
        return self.server.now()

    def advance(self, seconds: float) -> None:
        post(f"{self.server.url}/_clock", {"advance": seconds})

    def watch(self) -> None:
        self.watcher.resync()

    def push(self) -> PushReport:
        return push_pending(self.cluster, clock=self.now)

    def turn(self) -> None:
        """Everybody does their part once."""
        self.watch()
        self.engine.run()
        self.push()
        self.advance(2)

    def settle(self, turns: int = 3) -> None:
        for _ in range(turns):
            self.turn()

    def get(self, kind: str, name: str, namespace: str = "") -> JsonObject:
        return fetch(f"{self.server.url}{self.path(kind, name, namespace)}")

    def exists(self, kind: str, name: str, namespace: str = "") -> bool:
        try:
            self.get(kind, name, namespace)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def apply(self, kind: str, name: str, body: JsonObject, namespace: str = "", **metadata: Any) -> JsonObject:
        """As `kubectl apply --server-side`."""
        resource = self.resource(kind)
        path = self.path(kind, name, namespace)
        there = {"name": name, **({"namespace": namespace} if namespace else {}), **metadata}
        obj = {"apiVersion": resource.api_version, "kind": kind, "metadata": there, **body}
        return self.send("PATCH", f"{path}?fieldManager=kubectl&force=true", obj, "application/apply-patch+yaml")

    def patch(self, kind: str, name: str, patch: JsonObject, namespace: str = "") -> JsonObject:
        """As `kubectl patch --type merge`."""
        path = f"{self.path(kind, name, namespace)}?fieldManager=kubectl-patch"
        return self.send("PATCH", path, patch, "application/merge-patch+json")

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        self.send("DELETE", self.path(kind, name, namespace), None)

    def versions(self) -> dict[tuple[str, str, str], str]:
        """The resourceVersion of each of Kueue's objects: whoever writes one changes it."""
        found = {}
        for resource in RESOURCES:
            if resource.kind in KUEUE_KINDS and resource.api_version == self.version:
                listing = fetch(f"{self.server.url}/apis/{self.version}/{resource.plural}")
                for item in listing["items"]:
                    metadata = item["metadata"]
                    key = (resource.kind, metadata.get("namespace", ""), metadata["name"])
                    found[key] = metadata["resourceVersion"]
        return found

    def resource(self, kind: str) -> Resource:
        return next(each for each in RESOURCES if each.kind == kind and each.api_version in (self.version, "v1"))

    def path(self, kind: str, name: str, namespace: str = "") -> str:
        resource = self.resource(kind)
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        return "/".join(filter(None, (root, f"namespaces/{namespace}" if namespace else "", resource.plural, name)))

    def send(self, method: str, path: str, body: JsonObject | None, kind: str = "application/json") -> JsonObject:
        data = None if body is None else orjson.dumps(body)
        request = urllib.request.Request(
            f"{self.server.url}{path}", data=data, method=method, headers={"Content-Type": kind}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            found: JsonObject = orjson.loads(response.read())
            return found


def queue_spec(cpu: str = "4", **more: Any) -> JsonObject:
    """The spec of a ClusterQueue with so much cpu in flavor `plain`."""
    quota = {"name": "plain", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return {
        "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}], **more}
    }


def configure(served: ServedCluster) -> None:
    """With kubectl: a flavor, a cohort, a ClusterQueue with 4 cpu, and its LocalQueue in namespace `team`."""
    old = served.version.endswith("v1beta1")
    served.apply("Namespace", "team", {})
    served.apply("ResourceFlavor", "plain", {"spec": {"nodeLabels": {"gpu": "on"}}})
    served.apply("Cohort", "company", {"spec": {}})
    served.apply("ClusterQueue", "main", queue_spec(**{"cohort" if old else "cohortName": "company"}))
    served.apply("LocalQueue", "local", {"spec": {"clusterQueue": "main"}}, "team")
    served.apply("WorkloadPriorityClass", "high", {"value": 1000})
