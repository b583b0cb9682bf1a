"""What the tests of the seam to Kubernetes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.system import System
from tests.simulated_cluster import ServerThread, make_simulated


@pytest.fixture
def system() -> Iterator[System]:
    """A system around two nodes with two devices each, one ClusterQueue and its LocalQueue `queue` in `team`."""
    with ServerThread(make_simulated()) as server:
        yield System(server)
