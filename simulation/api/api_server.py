"""The API server: a request in, an answer out, without any network."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import yaml

from scheduling.manifest.merge_patch import merge_patch
from scheduling.model.times import parse_rfc3339
from simulation.api import errors, resources
from simulation.api.objects import JsonObject, name_of, namespace_of
from simulation.api.paths import Target, boolean, integer, is_dry_run, parse_target
from simulation.api.pod_logs import LogRequest, chosen_container
from simulation.api.registry import DeleteOptions, Writer
from simulation.api.selectors import Predicate, parse
from simulation.api.store import ObjectKey
from simulation.cluster import SimulatedCluster

APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
_VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.0-simulated", "platform": "linux/amd64"}


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `query` holds the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    body: bytes = b""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status code and the JSON object to send."""

    code: int
    body: Any


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A watch to be streamed: from which version, what of it, for how long (seconds, None: the server's choice)."""

    plural: str
    api_version: str
    kind: str
    namespace: str
    matches: Predicate
    resource_version: int | None
    bookmarks: bool
    timeout_seconds: int | None


class ApiServer:
    """Kubernetes' API over the objects of a cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    def answer(self, request: Request) -> Answer | WatchRequest | LogRequest:
        """Serve one request; a refusal is answered with a Status."""
        try:
            return self._route(request)
        except errors.ApiError as error:
            return Answer(error.code, error.status())

    def _route(self, request: Request) -> Answer | WatchRequest | LogRequest:
        fixed = self._fixed(request.path.rstrip("/"))
        if fixed is not None:
            return fixed
        target = parse_target(request.path)
        if not self.cluster.serves(target.resource):
            raise errors.no_such_path(request.path)
        match request.method:
            case "GET" if target.subresource == "log":
                return self._log(target, request)
            case "GET" if target.name:
                return self._get(target)
            case "GET":
                return self._watch(target, request) if boolean(request.query, "watch") else self._list(target, request)
            case "POST":
                return self._create(target, request)
            case "PUT" if target.name:
                return self._replace(target, request)
            case "PATCH" if target.name:
                return self._patch(target, request)
            case "DELETE":
                return self._delete(target, request)
        raise errors.method_not_allowed(request.method, request.path)

    def _fixed(self, path: str) -> Answer | None:
        """Discovery, version and health."""
        if path in ("/healthz", "/livez", "/readyz", "/version", "/api", "/apis"):
            served = self.cluster.served()
            found: Any = {
                "/version": _VERSION,
                "/api": resources.api_versions(),
                "/apis": resources.api_group_list(served),
            }.get(path, "ok")
            return Answer(200, found)
        parts, served = path.split("/"), self.cluster.served()
        if parts[1:2] == ["api"] and len(parts) == 3:
            discovered = resources.api_resource_list("", parts[2], served)
        elif parts[1:2] == ["apis"] and len(parts) == 3:
            discovered = resources.api_group(parts[2], served)
        elif parts[1:2] == ["apis"] and len(parts) == 4:
            discovered = resources.api_resource_list(parts[2], parts[3], served)
        else:
            return None
        if discovered is None:
            raise errors.no_such_path(path)
        return Answer(200, discovered)

    def _get(self, target: Target) -> Answer:
        if target.subresource not in ("", "status"):
            raise errors.method_not_allowed("GET", target.subresource)
        return Answer(200, self.cluster.registry.get(target.resource, target.namespace, target.name))

    def _log(self, target: Target, request: Request) -> LogRequest:
        """Return a log to be sent; refused here where the container has none."""
        query = request.query
        since = integer(query, "sinceSeconds")
        try:
            moment = parse_rfc3339(query["sinceTime"]) if query.get("sinceTime") else 0.0
        except ValueError as error:
            raise errors.bad_request(f"sinceTime: {error}") from error
        pod = self.cluster.registry.get(target.resource, target.namespace, target.name)
        container = chosen_container(pod, query.get("container", ""))
        if boolean(query, "previous"):  # simulated containers are never restarted
            raise errors.bad_request(f'previous terminated container "{container}" in pod "{target.name}" not found')
        return LogRequest(
            namespace=target.namespace,
            name=target.name,
            container=container,
            follow=boolean(query, "follow"),
            tail=integer(query, "tailLines"),
            since=moment if since is None else self.cluster.clock.now() - since,
            timestamps=boolean(query, "timestamps"),
            limit_bytes=integer(query, "limitBytes"),
        )

    def _predicate(self, target: Target, request: Request) -> Predicate:
        query = request.query
        return parse(target.resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))

    def _list(self, target: Target, request: Request) -> Answer:
        matches = self._predicate(target, request)
        limit = integer(request.query, "limit") or 0
        version, after = self._continue(target, request.query.get("continue", ""))
        items: list[JsonObject] = []
        metadata: JsonObject = {"resourceVersion": str(version)}
        for item in self.cluster.store.items(target.resource.plural, target.namespace, after):
            if not matches(item):
                continue
            if limit and len(items) == limit:
                metadata["continue"] = _token(version, items[-1])
                break
            items.append({key: value for key, value in item.items() if key not in ("apiVersion", "kind")})
        return Answer(
            200,
            {
                "kind": f"{target.resource.kind}List",
                "apiVersion": target.resource.api_version,
                "metadata": metadata,
                "items": items,
            },
        )

    def _continue(self, target: Target, token: str) -> tuple[int, ObjectKey | None]:
        """Return the version and the last key of the page before; a token of a forgotten version is answered
        with 410."""
        if not token:
            return self.cluster.store.resource_version, None
        try:
            version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
            version = int(version)
        except (ValueError, TypeError) as error:
            raise errors.bad_request("continue key is not valid") from error
        try:
            self.cluster.store.changes_since(target.resource.plural, version)
        except errors.ApiError as error:
            raise errors.expired("The provided continue parameter is too old to display a consistent list.") from error
        return version, (str(namespace), str(name))

    def _watch(self, target: Target, request: Request) -> WatchRequest:
        text = request.query.get("resourceVersion", "")
        if text and not text.isdigit():
            raise errors.bad_request(f"invalid resource version {text!r}")
        return WatchRequest(
            plural=target.resource.plural,
            api_version=target.resource.api_version,
            kind=target.resource.kind,
            namespace=target.namespace,
            matches=self._predicate(target, request),
            resource_version=int(text) if text not in ("", "0") else None,
            bookmarks=boolean(request.query, "allowWatchBookmarks"),
            timeout_seconds=integer(request.query, "timeoutSeconds"),
        )

    def _create(self, target: Target, request: Request) -> Answer:
        body = _object(request)
        writer = _writer(request, target.subresource)
        if target.subresource == "binding":
            self.cluster.registry.bind(target.namespace, target.name, body, writer)
            return Answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        if target.subresource == "eviction":
            options = _delete_options(body.get("deleteOptions") or {}, {})
            self.cluster.registry.delete(target.resource, target.namespace, target.name, options, writer.dry_run)
            return Answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        if target.name or (target.resource.namespaced and not target.namespace):
            raise errors.method_not_allowed("POST", request.path)
        created = self.cluster.registry.create(target.resource, target.namespace, body, writer)
        return Answer(201, created)

    def _replace(self, target: Target, request: Request) -> Answer:
        body, writer = _object(request), _writer(request, target.subresource)
        updated = self.cluster.registry.update(target.resource, target.namespace, target.name, body, writer)
        return Answer(200, updated)

    def _patch(self, target: Target, request: Request) -> Answer:
        kind = request.content_type.partition(";")[0].strip()
        writer = _writer(request, target.subresource)
        registry = self.cluster.registry
        if kind == APPLY_PATCH:
            if not request.query.get("fieldManager"):
                raise errors.bad_request("fieldManager is required for apply patch")
            force = boolean(request.query, "force")
            applied, created = registry.apply(
                target.resource, target.namespace, target.name, _object(request), writer, force
            )
            return Answer(201 if created else 200, applied)
        if kind != MERGE_PATCH:
            raise errors.unsupported_media_type(request.content_type)
        patch = _object(request)
        changed = registry.change(
            target.resource, target.namespace, target.name, lambda live: merge_patch(_patchable(live), patch), writer
        )
        return Answer(200, changed)

    def _delete(self, target: Target, request: Request) -> Answer:
        options = _delete_options(_object(request) if request.body else {}, request.query)
        dry_run = is_dry_run(request.query)
        registry = self.cluster.registry
        if target.name:
            deleted = registry.delete(target.resource, target.namespace, target.name, options, dry_run)
            return Answer(200, deleted)
        matches = self._predicate(target, request)
        items = [item for item in self.cluster.store.items(target.resource.plural, target.namespace) if matches(item)]
        for item in items:
            registry.delete(target.resource, namespace_of(item), name_of(item), options, dry_run)
        kind = f"{target.resource.kind}List"
        metadata = {"resourceVersion": str(self.cluster.store.resource_version)}
        return Answer(
            200, {"kind": kind, "apiVersion": target.resource.api_version, "metadata": metadata, "items": items}
        )


def _patchable(live: JsonObject) -> JsonObject:
    """Return the live object without its version, so that only a version in the patch is a precondition."""
    metadata = {key: value for key, value in live["metadata"].items() if key != "resourceVersion"}
    return {**live, "metadata": metadata}


def _parse(request: Request) -> Any:
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        if "yaml" not in request.content_type:
            raise errors.bad_request(f"the body is not JSON: {error}") from error
    try:
        return yaml.safe_load(request.body)
    except yaml.YAMLError as error:
        raise errors.bad_request(f"the body is not YAML: {error}") from error


def _object(request: Request) -> JsonObject:
    body = _parse(request)
    if not isinstance(body, dict):
        raise errors.bad_request("{name} is not a chaos option; use {', '.join(sorted(known))}")
    if not isinstance(body.get("metadata") or {}, dict):
        raise errors.bad_request("metadata must be an object")
    return body


def _writer(request: Request, subresource: str) -> Writer:
    manager = request.query.get("fieldManager") or request.user_agent.partition("/")[0] or "unknown"
    # The simulated cluster has no accounts: a client is identified by its program's name.
    user = request.user_agent.partition("/")[0] or "system:anonymous"
    return Writer(manager, subresource, is_dry_run(request.query), user)


def _delete_options(body: JsonObject, query: Mapping[str, str]) -> DeleteOptions:
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", integer(query, "gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or "Background"
    if propagation not in ("Background", "Foreground", "Orphan"):
        raise errors.bad_request(f"invalid propagation policy {propagation!r}")
    return DeleteOptions(
        grace_seconds=grace,
        propagation=propagation,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
    )


def _token(version: int, last: JsonObject) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, namespace_of(last), name_of(last)])).decode()
