"""A simulated cluster for tests: small, with a clock that stands still until it is told to move."""

from __future__ import annotations

import threading
import urllib.request
from types import TracebackType
from typing import Any, Self

import orjson

from simulation.api.api_server import APPLY_PATCH, MERGE_PATCH, Answer, ApiServer, Request
from simulation.clock import VirtualClock
from simulation.cluster import SimulatedCluster
from simulation.environment import Options
from simulation.fleet import GpuNodes
from simulation.server import Server, address, listen
from tests.patience import PATIENCE_SECONDS

JsonObject = dict[str, Any]

TWO_NODES = GpuNodes("node", 2, "V100", "NVIDIA-V100", devices=2, memory_mib=32_768, cpu="8", memory="64Gi", slots=4)
"""Two nodes, each with 8 cpu, 64Gi and two devices of 32 GiB in four slots."""

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


def make_simulated(
    *, nodes: GpuNodes | None = TWO_NODES, history_limit: int = 5_000, **options: Any
) -> SimulatedCluster:
    """A cluster with a virtual clock."""
    cluster = SimulatedCluster(VirtualClock(), Options(**options), seed="7", history_limit=history_limit)
    for manifest in nodes.manifests() if nodes else ():
        cluster.add(manifest)
    cluster.settle()
    return cluster


class Api:
    """The API server of a cluster without a network: each call is one request, and lets the controllers act."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self._server = ApiServer(cluster)

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Answer:
        content = b"" if body is None else orjson.dumps(body)
        answer = self._server.answer(Request(method, path, query, content_type, content, "tests/1"))
        assert isinstance(answer, Answer)
        self.cluster.settle()
        # As over the wire: what a test does to an answer does nothing to the cluster.
        return Answer(answer.code, orjson.loads(orjson.dumps(answer.body)))

    def get(self, path: str, **query: str) -> JsonObject:
        answer = self.call("GET", path, **query)
        assert answer.code == 200, answer.body
        return dict(answer.body)

    def names(self, path: str, **query: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.get(path, **query)["items"]]

    def create(self, path: str, body: JsonObject) -> JsonObject:
        answer = self.call("POST", path, body)
        assert answer.code == 201, answer.body
        return dict(answer.body)

    def patch(self, path: str, body: JsonObject) -> JsonObject:
        answer = self.call("PATCH", path, body, MERGE_PATCH)
        assert answer.code == 200, answer.body
        return dict(answer.body)

    def apply(self, path: str, body: JsonObject, manager: str = "tests", force: str = "false") -> Answer:
        return self.call("PATCH", path, body, APPLY_PATCH, fieldManager=manager, force=force)

    def pods(self) -> list[JsonObject]:
        return list(self.get("/api/v1/pods")["items"])

    def phases(self) -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.pods())


def job(
    name: str = "train", *, run_seconds: float | None = 60, annotations: JsonObject | None = None, **spec: Any
) -> JsonObject:
    """A batch/v1 Job of one pod that asks for one cpu."""
    noted = {**(annotations or {})}
    if run_seconds is not None:
        noted["kueueweb.io/run-seconds"] = str(run_seconds)
    requests = spec.pop("requests", {"cpu": "1"})
    limits = spec.pop("limits", {})
    pod_spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "app", "resources": {"requests": requests, "limits": limits}}],
    }
    template = {"metadata": {"annotations": noted}, "spec": pod_spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template, **spec},
    }


def pod(name: str = "worker", *, annotations: JsonObject | None = None, **spec: Any) -> JsonObject:
    """A v1 Pod with one container that asks for one cpu."""
    requests = spec.pop("requests", {"cpu": "1"})
    limits = spec.pop("limits", {})
    container = {"name": "main", "image": "app", "resources": {"requests": requests, "limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def post(url: str, body: Any) -> JsonObject:
    """POST JSON to a server that runs, and its answer."""
    request = urllib.request.Request(url, data=orjson.dumps(body), method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
        found: JsonObject = orjson.loads(response.read())
        return found


def fetch(url: str) -> JsonObject:
    """GET from a server that runs."""
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:
        found: JsonObject = orjson.loads(response.read())
        return found


class _WriteGuard:
    """ASGI: in front of an API server that refuses us every write while `closed`, and remembers what was tried."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self.closed = False
        self.refused: list[str] = []
        self.faults: list[tuple[int, dict[str, str]]] = []
        """What the next of our requests get instead of an answer: a status, and headers; 0: the connection is cut."""
        self.away = False
        """Whether none of our requests gets an answer."""
        self.requests: list[str] = []
        """Our requests: method and path."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        agents = dict(scope.get("headers") or ())
        ours = scope["type"] == "http" and agents.get(b"user-agent") == b"kueueweb"
        if ours:
            self.requests.append(f"{scope['method']} {scope['path']}")
        if ours and (self.away or self.faults):
            await self._fail(send, *((0, {}) if self.away else self.faults.pop(0)))
            return
        await self._answer(scope, receive, send)

    async def _fail(self, send: Any, status: int, headers: dict[str, str]) -> None:
        if not status:
            raise ConnectionAbortedError("the server is away")
        pairs = [(key.encode(), text.encode()) for key, text in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": b'{"kind": "Status", "message": "not now"}'})

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        agent = dict(scope.get("headers") or ()).get(b"user-agent", b"")
        if not self.closed or scope["type"] != "http" or scope["method"] == "GET" or agent != b"kueueweb":
            await self._application(scope, receive, send)
            return
        self.refused.append(f"{scope['method']} {scope['path']}")
        body = orjson.dumps({"kind": "Status", "reason": "Forbidden", "code": 403, "message": "only get, list, watch"})
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class ServerThread:
    """A cluster served on a free port of the loopback by a thread of this process; a context manager.

    `url` is where it listens. The cluster itself belongs to that thread: talk to it over HTTP, but for its time. With
    `guard.closed` it refuses whatever kueueweb would write, and `guard.refused` says what that was.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._clock = cluster.clock
        self._socket = listen("127.0.0.1", 0)
        self._server = Server(cluster)
        self.guard = self._server.config.app = _WriteGuard(self._server.config.app)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="simulated-cluster")
        self.url = address(self._socket)

    def now(self) -> float:
        """The cluster's time, without a request: a test asks for it hundreds of times."""
        return self._clock.now()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
