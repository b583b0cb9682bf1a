"""The processes that may write to a cluster, by its mode."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accounts.models import Cluster, ClusterMode
from clusters.api_errors import ClusterError
from clusters.api_objects import PODS
from clusters.client import ClusterClient
from clusters.connection import client_for, logs_client_for, watching_client_for, writing_client_for
from scripts.syntax_trees import syntax_tree
from tests.factories import make_cluster
from tests.simulated_cluster import ServerThread, make_simulated, pod

pytestmark = pytest.mark.django_db
ROOMS = ("accounts", "clusters", "gpus", "history", "kueueweb", "notifications", "queues", "scheduler", "studio")
ROOT = Path(__file__).resolve().parents[2]
EVERY_MODE = frozenset(ClusterMode)
WHERE_WE_DECIDE = frozenset([ClusterMode.SCHEDULE])
WRITES: dict[Callable[[Cluster], ClusterClient], frozenset[ClusterMode]] = {
    client_for: WHERE_WE_DECIDE,
    watching_client_for: EVERY_MODE,
    writing_client_for: EVERY_MODE,
    logs_client_for: frozenset(),
}
"""In which modes each function's client writes."""
_MAKERS = ("clusters.connection", "clusters.client_credentials")
USERS = {
    "client_for": {
        "clusters/management/commands/audit_state.py", "clusters/management/commands/handover.py",
        "clusters/management/commands/takeover.py", "clusters/management/commands/visibility.py",
        "clusters/management/commands/webhook.py", "clusters/multikueue/controller.py", "clusters/push/sweep.py",
        "clusters/tasks.py",
    },
    "watching_client_for": {"clusters/management/commands/watch_cluster.py"},
    "writing_client_for": {
        "clusters/management/commands/handover.py", "clusters/management/commands/takeover.py", "clusters/tasks.py",
        "kueueweb/checkup/checkups.py",
    },
    "logs_client_for": {"clusters/pod_logs.py"},
    "connect": {"clusters/connection.py", "kueueweb/management/commands/loadtest.py"},
    "connect_kubeconfig": {"clusters/multikueue/controller.py", "kueueweb/loadtest/cluster_run.py"},
}  # fmt: skip
"""The modules of the product that make clients, and the functions by which they do. A load test writes to the cluster
that its caller names, which may be none of kueueweb's."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


@pytest.mark.parametrize("mode", ClusterMode)
@pytest.mark.parametrize("make", WRITES, ids=lambda make: make.__name__)
def test_a_client_writes_in_its_modes_alone(
    server: ServerThread, make: Callable[[Cluster], ClusterClient], mode: ClusterMode
) -> None:
    client = make(make_cluster(server_url=server.url, mode=mode))
    name = f"{make.__name__}-{mode}".replace("_", "-")
    if mode in WRITES[make]:
        client.create(PODS, pod(name))
    else:
        with pytest.raises(ClusterError, match="ReadOnly"):
            client.create(PODS, pod(name))
    assert (client.get(PODS, "default", name) is not None) is (mode in WRITES[make])


def test_a_module_makes_its_clients_by_the_function_that_is_named_here() -> None:
    """A process whose client is made in another way would not be the one that the other tests try."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(syntax_tree(path)):
                if isinstance(node, ast.ImportFrom) and node.module in _MAKERS:
                    for name in {each.name for each in node.names} & USERS.keys():
                        found[name].add(str(path.relative_to(ROOT)))
    assert found == USERS
