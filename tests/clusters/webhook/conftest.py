"""A simulated system whose API server asks the webhook, as a cluster's does that it is installed in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import urllib3

from clusters.api_objects import NAMESPACES, JsonObject, Kind
from clusters.client import MERGE_PATCH
from clusters.jobs.registry import JOB_KINDS
from clusters.webhook.configurations import Target
from clusters.webhook.server import Registration
from clusters.webhook.surroundings import ClusterSurroundings
from simulation.api.api_server import APPLY_PATCH
from tests.clusters.system import System
from tests.clusters.webhook.served import ServedWebhook
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import ServerThread, make_simulated

US = "kueueweb"
"""The account by which the simulated cluster knows our client."""


@dataclass
class Answer:
    code: int
    body: JsonObject

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Kubectl:
    """A client of another user than kueueweb's."""

    def __init__(self, url: str, user: str = "kubectl") -> None:
        self._url = url
        self._user = user
        self._pool = urllib3.PoolManager(retries=False, timeout=PATIENCE_SECONDS)

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        headers = {"User-Agent": f"{self._user}/1", "Content-Type": content_type}
        sent = None if body is None else orjson.dumps(body)
        answer = self._pool.request(method, self._url + path, body=sent, headers=headers)
        return Answer(answer.status, orjson.loads(answer.data))

    def as_user(self, user: str) -> Kubectl:
        """The same server's client for another user."""
        return Kubectl(self._url, user)

    def create(self, manifest: JsonObject) -> Answer:
        kind = JOB_KINDS[manifest["kind"]].resource
        return self.call("POST", kind.path(manifest["metadata"].get("namespace", "default")), manifest)

    def patch(self, kind: str, name: str, patch: JsonObject, namespace: str = "team") -> Answer:
        return self.call("PATCH", JOB_KINDS[kind].resource.path(namespace, name), patch, MERGE_PATCH)

    def apply(self, manifest: JsonObject) -> Answer:
        metadata = manifest["metadata"]
        path = JOB_KINDS[manifest["kind"]].resource.path(metadata["namespace"], metadata["name"])
        return self.call("PATCH", f"{path}?fieldManager=kubectl&force=true", manifest, APPLY_PATCH)

    def get(self, kind: Kind, name: str, namespace: str = "team") -> JsonObject:
        answer = self.call("GET", kind.path(namespace if kind.namespaced else "", name))
        assert answer.code == 200, answer.body
        return answer.body


class GuardedSystem(System):
    """`webhook` answers until it is stopped with `take_down`, and again after `bring_up`."""

    def __init__(self, server: ServerThread, cached_seconds: float = 0.0) -> None:
        super().__init__(server)
        self.kubectl = Kubectl(server.url)
        self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        self._surroundings = ClusterSurroundings(
            self.cluster, self.client, frozenset({US}), cached_seconds=cached_seconds, now=self.now
        )
        self.webhook = ServedWebhook(self._surroundings)
        self.registration = Registration(self.client, Target(url=self.webhook.url), self._surroundings.observes_only)
        self.webhook.__enter__()
        self.registration.write(self.webhook.certificates.authorities)

    def take_down(self) -> None:
        self.webhook.__exit__(None, None, None)

    def bring_up(self) -> None:
        """Another replica with the same certificate takes over the address."""
        self.webhook = ServedWebhook(self._surroundings, certificates=self.webhook.certificates, port=self.webhook.port)
        self.webhook.__enter__()


@pytest.fixture
def guarded() -> Iterator[GuardedSystem]:
    with ServerThread(make_simulated()) as server:
        system = GuardedSystem(server)
        try:
            yield system
        finally:
            if system.webhook.alive:
                system.take_down()
