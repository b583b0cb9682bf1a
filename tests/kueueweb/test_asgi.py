"""The whole application behind a real uvicorn: HTTP and the live stream on one port."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import orjson
import pytest
import uvicorn
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from knox.models import AuthToken
from redis import Redis
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from accounts.models import Cluster
from kueueweb.web.server import server_configuration
from scheduler.live.publisher import snapshot_key
from tests.users import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def address(live_services: None) -> Iterator[str]:
    """Where it listens."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # whoever comes before the server accepts waits for it
    server = uvicorn.Server(server_configuration(log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()
    with connection.cursor() as cursor:  # the server's threads keep theirs for the next request
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def token(address: str) -> str:
    """Alice's."""
    Cluster.objects.create(name="default")
    _, token = AuthToken.objects.create(make_user("alice"))
    return str(token)


def test_http(address: str, token: str) -> None:
    with httpx.Client(base_url=f"http://{address}", headers={"Authorization": f"Token {token}"}) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ok", "database": "ok", "redis": "ok"}
        listed = client.get("/api/v1/workloads/")
        assert (listed.status_code, listed.json()) == (200, {"results": [], "next": None})
        assert client.get("/api/v1/nothing/").json()["reason"] == "NotFound"


def test_eight_slow_bodies_do_not_block_other_requests(address: str, token: str) -> None:
    """S4: each took a thread for as long as it dribbled, and the probes had to wait for one too."""
    host, port = address.split(":")
    with ExitStack() as stack:
        for _ in range(12):
            slow = stack.enter_context(socket.create_connection((host, int(port))))
            slow.sendall(
                b"POST /api/v1/auth/token/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000\r\n\r\n{"
            )
        with httpx.Client(
            base_url=f"http://{address}", headers={"Authorization": f"Token {token}"}, timeout=4
        ) as client:
            for path in ("/healthz", "/readyz", "/api/v1/workloads/"):
                assert client.get(path).status_code == 200


def test_a_forwarded_address_from_anybody_passes_no_throttle(address: str, live_services: None) -> None:
    """S10: uvicorn took X-Forwarded-For from every peer on the loopback."""
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
    """S16."""
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
        received = orjson.loads(live.recv(5))
        assert received.pop("age_seconds") > 0
        assert received == frame
    with connect(url, origin=Origin(f"http://{address}")) as live, pytest.raises(ConnectionClosed) as closed:
        live.recv(5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
    with pytest.raises(InvalidStatus):
        connect(url, origin=Origin("https://evil.example"))
    with Redis.from_url(settings.REDIS_URL) as redis:
        redis.delete(snapshot_key("default"))
