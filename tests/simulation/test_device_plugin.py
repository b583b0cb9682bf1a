"""The imitation of HAMi's device plugin: it goes by annotations, and refuses what does not add up."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from simulation.api.errors import ApiError
from tests.simulated_cluster import NODES, PODS, Api, make_simulated, pod

LOCK = "2026-01-01T00:00:00Z,default,worker"
REGISTER = "hami.io/node-nvidia-register"


@pytest.fixture
def api() -> Api:
    return Api(make_simulated())


def devices(api: Api, node: str = "node-01") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads(api.get(f"{NODES}/{node}")["metadata"]["annotations"][REGISTER])
    return found


def promise(api: Api, **changed: str) -> dict[str, str]:
    uuid = devices(api)[0]["id"]
    return {
        "hami.io/vgpu-node": "node-01",
        "hami.io/vgpu-devices-to-allocate": f"{uuid},NVIDIA,4000,30:;",
        "hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,4000,30:;",
        "hami.io/bind-time": "1",
        "hami.io/bind-phase": "allocating",
        **{key.replace("__", "/").replace("_", "-"): value for key, value in changed.items()},
    }


def bind(api: Api, noted: dict[str, str], count: str = "1") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": count, "nvidia.com/gpumem": "4000"}
    api.create(PODS, pod(schedulerName="ours", limits=limits, annotations=noted))
    api.patch(f"{NODES}/node-01", {"metadata": {"annotations": {"hami.io/mutex.lock": LOCK}}})
    api.call("POST", f"{PODS}/worker/binding", {"target": {"name": "node-01"}})
    api.cluster.advance(3)
    return api.get(f"{PODS}/worker")


def test_the_handshake_ends_in_success_and_gives_the_lock_back(api: Api) -> None:
    bound = bind(api, promise(api))
    assert bound["status"]["phase"] == "Running"
    noted = bound["metadata"]["annotations"]
    assert (noted["hami.io/bind-phase"], noted["hami.io/vgpu-devices-to-allocate"]) == ("success", ";")
    assert "4000" in noted["hami.io/vgpu-devices-allocated"]
    assert "hami.io/mutex.lock" not in api.get(f"{NODES}/node-01")["metadata"]["annotations"]


@pytest.mark.parametrize(
    "changed",
    [
        {"hami.io__bind_phase": "waiting"},
        {"hami.io__vgpu_node": "node-02"},
        {"hami.io__vgpu_devices_to_allocate": ";"},
        {"hami.io__vgpu_devices_to_allocate": "GPU-unknown,NVIDIA,4000,30:;"},
        {"hami.io__vgpu_devices_to_allocate": "GPU,NVIDIA,much,30:;"},
    ],
)
def test_annotations_that_do_not_add_up_fail_the_pod(api: Api, changed: dict[str, str]) -> None:
    bound = bind(api, promise(api, **changed))
    assert (bound["status"]["phase"], bound["status"]["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert bound["metadata"]["annotations"]["hami.io/bind-phase"] == "failed"
    assert "hami.io/mutex.lock" not in api.get(f"{NODES}/node-01")["metadata"]["annotations"]


def test_the_kubelets_count_must_be_the_annotations(api: Api) -> None:
    assert bind(api, promise(api), count="2")["status"]["phase"] == "Failed"


def test_a_pod_that_asks_for_devices_and_was_promised_none_fails(api: Api) -> None:
    assert bind(api, {})["status"]["reason"] == "UnexpectedAdmissionError"


def test_the_lock_of_another_pod_stays(api: Api) -> None:
    api.create(PODS, pod(schedulerName="ours", limits={"nvidia.com/gpu": "1"}, annotations=promise(api)))
    theirs = "2026-01-01T00:00:00Z,default,another"
    api.patch(f"{NODES}/node-01", {"metadata": {"annotations": {"hami.io/mutex.lock": theirs}}})
    api.call("POST", f"{PODS}/worker/binding", {"target": {"name": "node-01"}})
    api.cluster.advance(3)
    assert api.get(f"{NODES}/node-01")["metadata"]["annotations"]["hami.io/mutex.lock"] == theirs


def test_a_scheduler_that_asks_is_answered(api: Api) -> None:
    asked = {"metadata": {"annotations": {"hami.io/node-handshake": "Requesting_2026-01-01 00:00:00"}}}
    api.patch(f"{NODES}/node-01", asked)
    noted = api.get(f"{NODES}/node-01")["metadata"]["annotations"]
    assert noted["hami.io/node-handshake"].startswith("Reported")


def test_an_unhealthy_device_is_published_without_its_health(api: Api) -> None:
    uuid = devices(api)[1]["id"]
    api.cluster.set_device_health(uuid, False)
    assert [device.get("health") for device in devices(api)] == [True, None]
    api.cluster.set_device_health(uuid, True)
    assert [device.get("health") for device in devices(api)] == [True, True]
    with pytest.raises(ApiError):
        api.cluster.set_device_health("GPU-nowhere", False)
