"""The whole application behind a real uvicorn: HTTP and the live stream on one port."""

import shlex
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.models import QuerySet
from knox.models import AuthToken
from redis import Redis
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from accounts.models import Cluster, RoleBinding
from kueueweb import asgi
from queues.models import PodSet, Workload
from scheduler.live.publisher import snapshot_key
from tests.factories import make_cluster, make_namespace, make_workload
from tests.patience import PATIENCE_SECONDS
from tests.still_throttles import stand_still
from tests.users import make_user
from tests.web_server import listening_server

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "api.md"


@pytest.fixture
def address(live_services: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where it listens."""
    monkeypatch.setattr(asgi._gate, "_ready_seconds", PATIENCE_SECONDS)
    with listening_server() as found:
        yield found


@pytest.fixture
def token(address: str) -> str:
    """Alice's."""
    Cluster.objects.create(name="default")
    _, token = AuthToken.objects.create(make_user("alice"))
    return str(token)


def test_http(address: str, token: str) -> None:
    with httpx.Client(base_url=f"http://{address}", headers={"Authorization": f"Token {token}"}) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["database"], ready.json()["redis"]) == (200, "ok", "ok")
        listed = client.get("/api/v1/workloads/")
        assert (listed.status_code, listed.json()) == (200, {"results": [], "next": None})
        assert client.get("/api/v1/nothing/").json()["reason"] == "NotFound"


def test_eight_slow_bodies_do_not_block_other_requests(
    address: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took a thread for as long as it dribbled, and the probes had to wait for one too. Here that is forever."""
    monkeypatch.setattr(asgi._bodies, "first_seconds", 10 * PATIENCE_SECONDS)
    host, port = address.split(":")
    with ExitStack() as stack:
        for _ in range(12):
            slow = stack.enter_context(socket.create_connection((host, int(port))))
            slow.sendall(
                b"POST /api/v1/auth/token/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000\r\n\r\n{"
            )
        with httpx.Client(
            base_url=f"http://{address}", headers={"Authorization": f"Token {token}"}, timeout=PATIENCE_SECONDS
        ) as client:
            for path in ("/healthz", "/readyz", "/api/v1/workloads/"):
                assert client.get(path).status_code == 200


def test_a_forwarded_address_from_anybody_passes_no_throttle(
    address: str, live_services: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uvicorn took X-Forwarded-For from every peer on the loopback."""
    stand_still(monkeypatch)
    cache.clear()
    with httpx.Client(base_url=f"http://{address}") as client:
        statuses = [
            client.post(
                "/api/v1/auth/token/",
                json={"username": "operator", "password": "wrong"},
                headers={"X-Forwarded-For": f"10.0.0.{number}"},
            ).status_code
            for number in range(11)
        ]
    cache.clear()
    assert statuses == [401] * 10 + [429]


def test_a_response_names_no_server_and_is_not_cacheable(address: str, token: str) -> None:
    headers = httpx.get(f"http://{address}/api/v1/workloads/", headers={"Authorization": f"Token {token}"}).headers
    assert "server" not in headers
    assert headers["cache-control"] == "no-store"


def test_the_live_stream(address: str, token: str) -> None:
    data: dict[str, dict[str, str]] = {"totals": {}, "cluster_queues": {}, "cohorts": {}, "devices": {}}
    time = "2026-01-01T00:00:00Z"
    frame = {"type": "snapshot", "cluster": "default", "epoch": 1, "sequence": 1, "time": time, "data": data}
    with Redis.from_url(settings.REDIS_URL) as redis:
        redis.set(snapshot_key("default"), orjson.dumps(frame))
    url = f"ws://{address}/ws/live/?cluster=default"
    with connect(url, additional_headers={"Authorization": f"Token {token}"}) as live:
        received = orjson.loads(live.recv(PATIENCE_SECONDS))
        assert received.pop("age_seconds") > 0
        assert received == frame
    with connect(url, origin=Origin(f"http://{address}")) as live, pytest.raises(ConnectionClosed) as closed:
        live.recv(PATIENCE_SECONDS)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
    with pytest.raises(InvalidStatus):
        connect(url, origin=Origin("https://evil.example"))
    with Redis.from_url(settings.REDIS_URL) as redis:
        redis.delete(snapshot_key("default"))


def lines(text: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a watch."""
    for line in text:
        event = orjson.loads(line)
        yield event["type"], event["object"]


def test_a_workload_is_watched(address: str, token: str) -> None:
    """Item 1 of the contract: a tenant's watch ends with its role, a question is answered when the workload changes."""
    cluster = Cluster.objects.get()
    make_namespace(cluster, "team-a")
    workload = make_workload(cluster, "train", namespace="team-a")
    _, tenant = AuthToken.objects.create(make_user("bob"))
    _, other = AuthToken.objects.create(make_user("charlie"))
    rows = Workload.objects.filter(pk=workload.pk)
    url = f"http://{address}/api/v1/workloads/team-a/train/"
    with httpx.Client(headers={"Authorization": f"Token {tenant}"}, timeout=60) as client:
        for parameters in ({"watch": "true"}, {"resource_version": "1"}):
            refused = client.get(url, params=parameters, headers={"Authorization": f"Token {other}"})
            assert (refused.status_code, refused.json()["reason"]) == (404, "NotFound")
        now = client.get(url)
        version = now.json()["resource_version"]
        assert now.headers["etag"] == f'"{version}"'
        same = client.get(url, params={"resource_version": version, "timeout_seconds": 0})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", f'"{version}"')
        assert client.get(url, params={"timeout_seconds": 1}).json()["errors"][0]["path"] == "timeout_seconds"
        assert client.get(url, params={"resource_version": "7.7.7", "timeout_seconds": 600}).json() == now.json()

        with client.stream("GET", url, params={"watch": "true"}) as stream:
            assert stream.headers["content-type"] == "application/x-ndjson"
            events = lines(stream.iter_lines())
            assert next(events) == ("ADDED", now.json())
            PodSet.objects.filter(workload=workload).update(reclaimable_count=1)
            kind, found = next(events)
            assert (kind, found["pod_sets"][0]["reclaimable_count"]) == ("MODIFIED", 1)
            later = threading.Timer(0.2, change, [rows])
            later.start()
            assert client.get(url, params={"resource_version": found["resource_version"]}).json()["message"] == "waits"
            later.join()
            assert next(events)[1]["message"] == "waits"
            RoleBinding.objects.filter(username="bob").delete()
            rows.update(message="secret")
            kind, found = next(events)
            assert (kind, found["status"]) == ("ERROR", 403)
            assert next(events, None) is None

        words = shlex.split(curl_line().replace("$URL", f"http://{address}").replace("$TOKEN", token))
        assert words[:3] == ["curl", "-sN", "-H"]
        name, _, value = words[3].partition(": ")
        with client.stream("GET", words[4], headers={name: value}) as stream:
            events = lines(stream.iter_lines())
            assert next(events)[1]["message"] == "secret"
            rows.get().delete()
            assert [(kind, found["message"]) for kind, found in events] == [("DELETED", "secret")]


def test_a_watch_does_not_hold_up_the_end_of_the_server(live_services: None) -> None:
    _, admin = AuthToken.objects.create(make_user("alice"))
    make_workload(make_cluster(), "train")
    with ExitStack() as server:
        address = server.enter_context(listening_server())
        url, headers = f"http://{address}/api/v1/workloads/team/train/", {"Authorization": f"Token {admin}"}
        with httpx.stream("GET", url, params={"watch": "true"}, headers=headers, timeout=60) as stream:
            events = lines(stream.iter_lines())
            assert next(events)[0] == "ADDED"
            server.close()
            assert next(events, None) is None


def change(rows: QuerySet[Workload]) -> None:
    """What another thread does."""
    rows.update(message="waits")
    connection.close()


def curl_line() -> str:
    """The watch of one workload in docs/api.md."""
    found = [
        line.strip() for line in DOCUMENT.read_text().splitlines() if "train/?watch=true" in line and "curl" in line
    ]
    assert len(found) == 1
    return found[0]
