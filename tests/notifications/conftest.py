"""The users that the tests of this folder use."""

import pytest
from django.core.cache import cache

from tests.users import alice, bob, charlie, cluster, nobody, vera

__all__ = ["alice", "bob", "charlie", "cluster", "nobody", "vera"]


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Users of other tests had the same keys."""
    cache.clear()
