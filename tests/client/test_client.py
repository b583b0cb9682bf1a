"""The Python client, blocking and asynchronous."""

from __future__ import annotations

import asyncio

import pytest

from accounts.models import Cluster
from kueueweb_client import ApiError, AsyncClient, Client, Timeout, Unreachable
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts


def workload(name: str, cpu: str = "1") -> dict[str, object]:
    return {
        "namespace": "team",
        "name": name,
        "queue_name": "queue",
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


def test_an_address_without_a_server_is_unreachable() -> None:
    with Client("http://127.0.0.1:1") as lost, pytest.raises(Unreachable):
        lost.read("session")


def test_a_watch_gives_each_state_once_and_ends_with_the_workload(client: Client) -> None:
    client.submit(workload("w"))
    states = client.watch("team", "w", pause_seconds=0.01)
    assert next(states)["status"] == "Pending"
    Engine(Cluster.objects.get(), "test").run()
    assert next(states)["status"] == "Admitted"
    assert client.cancel({"namespace": "team", "name": "w"})
    Engine(Cluster.objects.get(), "next").run()
    assert [state["status"] for state in states][-1] == "Finished"


def test_waiting_for_a_deletion(client: Client) -> None:
    assert client.wait("team", "never-was", until="deleted") is None


def test_the_asynchronous_client_does_the_same(client: Client, server: str) -> None:
    token = client._http.headers["Authorization"].removeprefix("Token ")

    async def journey() -> list[str]:
        async with AsyncClient(server, token) as found:
            await found.apply(texts.job("train"))
            await found.submit(workload("w"))
            with pytest.raises(Timeout):
                await found.wait("team", "w", timeout_seconds=0)
            return [row["name"] async for row in found.rows("workloads", ordering="id")]

    names = asyncio.run(journey())
    assert "w" in names
    assert len(names) == 2
