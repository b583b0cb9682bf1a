"""The client of a Kubernetes API server, real or simulated.

The package `kubernetes` provides authentication, TLS and connections. Requests and objects are plain JSON (`orjson`):
the package's own requests take twice the processor, and its typed models ten times. Requests are paced by a token
bucket. All errors are `ClusterError`.
"""

from __future__ import annotations

import contextlib
import copy
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

import orjson
import urllib3

from clusters.api_errors import ClusterError, ClusterUnreachable, error_of_answer, error_of_status, retry_after_seconds
from clusters.api_objects import PODS, JsonObject, Kind

FIELD_MANAGER: Final = "kueueweb"
MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
PAGE_SIZE: Final = 500
_CONNECT_SECONDS: Final = 5.0
_LOG_PIECE_BYTES: Final = 64 * 1024
_REQUEST_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 300
_LOG_SILENCE_SECONDS: Final = 600.0
"""A log that is silent for this long is no longer followed."""
REQUESTS_PER_SECOND: Final = 300.0
BURST: Final = 500.0
"""The most that a process asks of one server, as Kueue bounds itself; the server's own answers slow it down further."""
_MAX_PAUSE_SECONDS: Final = 30.0
_MAX_ATTEMPTS: Final = 5
_SILENCE_SECONDS: Final = 90.0
"""A watch that is silent for this long, even without a bookmark, counts as broken."""


class TokenBucket:
    """At most `rate` requests a second on average and `burst` at once. Thread-safe."""

    def __init__(
        self,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._tokens = burst
        self._filled_at = clock()
        self._not_before = 0.0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Wait until another request may be sent."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
            self._filled_at = now
            self._tokens -= 1
            wait = max(-self._tokens / self._rate, self._not_before - now)
        if wait > 0:
            self._sleep(wait)

    def pause(self, seconds: float) -> None:
        """Send nothing for this long: the server has asked for it."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock() + seconds)


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind, as of one resourceVersion."""

    items: tuple[JsonObject, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: JsonObject


class ClusterClient:
    """Requests to one API server. Every method raises ClusterError.

    * configuration: from `connect`.

    * pace: a bucket that may be shared; None: 300 requests a second, bursts of 500.

    * page_size: how many objects a list requests at once.

    * read_only: requests that would change the cluster are refused before they are sent.
    """

    def __init__(
        self,
        configuration: Any,
        pace: TokenBucket | None = None,
        *,
        page_size: int = PAGE_SIZE,
        read_only: bool = False,
    ) -> None:
        # The package takes a quarter of a second to import, and most processes never speak to a cluster.
        from kubernetes.client import ApiClient

        self._page_size = page_size
        self._read_only = read_only
        # urllib3 reopens closed connections; responses are checked here.
        configuration.retries = urllib3.Retry(total=1, status=0, redirect=0, respect_retry_after_header=False)
        self._configuration = configuration
        self._connections: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
        self._pace = pace or TokenBucket(REQUESTS_PER_SECOND, BURST)
        self.server = str(configuration.host)

    def reading(self) -> Self:
        """Return the same client, which refuses to write."""
        found = copy.copy(self)
        found._read_only = True  # noqa: SLF001 (its own class)
        return found

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """Return one object; None if it does not exist."""
        try:
            return self._json("GET", kind.path(namespace, name))
        except ClusterError as error:
            if error.not_found:
                return None
            raise

    def served(self, kinds: Iterable[Kind]) -> set[Kind]:
        """Return the kinds of the list that the server serves, with one request for the groups and one for each present
        group."""
        wanted: dict[str, set[Kind]] = {}
        for kind in kinds:
            wanted.setdefault(kind.api_version, set()).add(kind)
        there = {"v1", *(f"{group}/{version}" for group, found in self.groups().items() for version in found)}
        served: set[Kind] = set()
        for api_version in sorted(wanted.keys() & there):
            plurals = self._plurals(api_version)
            served |= {kind for kind in wanted[api_version] if kind.plural in plurals}
        return served

    def groups(self) -> dict[str, list[str]]:
        """Return the API groups that the server serves, without the core one, and their versions, the preferred one
        first."""
        found: dict[str, list[str]] = {}
        for group in self._json("GET", "/apis").get("groups") or ():
            for entry in group.get("versions") or ():
                name, _, version = entry["groupVersion"].rpartition("/")
                found.setdefault(name, []).append(version)
        return found

    def server_version(self) -> tuple[str, datetime | None]:
        """Return the server's Kubernetes version, such as v1.36.3, and its time (to the second)."""
        answer = self._send_paced("GET", "/version", {}, None, "application/json")
        try:
            version = str(orjson.loads(answer.data)["gitVersion"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ClusterUnreachable(f"{self.server}/version: the answer is not that of a Kubernetes") from error
        date = answer.headers.get("Date")
        return version, parsedate_to_datetime(date) if date else None

    def ping(self, timeout_seconds: float) -> None:
        """Check that the server answers within this time. Raises ClusterError. The check does not wait for its turn
        under the rate limit."""
        self._send("GET", "/version", {}, timeout=timeout_seconds)

    def metrics(self) -> str:
        """Return the server's own metrics, in Prometheus' text format."""
        return self._send_paced("GET", "/metrics", {}, None, "text/plain").data.decode()

    def kind_named(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind with that name in a group and version, as the server serves it; None if the server does not
        serve it."""
        for entry in self._resources(api_version):
            if entry["kind"] == kind and "/" not in entry["name"]:
                return Kind(api_version, kind, entry["name"], namespaced=bool(entry["namespaced"]))
        return None

    def _plurals(self, api_version: str) -> set[str]:
        return {entry["name"] for entry in self._resources(api_version)}

    def _resources(self, api_version: str) -> Sequence[JsonObject]:
        """Return the resources that a group serves. A group whose definition is being installed is listed before it
        is served."""
        root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
        try:
            return self._json("GET", root).get("resources") or ()
        except ClusterError as error:
            if error.not_found:
                return ()
            raise

    def list(self, kind: Kind, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> Listing:
        """List all objects, page by page. The list starts over once if the pages expire meanwhile."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "limit": str(self._page_size)}
        try:
            return self._list(kind, namespace, query)
        except ClusterError as error:
            if not error.expired:
                raise
            return self._list(kind, namespace, {**query, "limit": ""})

    def watch(
        self,
        kind: Kind,
        resource_version: str,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = _WATCH_SECONDS,
        silence_seconds: float = _SILENCE_SECONDS,
        opened: Callable[[Callable[[], None]], None] | None = None,
    ) -> Iterator[WatchEvent]:
        """Yield the changes after that resourceVersion, until the server ends the watch (then resume from the last
        version). `opened` receives a function that ends the watch from another thread. A version that is too old raises
        a ClusterError with `expired`; a server that sends nothing for `silence_seconds` is ClusterUnreachable."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(timeout_seconds),
        }
        response = self._send("GET", kind.path(namespace), query, timeout=(_CONNECT_SECONDS, silence_seconds))
        ended = threading.Event()

        def end() -> None:
            ended.set()
            # urllib3 refuses to shut down a response that has just ended by itself.
            with contextlib.suppress(ValueError):
                response.shutdown()

        try:
            if opened is not None:
                opened(end)
            for line in _lines(response):
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise error_of_status(event["object"], int(event["object"].get("code", 500)))
                yield WatchEvent(event["type"], event["object"])
        except (urllib3.exceptions.HTTPError, OSError, orjson.JSONDecodeError) as error:
            if not ended.is_set():
                raise ClusterUnreachable(str(error)) from error
        finally:
            response.close()

    def pod_log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        follow: bool = False,
        tail: int | None = None,
        since: str = "",
        timestamps: bool = False,
        previous: bool = False,
        limit_bytes: int | None = None,
        opened: Callable[[Callable[[], None]], None] | None = None,
    ) -> Iterator[bytes]:
        """Yield the log of a container in pieces as they arrive; with `follow`, until the container ends.

        `since` is an RFC 3339 time. `previous` reads the instance before the last restart. `opened` receives a function
        that ends the log from another thread.
        """
        query = {
            "container": container,
            "follow": "true" if follow else "",
            "tailLines": "" if tail is None else str(tail),
            "sinceTime": since,
            "timestamps": "true" if timestamps else "",
            "previous": "true" if previous else "",
            "limitBytes": "" if limit_bytes is None else str(limit_bytes),
        }
        timeout = (_CONNECT_SECONDS, _LOG_SILENCE_SECONDS if follow else _REQUEST_SECONDS)
        response = self._send("GET", PODS.path(namespace, pod, "log"), query, timeout=timeout)
        return _pieces(response, opened)

    def create(self, kind: Kind, item: Mapping[str, Any], *, dry_run: bool = False) -> JsonObject:
        """POST; a ClusterError with `conflict` if the name is taken. A dry run checks everything and stores nothing."""
        namespace = str(item["metadata"].get("namespace", ""))
        query = {"fieldManager": FIELD_MANAGER, "dryRun": "All" if dry_run else ""}
        return self._json("POST", kind.path(namespace), query, item)

    def apply(
        self,
        kind: Kind,
        item: Mapping[str, Any],
        *,
        force: bool = True,
        subresource: str = "",
        manager: str = FIELD_MANAGER,
    ) -> JsonObject:
        """Apply the object on the server side. Fields given here become the manager's, fields that it no longer gives
        are removed, and all others stay. A resourceVersion in the metadata is a precondition."""
        metadata = item["metadata"]
        path = kind.path(str(metadata.get("namespace", "")), str(metadata["name"]), subresource)
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return self._json("PATCH", path, query, item, _APPLY_PATCH)

    def replace(self, kind: Kind, item: Mapping[str, Any]) -> JsonObject:
        """PUT; a ClusterError with `conflict` unless the object still has the resourceVersion that `item` names."""
        metadata = item["metadata"]
        path = kind.path(str(metadata.get("namespace", "")), str(metadata["name"]))
        return self._json("PUT", path, {"fieldManager": FIELD_MANAGER}, item)

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> JsonObject:
        """JSON merge patch; a resourceVersion in it is a precondition."""
        path = kind.path(namespace, name, subresource)
        return self._json("PATCH", path, {"fieldManager": FIELD_MANAGER}, patch, MERGE_PATCH)

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete one object, with its own grace period or another one; with `uid`, only the object with that uid. False
        if it does not exist."""
        body: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            self._json("DELETE", kind.path(namespace, name), {}, body)
        except ClusterError as error:
            if error.not_found or (uid and error.conflict):
                return False
            raise
        return True

    def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        """Bind a pod to a node. Raises a ClusterError with `conflict` if it is already bound or was replaced by another
        pod.
        """
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._json("POST", PODS.path(namespace, pod, "binding"), {"fieldManager": FIELD_MANAGER}, binding)

    def _list(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Listing:
        items: list[JsonObject] = []
        page = self._json("GET", kind.path(namespace), query)
        version = str(page["metadata"].get("resourceVersion", ""))
        while True:
            # Only the list itself has kind and apiVersion in the response. Here they are added to the items.
            items.extend({"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in page["items"])
            following = page["metadata"].get("continue")
            if not following:
                return Listing(tuple(items), version)
            page = self._json("GET", kind.path(namespace), {**query, "continue": following})

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        response = self._send_paced(method, path, query or {}, body, content_type)
        try:
            content = response.data
        except urllib3.exceptions.HTTPError as error:
            raise ClusterUnreachable(str(error)) from error
        try:
            found: JsonObject = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise ClusterUnreachable(f"{method} {path}: the answer is not JSON: {error}") from error
        return found

    def _send_paced(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None, content_type: str
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, and send it again when the server has postponed it (429: nothing was done). All other
        requests at the same rate limit wait, too."""
        for _ in range(_MAX_ATTEMPTS - 1):
            self._pace.take()
            try:
                return self._send(method, path, query, body, content_type)
            except ClusterError as error:
                if error.retry_after:
                    self._pace.pause(min(error.retry_after, _MAX_PAUSE_SECONDS))
                if error.status != HTTPStatus.TOO_MANY_REQUESTS or not error.retry_after:
                    raise
        self._pace.take()
        return self._send(method, path, query, body, content_type)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        timeout: float | tuple[float, float] = _REQUEST_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        if self._read_only and method != "GET":
            raise ClusterError(HTTPStatus.FORBIDDEN, "ReadOnly", f"{method} {path}: this client only reads")
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": FIELD_MANAGER}
        credentials = self._configuration.auth_settings().get("BearerToken")  # first: it may read the kubeconfig again
        if credentials is not None:
            headers[credentials["key"]] = credentials["value"]
        parameters = "&".join(f"{key}={quote(value)}" for key, value in query.items() if value)
        try:
            answer = self._connections.urlopen(
                method,
                f"{self._configuration.host}{path}{'?' if parameters else ''}{parameters}",
                body=None if body is None else _encoded(body),
                headers=headers,
                timeout=_timeout(timeout),
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterUnreachable(f"{self.server}: {_cause(error)}") from error
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise error_of_answer(answer.status, answer.data, retry_after_seconds(answer.headers.get("Retry-After")))
        return answer


def _timeout(seconds: float | tuple[float, float]) -> urllib3.Timeout:
    """Return the timeout of a request as a whole, or of its connection and of each read."""
    if isinstance(seconds, tuple):
        return urllib3.Timeout(connect=seconds[0], read=seconds[1])
    return urllib3.Timeout(total=seconds)


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # too deep for orjson, or with a number or a text that only Python's encoder takes
        return json.dumps(body).encode()


def _cause(error: BaseException) -> str:
    """Return why there was no answer, in one line that begins with the fault."""
    if isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason is not None:
        return _cause(error.reason)
    for each in (error, *error.args):
        if isinstance(each, ssl.SSLCertVerificationError):
            return (
                f"the certificate of the server is not trusted: {each.verify_message}. The certificate authority is "
                "that of the kubeconfig or of the pod's account"
            )
    return " ".join(str(error).split())


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    buffer = b""
    for chunk in response.stream(amt=None, decode_content=True):
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        yield from (line for line in lines if line)


def _pieces(response: urllib3.BaseHTTPResponse, opened: Callable[[Callable[[], None]], None] | None) -> Iterator[bytes]:
    ended = threading.Event()

    def end() -> None:
        ended.set()
        with contextlib.suppress(ValueError):
            response.shutdown()

    try:
        if opened is not None:
            opened(end)
        while piece := response.read1(_LOG_PIECE_BYTES):
            yield piece
    except (urllib3.exceptions.HTTPError, OSError) as error:
        if not ended.is_set():
            raise ClusterUnreachable(str(error)) from error
    finally:
        response.close()
