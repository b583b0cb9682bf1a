"""Following a kind whatever happens to events, connections and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from clusters.client import ClusterClient, Listing, TokenBucket, WatchEvent
from clusters.client_credentials import connect
from clusters.reflector import Reflector
from tests.cluster_kinds import JOBS
from tests.simulated_cluster import ServerThread, job, make_simulated, post


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> ClusterClient:
    return connect(server.url, TokenBucket(10_000, 10_000))


class Reader:
    """Reads a reflector until something is so, and keeps what it knows of the cluster: the names of its jobs."""

    def __init__(self, reflector: Reflector) -> None:
        self.items: list[Listing | WatchEvent] = []
        self.names: set[str] = set()
        self._iterator = iter(reflector)

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            item = next(self._iterator)
            self.items.append(item)
            if isinstance(item, Listing):
                self.names = {entry["metadata"]["name"] for entry in item.items}
            elif item.type == "DELETED":
                self.names.discard(item.object["metadata"]["name"])
            else:
                self.names.add(item.object["metadata"]["name"])

    @property
    def listings(self) -> int:
        return sum(isinstance(item, Listing) for item in self.items)


def test_a_list_comes_first_and_changes_follow(client: ClusterClient) -> None:
    client.create(JOBS, job("a", suspend=True))
    reflector = Reflector(client, JOBS)
    reader = Reader(reflector)
    reader.until(lambda: reader.names == {"a"})
    client.create(JOBS, job("b", suspend=True))
    client.delete(JOBS, "default", "a")
    reader.until(lambda: reader.names == {"b"})
    assert reader.listings == 1
    reflector.stop()


def test_repeated_events_are_handed_out_once(server: ServerThread, client: ClusterClient) -> None:
    post(f"{server.url}/_chaos", {"watch": {"repeat_rate": 1}})
    reflector = Reflector(client, JOBS)
    reader = Reader(reflector)
    reader.until(lambda: reader.listings == 1)
    for number in range(3):
        client.create(JOBS, job(f"job-{number}", suspend=True))
    client.delete(JOBS, "default", "job-0")
    client.create(JOBS, job("last", suspend=True))
    reader.until(lambda: reader.names >= {"last"})
    events = [
        (item.type, item.object["metadata"]["uid"], item.object["metadata"]["resourceVersion"])
        for item in reader.items
        if isinstance(item, WatchEvent)
    ]
    assert len(events) == len(set(events))
    assert sum(kind == "DELETED" for kind, _, _ in events) == 1
    reflector.stop()


def test_a_broken_connection_is_resumed_without_a_list(server: ServerThread, client: ClusterClient) -> None:
    post(f"{server.url}/_chaos", {"watch": {"disconnect_rate": 0.5}})
    reflector = Reflector(client, JOBS)
    reader = Reader(reflector)
    reader.until(lambda: reader.listings == 1)
    for number in range(10):
        client.create(JOBS, job(f"job-{number}", suspend=True))
    reader.until(lambda: len(reader.names) == 10)
    versions = [
        int(item.object["metadata"]["resourceVersion"]) for item in reader.items if isinstance(item, WatchEvent)
    ]
    assert all(earlier < later for earlier, later in pairwise(versions))
    assert reader.listings == 1
    reflector.stop()


def test_a_version_that_has_expired_costs_a_list_and_loses_nothing(server: ServerThread, client: ClusterClient) -> None:
    post(f"{server.url}/_chaos", {"watch": {"disconnect_rate": 1}})
    reflector = Reflector(client, JOBS)
    reader = Reader(reflector)
    reader.until(lambda: reader.listings == 1)
    client.create(JOBS, job("a", suspend=True))
    post(f"{server.url}/_chaos", {"watch": {"disconnect_rate": 0}, "compact": True})
    reader.until(lambda: reader.names == {"a"})
    assert reader.listings == 2
    reflector.stop()


def test_lists_come_again_and_heal_what_events_missed(server: ServerThread, client: ClusterClient) -> None:
    post(f"{server.url}/_chaos", {"watch": {"drop_rate": 1}})
    now = [0.0]

    def clock() -> float:
        now[0] += 0.4
        return now[0]

    reflector = Reflector(client, JOBS, relist_seconds=1.0, clock=clock)
    reader = Reader(reflector)
    reader.until(lambda: reader.listings == 1)
    client.create(JOBS, job("missed", suspend=True))
    reader.until(lambda: reader.names == {"missed"})
    assert all(isinstance(item, Listing) for item in reader.items)
    reflector.stop()
