"""The Python client, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final
from urllib.parse import urlsplit

import pytest
from django.db import connection

from accounts.models import Cluster
from kueueweb_client import ApiError, AsyncClient, Client, ClientError, Timeout, Unreachable
from kueueweb_client.types import WorkloadDetail
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts


def workload(name: str, cpu: str = "1") -> dict[str, object]:
    return {
        "namespace": "team",
        "name": name,
        "local_queue": "queue",
        "pod_sets": [{"count": 1, "requests": {"cpu": cpu}}],
    }


def test_rows_come_page_after_page(client: Client) -> None:
    client.submit(*(workload(f"w-{number}") for number in range(5)))
    assert [row["name"] for row in client.rows("workloads", limit=2, ordering="id")] == [f"w-{n}" for n in range(5)]


def test_a_refusal_carries_reason_and_located_mistakes(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.submit(workload("w", cpu="lots"))
    assert (refused.value.status, refused.value.reason) == (400, "InvalidManifest")
    assert "requests" in refused.value.errors[0]["path"]
    assert "requests" in str(refused.value)


def test_an_earlier_state_is_not_watched() -> None:
    with Client("http://127.0.0.1:1", at="2026-01-05T09:00:00Z") as past, pytest.raises(ClientError, match="Forbidden"):
        next(past.watch("team", "w"))


def test_an_address_without_a_server_is_unreachable() -> None:
    with Client("http://127.0.0.1:1") as lost, pytest.raises(Unreachable):
        lost.read("session")


def test_a_watch_gives_each_state_once_and_ends_with_the_workload(client: Client) -> None:
    client.submit(workload("w"))
    states = client.watch("team", "w")
    assert next(states)["status"] == "Pending"
    Engine(Cluster.objects.get(), "test").run()
    assert next(states)["status"] == "Admitted"
    assert client.cancel({"namespace": "team", "name": "w"})
    Engine(Cluster.objects.get(), "next").run()
    assert [state["status"] for state in states][-1] == "Finished"


def test_a_watch_and_a_wait_end_when_the_workload_is_deleted(client: Client) -> None:
    assert client.wait("team", "never-was", until="deleted") is None
    client.submit(workload("w"))
    states = client.watch("team", "w")
    assert next(states)["name"] == "w"

    def delete() -> None:
        Workload.objects.get().delete()
        connection.close()

    later = threading.Timer(0.2, delete)
    later.start()
    assert client.wait("team", "w", until="deleted", timeout_seconds=60) is None
    later.join()
    assert list(states) == []


class Failing(BaseHTTPRequestHandler):
    """A server that loses connections, is full, and in the end answers; what it was asked for is in `asked`."""

    asked: ClassVar[list[str]] = []
    STATE: Final = {"status": "Pending", "reason": "", "message": "waits", "resource_version": "1"}
    ENDED: Final = {**STATE, "status": "Finished", "reason": "Succeeded", "resource_version": "2"}

    def do_GET(self) -> None:
        """One answer after the other."""
        query = urlsplit(self.path).query.removeprefix("cluster=default").lstrip("&")
        self.asked.append(query)
        number = len(self.asked)
        if number == 2:
            self.connection.close()
        elif number == 3:
            self.answer(429, {"reason": "LimitReached", "message": "full"}, {"Retry-After": "0"})
        else:
            found = self.STATE if number == 1 else self.ENDED
            lines = [{"type": "MODIFIED", "object": found}]
            self.answer(200, *(lines if "watch" in query else [found]))

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        """Send it as a line of JSON."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode() + b"\n")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def failing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        Failing.asked.clear()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def test_a_lost_watch_goes_on_where_it_was_and_says_so(failing: str, caplog: pytest.LogCaptureFixture) -> None:
    with Client(failing) as client:
        assert [state["status"] for state in client.watch("team", "w")] == ["Pending", "Finished"]
    assert Failing.asked == ["watch=true", *["watch=true&resource_version=1"] * 3]
    told = [record.getMessage() for record in caplog.records if record.name == "kueueweb_client"]
    assert [message.partition(":")[0] for message in told] == ["retrying in 1 s"] * 2
    assert told[1].endswith("LimitReached: full\n  Try again in 0 s.")


def test_a_lost_wait_goes_on_and_says_so(failing: str, caplog: pytest.LogCaptureFixture) -> None:
    async def wait() -> WorkloadDetail | None:
        async with AsyncClient(failing) as client:
            return await client.wait("team", "w", timeout_seconds=50)

    found = asyncio.run(wait())
    assert found is not None
    assert found["status"] == "Finished"
    assert Failing.asked == ["", *["resource_version=1&timeout_seconds=25"] * 3]
    assert "retrying in 1 s" in caplog.text


def test_the_asynchronous_client_does_the_same(client: Client, server: str) -> None:
    token = client._http.headers["Authorization"].removeprefix("Token ")

    async def journey() -> list[str]:
        async with AsyncClient(server, token) as found:
            await found.apply(texts.job("train"))
            await found.submit(workload("w"))
            with pytest.raises(Timeout):
                await found.wait("team", "w", timeout_seconds=0)
            async for state in found.watch("team", "w"):
                assert state["name"] == "w"
                break
            return [row["name"] async for row in found.rows("workloads", ordering="id")]

    names = asyncio.run(journey())
    assert "w" in names
    assert len(names) == 2
