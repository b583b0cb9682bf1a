"""Redis as `manage.py doctor` sees it, each fault made for real on a server of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from foundation.redis_client import redis_client
from kueueweb.checkup.finding import Finding
from kueueweb.checkup.redis_checks import redis_checks
from kueueweb.embedded.valkey import Valkey
from tests.services_plugin import short_temporary_folder


@pytest.fixture
def valkey(settings: Any) -> Iterator[Valkey]:
    with short_temporary_folder() as folder:
        server = Valkey(folder / "own")
        server.start()
        settings.REDIS_URL = server.url()
        yield server
        server.stop()


def checks() -> dict[str, Finding]:
    return {each.check: each for each in redis_checks()}


def test_a_server_that_answers_and_takes_writes_is_well(valkey: Valkey) -> None:
    found = checks()
    assert {each.status for each in found.values()} == {"ok"}
    assert found["redis"].message.startswith(("Valkey ", "Redis "))
    assert {"redis-clock", "redis-writes"} <= set(found)


def test_a_server_that_drops_messages_is_told_of(valkey: Valkey) -> None:
    redis_client().config_set("maxmemory-policy", "allkeys-lru")
    assert checks()["redis-eviction"].status == "warn"


def test_a_replica_takes_no_writes(valkey: Valkey) -> None:
    redis_client().replicaof("127.0.0.1", 1)
    finding = checks()["redis-writes"]
    assert finding.status == "fail"
    assert "primary" in finding.remedy


def test_a_server_that_ended_is_the_only_finding(valkey: Valkey) -> None:
    valkey.stop()
    [finding] = redis_checks()
    assert (finding.check, finding.status) == ("redis", "fail")
    assert "REDIS_URL" in finding.remedy
