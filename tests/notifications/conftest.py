"""The users that the tests of this folder use."""

import pytest
from django.core.cache import cache

from notifications.services import delivery
from tests.patience import PATIENCE_SECONDS
from tests.still_throttles import stand_still
from tests.users import alice, bob, charlie, cluster, nobody, vera

__all__ = ["alice", "bob", "charlie", "cluster", "nobody", "vera"]


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users of other tests had the same keys. A test may take longer than the minute for which tests of rules count."""
    cache.clear()
    stand_still(monkeypatch)


@pytest.fixture(autouse=True)
def patient_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a receiver answers in time, and no user's deliveries wait for the next pass."""
    monkeypatch.setattr(delivery, "_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(delivery, "_PATIENCE_SECONDS", PATIENCE_SECONDS)
