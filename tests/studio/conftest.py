"""The users that the tests of this folder use, and a studio that lives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foundation.redis_client import redis_client
from tests.studio_answers import let_a_studio_live
from tests.users import alice, bob, charlie, cluster, nobody, vera

__all__ = ["alice", "bob", "charlie", "cluster", "living_studio", "nobody", "vera"]


@pytest.fixture
def living_studio() -> Iterator[None]:
    """The heartbeat of a studio, until the test ends."""
    let_a_studio_live()
    yield
    redis_client().delete("kueueweb:heartbeats")
