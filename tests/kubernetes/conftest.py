"""One control plane for all tests of this folder, and a system around it for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.webhook.served import ServedWebhook
from tests.kubernetes.control_plane import PROGRAMS, ControlPlane
from tests.kubernetes.device_plugin import DevicePlugin
from tests.kubernetes.our_webhook import our_webhook
from tests.kubernetes.system import System


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that nobody has used yet."""
    assert PROGRAMS.exists(), "make test-kubernetes builds the programs first"
    with ControlPlane(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running


@pytest.fixture
def device_plugin(plane: ControlPlane) -> Iterator[DevicePlugin]:
    """HAMi's part on the nodes; no test may end with a fault that it saw."""
    with DevicePlugin(plane.admin) as plugin:
        yield plugin
    assert plugin.faults == []


@pytest.fixture
def webhook(system: System, plane: ControlPlane) -> Iterator[ServedWebhook]:
    """It answers with the rights of its own account, and the API server asks it."""
    with our_webhook(plane, system.cluster) as served:
        yield served


@pytest.fixture
def system(plane: ControlPlane, device_plugin: DevicePlugin, transactional_db: None) -> Iterator[System]:
    """kueueweb on an empty cluster of two nodes with two devices each."""
    built = System(plane)
    yield built
    built.clear()
