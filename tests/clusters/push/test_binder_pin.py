"""`pin`: we choose node and devices and write them, HAMi's own scheduler binds."""

from __future__ import annotations

import pytest

from accounts.models import DeviceBinding
from accounts.services.cluster_settings import set_device_binding
from clusters.api_objects import NODES, PODS, JsonObject
from gpus.api.reads import drifts
from gpus.models import DeviceAllocation
from tests.clusters.hami_scheduler import HELD, LOCK, HamiScheduler, given_to_hami
from tests.clusters.system import System, gpu_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pinned(system: System) -> System:
    set_device_binding(system.cluster, DeviceBinding.PIN)
    system.cluster.refresh_from_db()
    return system


def submit(system: System, name: str, manifest: JsonObject | None = None) -> DeviceAllocation:
    system.submit(manifest or given_to_hami(gpu_job(name, run_seconds=1000)))
    system.engine.run()
    system.push()
    system.push()
    return DeviceAllocation.objects.get(source="decided", workload__job__name=name)


def pod_of(system: System, name: str) -> JsonObject:
    (found,) = [pod for pod in system.pods() if pod["metadata"]["name"].startswith(name)]
    return found


def test_hami_binds_where_we_chose_whatever_its_own_policy_says(pinned: System) -> None:
    """Its policy is binpack and ours is spread: without the pin the second pod would join the first on its device."""
    hami = HamiScheduler(pinned.client, device_policy="binpack")
    held = [submit(pinned, "one")]
    pod = pod_of(pinned, "one")
    noted = pod["metadata"]["annotations"]
    assert (noted["nvidia.com/use-gpuuuid"], noted["hami.io/vgpu-node"]) == (held[0].device_uuid, held[0].node.name)
    assert noted[HELD].startswith(f"{held[0].device_uuid},NVIDIA,4000,30:")
    assert pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] == held[0].node.name
    assert "nodeName" not in pod["spec"]
    assert "hami.io/bind-phase" not in noted
    assert "hami.io/webhook" not in pod["metadata"]["labels"]
    node = pinned.client.get(NODES, "", held[0].node.name)
    assert node is not None
    assert LOCK not in node["metadata"]["annotations"]

    assert hami.run(pinned.now()).keys() == {pod["metadata"]["name"]}
    pinned.push()
    pinned.advance(3)
    held.append(submit(pinned, "two"))
    (second,) = hami.run(pinned.now()).values()
    assert second.startswith(f"{held[1].device_uuid},NVIDIA,4000,30:")
    assert held[1].device_uuid != held[0].device_uuid
    pinned.advance(3)
    pinned.watcher.resync()
    for name in ("one", "two"):
        pod = pod_of(pinned, name)
        assert pod["metadata"]["annotations"]["hami.io/bind-phase"] == "success"
        assert pod["status"]["phase"] == "Running"
        assert pinned.workload(name).pods_ready_at is not None
    assert not list(drifts(pinned.cluster.pk)), "what HAMi gave is what we hold"
    assert not DeviceAllocation.objects.filter(source="external").exists()


def test_a_pod_that_hamis_webhook_has_not_seen_stays_at_its_gate(
    pinned: System, caplog: pytest.LogCaptureFixture
) -> None:
    submit(pinned, "one", gpu_job("one", run_seconds=1000))
    assert pod_of(pinned, "one")["spec"]["schedulingGates"] == [{"name": "kueueweb.io/placement"}]
    assert "HAMi's webhook has not assigned the pod to HAMi's scheduler" in caplog.text


def test_a_pod_that_was_made_for_us_is_bound_by_us(system: System) -> None:
    system.submit(gpu_job("one", run_seconds=1000))
    system.engine.run()
    system.push()
    set_device_binding(system.cluster, DeviceBinding.PIN)
    system.cluster.refresh_from_db()
    system.push()
    pod = pod_of(system, "one")
    assert pod["metadata"]["labels"]["hami.io/webhook"] == "ignore"
    assert pod["spec"]["nodeName"] == DeviceAllocation.objects.get().node.name


def test_a_pod_that_was_given_to_hami_is_bound_by_hami_alone(pinned: System) -> None:
    """Set to `bind` while such a pod waits at its gate, both would bind it: HAMi's scheduler sees it ungated."""
    held = submit(pinned, "one")
    set_device_binding(pinned.cluster, DeviceBinding.BIND)
    pinned.cluster.refresh_from_db()
    first = pod_of(pinned, "one")["metadata"]
    pinned.client.delete(PODS, first["namespace"], first["name"])  # its job makes another from the same template
    pinned.advance(3)
    pinned.push()
    pod = pod_of(pinned, "one")
    assert (pod["metadata"]["name"] != first["name"], pod["spec"]["schedulerName"]) == (True, "hami-scheduler")
    assert not pod["spec"].get("schedulingGates")
    assert "nodeName" not in pod["spec"], "HAMi's scheduler binds it"
    (given,) = HamiScheduler(pinned.client, device_policy="binpack").run(pinned.now()).values()
    assert given.startswith(f"{held.device_uuid},NVIDIA,4000,30:")
    pinned.push()
    assert pod_of(pinned, "one")["spec"]["nodeName"] == held.node.name
