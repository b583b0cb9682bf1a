"""The imitation of HAMi's monitors: plausible, repeatable, and scraped as a real one is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from accounts.models import Cluster
from gpus.models import ContainerSample, Device, DeviceSample
from gpus.services import observed_node, sync_node
from gpus.services.telemetry import Reading, read_metrics
from scheduler.housekeeping.telemetry import sample_clusters
from simulation.controllers.monitor import Monitors
from tests.factories import make_cluster
from tests.simulated_cluster import NODES, Api, ServerThread, make_simulated
from tests.simulation.test_device_plugin import bind, devices, promise

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def api() -> Api:
    return Api(make_simulated())


def read(api: Api) -> Reading:
    return read_metrics(Monitors(api.cluster.environment).text().decode())


def test_devices_without_slices_are_idle(api: Api) -> None:
    reading = read(api)
    assert len(reading.devices) == 4
    assert {(device["memory_used_mib"], device["utilization_percent"]) for device in reading.devices.values()} == {
        (0, 0)
    }
    assert reading.containers == {}


def test_a_container_uses_less_than_it_was_given(api: Api) -> None:
    bind(api, promise(api))
    uuid = devices(api)[0]["id"]
    memory, utilization = [], []
    for _ in range(20):
        api.cluster.advance(2)
        reading = read(api)
        use = reading.containers[uuid, "default", "worker", "main"]
        device = reading.devices[uuid]
        assert use["memory_used_mib"] <= device["memory_used_mib"] <= 32_768
        assert use["utilization_percent"] == device["utilization_percent"]
        assert use["last_kernel_seconds"] >= 0
        memory.append(use["memory_used_mib"])
        utilization.append(use["utilization_percent"])
    assert 0 < min(memory) < max(memory) < 4000
    assert 0 < max(utilization) < 30
    assert len(set(utilization)) > 10
    assert read(api) == read(api)


def test_what_a_node_that_is_away_says_is_absent(api: Api) -> None:
    bind(api, promise(api))
    api.cluster.set_node_state("node-01", "not-ready")
    reading = read(api)
    assert len(reading.devices) == 2
    assert reading.containers == {}


def test_what_the_plugin_could_not_read_is_left_out(api: Api) -> None:
    bind(api, promise(api))
    api.patch(
        "/api/v1/namespaces/default/pods/worker",
        {"metadata": {"annotations": {"hami.io/vgpu-devices-allocated": "?,;"}}},
    )
    reading = read(api)
    assert (len(reading.devices), reading.containers) == (4, {})


@pytest.fixture
def cluster(db: None, api: Api) -> Cluster:
    cluster = make_cluster()
    for node in api.get(NODES)["items"]:
        sync_node(cluster.pk, observed_node(node))
    return cluster


def test_the_sampler_scrapes_it(api: Api, cluster: Cluster) -> None:
    bind(api, promise(api))
    api.cluster.advance(40)
    with ServerThread(api.cluster) as server:
        cluster.telemetry_urls = [f"{server.url}/metrics"]
        assert sample_clusters([cluster], NOW) == 5
    busy = Device.objects.get(uuid=devices(api)[0]["id"])
    [container] = ContainerSample.objects.all()
    assert (container.device, container.namespace, container.pod_name) == (busy, "default", "worker")
    assert container.memory_used_mib is not None
    assert container.utilization_percent is not None
    assert 0 < container.memory_used_mib < 4000
    assert 0 < container.utilization_percent < 30
    assert DeviceSample.objects.get(device=busy).utilization_percent == container.utilization_percent
    assert DeviceSample.objects.exclude(device=busy).filter(memory_used_mib=0).count() == 3
