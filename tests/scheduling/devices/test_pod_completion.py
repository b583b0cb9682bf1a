"""Pods as HAMi's webhook lets them in: limits completed, variables and runtime class added, nothing else touched."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpus.vendors import VENDORS
from scheduling.devices.requests.pod_completion import completed_pod
from scheduling.devices.requests.requests import pod_device_request
from scheduling.model.vendor import DeviceVendor


def pod(*limits: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod with a container per dict of limits."""
    containers = [{"name": f"c{n}", "resources": {"limits": each}} for n, each in enumerate(limits)]
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": containers, **spec}}


def limits_of(completed: dict[str, Any], container: int = 0) -> dict[str, Any]:
    """The limits of one container."""
    found: dict[str, Any] = completed["spec"]["containers"][container]["resources"]["limits"]
    return found


def env_of(completed: dict[str, Any], container: int = 0) -> dict[str, str]:
    """The variables of one container."""
    return {each["name"]: each["value"] for each in completed["spec"]["containers"][container].get("env", ())}


def configured(word: str, **additions: Any) -> tuple[DeviceVendor, ...]:
    """The table with other additions for one vendor."""
    return tuple(
        replace(vendor, additions=replace(vendor.additions, **additions)) if vendor.common_word == word else vendor
        for vendor in VENDORS
    )


@pytest.mark.parametrize(
    ("limits", "completed"),
    [
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 100}),
        ({"nvidia.com/gpumem": 3000}, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}),
        ({"nvidia.com/gpucores": 30}, {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}),
        (
            {"iluvatar.ai/MR-V100-vgpu": 3, "iluvatar.ai/MR-V100.vCore": 5},
            {"iluvatar.ai/MR-V100-vgpu": 3, "iluvatar.ai/MR-V100.vCore": 300},
        ),
        (
            {"mthreads.com/vgpu": 1},
            {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-core": 16, "mthreads.com/sgpu-memory": 96},
        ),
        (
            {"mthreads.com/vgpu": 2, "mthreads.com/sgpu-memory": 4},
            {"mthreads.com/vgpu": 2, "mthreads.com/sgpu-core": 32, "mthreads.com/sgpu-memory": 192},
        ),
        (
            {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 5000},
            {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 16_384},
        ),
        ({"huawei.com/Ascend910C": 1}, {"huawei.com/Ascend910C": 2, "huawei.com/Ascend910C-memory": 65_536}),
        (
            {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 1},
            {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 24_576},
        ),
        ({"hygon.com/dcunum": 1}, {"hygon.com/dcunum": 1}),
    ],
    ids=lambda limits: " ".join(f"{name.rpartition('/')[2]}={amount}" for name, amount in limits.items()),
)
def test_limits_are_completed(limits: dict[str, Any], completed: dict[str, Any]) -> None:
    asked = pod({**limits, "cpu": "500m"})
    before = deepcopy(asked)
    assert limits_of(completed_pod(asked, VENDORS)) == {**completed, "cpu": "500m"}
    assert asked == before


def test_a_soft_split_keeps_its_memory() -> None:
    asked = pod(
        {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 5000, "huawei.com/Ascend910B3-core": 40},
        annotations={"huawei.com/vnpu-mode": "hami-core"},
    )
    assert completed_pod(asked, VENDORS) == asked


def test_requests_follow_the_limits_where_there_are_any() -> None:
    asked = pod({"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 5000})
    asked["spec"]["containers"][0]["resources"]["requests"] = {"cpu": 1, "huawei.com/Ascend910B3": 1}
    resources = completed_pod(asked, VENDORS)["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": 1, **resources["limits"]}


def test_a_pod_without_devices_stays_as_it_is() -> None:
    asked = pod({"cpu": 1})
    assert completed_pod(asked, configured("NVIDIA", overwrite_env=True)) == asked
    assert completed_pod({}, VENDORS) == {}


def test_priorities_and_container_names_become_variables() -> None:
    asked = pod({"nvidia.com/gpu": 1, "nvidia.com/priority": 2}, {"cpu": 1})
    completed = completed_pod(asked, VENDORS)
    assert (env_of(completed), env_of(completed, 1)) == ({"CUDA_TASK_PRIORITY": "2"}, {})
    assert env_of(completed_pod(pod({"iluvatar.ai/MR-V50-vgpu": 1}), VENDORS)) == {"SOL_CONTINER_NAME": "c0"}


def test_what_a_container_sets_itself_stays() -> None:
    asked = pod({"iluvatar.ai/MR-V50-vgpu": 1})
    asked["spec"]["containers"][0]["env"] = [{"name": "SOL_CONTINER_NAME", "value": "mine"}]
    assert env_of(completed_pod(asked, VENDORS)) == {"SOL_CONTINER_NAME": "mine"}


def test_the_core_policy_is_for_every_container() -> None:
    asked = pod({"nvidia.com/gpu": 1}, {"cpu": 1})
    completed = completed_pod(asked, configured("NVIDIA", core_policy="force"))
    assert [env_of(completed, n) for n in (0, 1)] == [{"GPU_CORE_UTILIZATION_POLICY": "force"}] * 2
    assert env_of(completed_pod(asked, configured("NVIDIA", core_policy="default"))) == {}


def test_devices_are_hidden_from_containers_that_ask_for_none() -> None:
    asked = pod({"nvidia.com/gpu": 1}, {"cpu": 1})
    completed = completed_pod(asked, configured("NVIDIA", overwrite_env=True))
    assert (env_of(completed), env_of(completed, 1)) == ({}, {"NVIDIA_VISIBLE_DEVICES": "none"})
    chips = configured("Ascend910B3", overwrite_env=True)
    assert env_of(completed_pod(pod({"huawei.com/Ascend910A": 1}), chips)) == {"ASCEND_VISIBLE_DEVICES": ""}


def test_the_runtime_class_is_set_where_the_pod_has_none() -> None:
    vendors = configured("NVIDIA", runtime_class="nvidia")
    assert completed_pod(pod({"nvidia.com/gpu": 1}), vendors)["spec"]["runtimeClassName"] == "nvidia"
    own = pod({"nvidia.com/gpu": 1}, runtimeClassName="mine")
    assert completed_pod(own, vendors)["spec"]["runtimeClassName"] == "mine"
    assert "runtimeClassName" not in completed_pod(pod({"amd.com/gpu": 1}), vendors)["spec"]


NAMES = sorted(name for vendor in VENDORS for name in vendor.resources.names)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0, 1, 2, 4, 16, 96, 3000, "512Mi"]), max_size=4),
    st.sampled_from([{}, {"huawei.com/vnpu-mode": "hami-core"}, {"metax-tech.com/sgpu-app-class": "online"}]),
)
def test_a_completed_pod_asks_for_the_same_and_is_complete(limits: dict[str, Any], annotations: dict[str, str]) -> None:
    asked = pod(limits, annotations=annotations)
    completed = completed_pod(asked, VENDORS)
    assert completed_pod(completed, VENDORS) == completed
    assert pod_device_request(completed, VENDORS).containers == pod_device_request(asked, VENDORS).containers
