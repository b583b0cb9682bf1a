"""The users that the tests of this folder use."""

import pytest

from tests.still_throttles import stand_still
from tests.users import alice, bob, charlie, cluster, nobody, vera

__all__ = ["alice", "bob", "charlie", "cluster", "nobody", "vera"]


@pytest.fixture(autouse=True)
def still_throttles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test may take longer than the minute for which a login that failed counts."""
    stand_still(monkeypatch)
