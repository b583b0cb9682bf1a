"""Kueue's visibility API, as an API server of its own behind the cluster's: pending workloads and their positions.

The cluster's API server authenticates and authorizes a request before it passes it on. Connections need the API
server's certificate, so no other client can connect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

import orjson
from django.db import DatabaseError, close_old_connections

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject, Kind
from clusters.client import ClusterClient
from clusters.served.pending_workloads import (
    GROUP,
    PENDING_WORKLOADS,
    VERSIONS,
    group,
    limited,
    resource_list,
    summary,
)
from clusters.webhook.application import Receive, Scope, Send
from clusters.webhook.configurations import Target
from queues.models import ClusterQueue, LocalQueue
from queues.querysets import PendingPositions

_log = logging.getLogger(__name__)

API_SERVICES: Final = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False)
CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
_FRONT_PROXY: Final = ("kube-system", "extension-apiserver-authentication", "requestheader-client-ca-file")


def front_proxy_authorities(client: ClusterClient) -> bytes:
    """Return the authorities, in PEM, that sign the certificate with which the API server forwards a request. Raises
    ClusterError."""
    namespace, name, key = _FRONT_PROXY
    found = client.get(CONFIG_MAPS, namespace, name) or {}
    authorities = (found.get("data") or {}).get(key)
    if not authorities:
        what = f"ConfigMap {namespace}/{name}: {key}: Required value"
        raise ClusterError(HTTPStatus.NOT_FOUND, "NotFound", f"{what}: the API server aggregates no other API servers")
    return str(authorities).encode()


class Applies(Protocol):
    def apply(self, kind: Kind, item: Mapping[str, Any]) -> JsonObject: ...


class ApiServices:
    """Keeps the APIServices, with which the cluster's API server forwards requests to kueueweb, up to date."""

    def __init__(self, client: Applies, target: Target) -> None:
        self._client = client
        self._target = target

    def write(self, authorities: bytes | None) -> None:
        """Raises ClusterError."""
        where = self._target.client_config("")["service"]
        bundle = Target(authorities=authorities).client_config("").get("caBundle") if authorities else None
        for priority, version in enumerate(reversed(VERSIONS), 1):
            spec = {
                "group": GROUP,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100 * priority,
                "service": {"namespace": where["namespace"], "name": where["name"], "port": where["port"]},
                **({"caBundle": bundle} if bundle else {}),
            }
            metadata = {"name": f"{version}.{GROUP}", "labels": {"app.kubernetes.io/name": "kueueweb"}}
            wanted = {
                "apiVersion": API_SERVICES.api_version, "kind": API_SERVICES.kind, "metadata": metadata, "spec": spec,
            }  # fmt: skip
            self._client.apply(API_SERVICES, wanted)


class VisibilityApplication:
    """ASGI 3: GET of discovery and of the pending workloads of a queue."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "http":
            code, body = await asyncio.to_thread(self._answer, scope)
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": code, "headers": headers})
            await send({"type": "http.response.body", "body": orjson.dumps(body)})

    def _answer(self, scope: Scope) -> tuple[int, JsonObject]:
        if scope["method"] not in ("GET", "HEAD"):
            return _status(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", "only get is supported")
        close_old_connections()
        query = parse_qs(scope.get("query_string", b"").decode("ascii", "replace"))
        try:
            return self.answer(scope["path"], {key: values[-1] for key, values in query.items()})
        except DatabaseError as failure:
            _log.error("%s was not answered: %s", scope["path"], failure)
            return _status(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", "the database does not answer")
        finally:
            close_old_connections()

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, JsonObject]:
        """Answer a GET."""
        match path.strip("/").split("/"):
            case ["healthz" | "readyz" | "livez"]:
                return HTTPStatus.OK, {"status": "ok"}
            case ["apis"]:
                return HTTPStatus.OK, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]}
            case ["apis", name] if name == GROUP:
                return HTTPStatus.OK, {"kind": "APIGroup", "apiVersion": "v1", **group()}
            case ["apis", name, version] if name == GROUP and version in VERSIONS:
                return HTTPStatus.OK, resource_list(version)
            case ["apis", name, version, *queue, last] if (name, last) == (GROUP, PENDING_WORKLOADS):
                if version in VERSIONS:
                    return self._pending(queue, version, query)
        return _status(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")

    def _pending(self, queue: list[str], version: str, query: Mapping[str, str]) -> tuple[int, JsonObject]:
        pk = self._cluster.pk
        match queue:
            case ["clusterqueues", name]:
                if not ClusterQueue.objects.filter(cluster=pk, name=name).exists():
                    return _not_found("clusterqueue", name)
                positions = PendingPositions(pk, name)
            case ["namespaces", namespace, "localqueues", name]:
                row = LocalQueue.objects.filter(cluster=pk, namespace=namespace, name=name).first()
                if row is None:
                    return _not_found("localqueue", name)
                positions = PendingPositions(pk, row.cluster_queue_name, namespace=namespace, local_queue=name)
            case _:
                return _status(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")
        try:
            part = limited(positions, query)
        except ValueError as refused:
            return _status(HTTPStatus.BAD_REQUEST, "BadRequest", str(refused))
        return HTTPStatus.OK, summary(part, version)


def _not_found(resource: str, name: str) -> tuple[int, JsonObject]:
    code, status = _status(HTTPStatus.NOT_FOUND, "NotFound", f'{resource}.{GROUP} "{name}" not found')
    return code, {**status, "details": {"name": name, "group": GROUP, "kind": resource}}


def _status(code: HTTPStatus, reason: str, message: str) -> tuple[int, JsonObject]:
    return int(code), {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": int(code),
    }  # fmt: skip
