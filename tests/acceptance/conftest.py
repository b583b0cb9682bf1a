"""Simulated clusters, with everything around them, whose clock stands still until it is moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.system import System
from tests.simulated_cluster import ServerThread, make_simulated


@pytest.fixture
def slow_start() -> Iterator[System]:
    """A cluster whose pods take an hour to get ready."""
    with ServerThread(make_simulated(start_seconds=3600.0)) as server:
        yield System(server)


@pytest.fixture
def system() -> Iterator[System]:
    """A cluster whose pods start in seconds."""
    with ServerThread(make_simulated()) as server:
        yield System(server)
