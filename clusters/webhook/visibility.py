"""Kueue's visibility API, as an API server of its own behind the cluster's: pending workloads and their positions.

The cluster's API server authenticates and authorizes a request before it passes it on. Connections need the API
server's certificate, so no other client can connect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

import orjson
from django.db import DatabaseError, close_old_connections

from accounts.models import Cluster
from accounts.services.object_status import timestamp
from clusters.client import ClusterClient, ClusterError, JsonObject, Kind
from clusters.webhook.application import Receive, Scope, Send
from clusters.webhook.configurations import Target
from queues.models import ClusterQueue, LocalQueue, Workload
from queues.querysets import PendingPositions
from queues.services.workload_objects import owner_references

_log = logging.getLogger(__name__)

GROUP: Final = "visibility.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
"""The preferred version first; both have the same content."""
API_SERVICES: Final = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", namespaced=False)
CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
_FRONT_PROXY: Final = ("kube-system", "extension-apiserver-authentication", "requestheader-client-ca-file")
_LIMIT: Final = 1000
_MAX_LIMIT: Final = 100_000
_PENDING: Final = "pendingworkloads"


def front_proxy_authorities(client: ClusterClient) -> bytes:
    """The authorities, in PEM, for the certificate that the API server shows when it passes a request on.

    Raises ClusterError.
    """
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
        """The answer to a GET."""
        match path.strip("/").split("/"):
            case ["healthz" | "readyz" | "livez"]:
                return HTTPStatus.OK, {"status": "ok"}
            case ["apis"]:
                return HTTPStatus.OK, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}
            case ["apis", group] if group == GROUP:
                return HTTPStatus.OK, {"kind": "APIGroup", "apiVersion": "v1", **_group()}
            case ["apis", group, version] if group == GROUP and version in VERSIONS:
                return HTTPStatus.OK, _resources(version)
            case ["apis", group, version, *queue, last] if (group, last) == (GROUP, _PENDING) and version in VERSIONS:
                return self._pending(queue, version, query)
        return _status(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")

    def _pending(self, queue: list[str], version: str, query: Mapping[str, str]) -> tuple[int, JsonObject]:
        try:
            limit, offset = int(query.get("limit", _LIMIT)), int(query.get("offset", 0))
        except ValueError:
            return _status(HTTPStatus.BAD_REQUEST, "BadRequest", "limit, offset: Invalid value: must be whole numbers")
        limit, offset = min(max(limit, 0), _MAX_LIMIT), max(offset, 0)
        pk = self._cluster.pk
        match queue:
            case ["clusterqueues", name]:
                if not ClusterQueue.objects.filter(cluster=pk, name=name).exists():
                    return _not_found("clusterqueue", name)
                positions = PendingPositions(pk, name, limit, offset)
            case ["namespaces", namespace, "localqueues", name]:
                row = LocalQueue.objects.filter(cluster=pk, namespace=namespace, name=name).first()
                if row is None:
                    return _not_found("localqueue", name)
                positions = PendingPositions(pk, row.cluster_queue_name, limit, offset, namespace, name)
            case _:
                return _status(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")
        items = list(_items(positions.read()))
        kind = {"kind": "PendingWorkloadsSummary", "apiVersion": f"{GROUP}/{version}"}
        return HTTPStatus.OK, {**kind, "metadata": {}, "items": items}


def _items(positions: Iterable[tuple[int, int, int]]) -> Iterable[JsonObject]:
    found = list(positions)
    rows = Workload.objects.filter(pk__in=[pk for pk, _, _ in found]).select_related("job").in_bulk()
    for pk, position, own in found:
        if pk not in rows:
            continue
        row = rows[pk]
        metadata: JsonObject = {
            "name": row.name,
            "namespace": row.namespace,
            "creationTimestamp": timestamp(row.created_at),
        }
        owners = owner_references(row)
        if owners:
            kept = ("apiVersion", "kind", "name", "uid")
            metadata["ownerReferences"] = [{key: owner[key] for key in kept} for owner in owners]
        yield {
            "metadata": metadata,
            "priority": row.priority,
            "localQueueName": row.queue_name,
            "positionInClusterQueue": position,
            "positionInLocalQueue": own,
        }


def _group() -> JsonObject:
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in VERSIONS]
    return {"name": GROUP, "versions": versions, "preferredVersion": versions[0]}


def _resources(version: str) -> JsonObject:
    names = (("clusterqueues", "ClusterQueue", False), ("localqueues", "LocalQueue", True))
    resources: list[dict[str, Any]] = []
    for plural, kind, namespaced in names:
        common = {"singularName": "", "namespaced": namespaced}
        resources += [
            {"name": plural, **common, "kind": kind, "verbs": []},
            {"name": f"{plural}/{_PENDING}", **common, "kind": "PendingWorkloadsSummary", "verbs": ["get"]},
        ]
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{version}", "resources": resources,
    }  # fmt: skip


def _not_found(resource: str, name: str) -> tuple[int, JsonObject]:
    code, status = _status(HTTPStatus.NOT_FOUND, "NotFound", f'{resource}.{GROUP} "{name}" not found')
    return code, {**status, "details": {"name": name, "group": GROUP, "kind": resource}}


def _status(code: HTTPStatus, reason: str, message: str) -> tuple[int, JsonObject]:
    return int(code), {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": int(code),
    }  # fmt: skip
