"""Nodes and HAMi's ConfigMaps as manifests."""

from typing import Any

import pytest

from gpus.manifests import NodeSpec, configured_policies, configured_vendors, read_config_map, read_node, write_node
from gpus.vendors import VENDORS
from scheduler.core.device_vendor import NVIDIA
from scheduler.core.manifest import Fields, ObjectMeta, Report


def fields(content: dict[str, Any]) -> Fields:
    top = Fields(Report(), "", content)
    top.ignore("apiVersion", "kind")
    return top


def node(**content: Any) -> NodeSpec:
    top = fields({"metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": "[]"}}, **content})
    spec = read_node(top, "v1")
    top.close()
    assert top.report.errors == []
    return spec


def test_a_node_without_a_status_says_nothing_of_amounts() -> None:
    spec = node()
    assert (spec.allocatable, spec.capacity, spec.ready) == (None, None, None)
    assert spec.meta.annotations == {"hami.io/node-nvidia-register": "[]"}


def test_a_nodes_amounts_are_in_base_units() -> None:
    spec = node(
        spec={"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
        status={
            "allocatable": {"cpu": "1500m", "memory": "4Gi", "nvidia.com/gpu": "80"},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1"},
        },
    )
    assert spec.allocatable == {"cpu": 1500, "memory": 4 * 2**30, "nvidia.com/gpu": 80}
    assert (spec.ready, spec.unschedulable, spec.capacity) == (True, True, None)
    assert spec.taints == [{"key": "a", "effect": "NoSchedule"}]


def test_a_node_is_written_as_it_is_read() -> None:
    spec = NodeSpec(
        ObjectMeta("n", labels={"a": "b"}),
        taints=[{"key": "a", "value": "b", "effect": "NoExecute"}],
        unschedulable=True,
        allocatable={"cpu": 1500, "memory": 2**30 + 1},
        capacity={"cpu": 2000},
        ready=False,
    )
    assert read_node(fields(write_node(spec)), "v1") == spec


def settings(data: dict[str, dict[str, Any]]) -> dict[str, Any]:
    top = fields({"metadata": {"name": "hami"}, "data": dict.fromkeys(data, "")})
    spec = read_config_map(top, data)
    top.close()
    assert top.report.errors == []
    return spec.settings


@pytest.mark.parametrize("wrapped", [False, True])
def test_settings_stand_at_the_top_or_under_nvidia(wrapped: bool) -> None:
    content: dict[str, Any] = {
        "resourceCountName": "example.com/gpu",
        "resourceMemoryName": "example.com/mem",
        "deviceSplitCount": 4,
        "deviceMemoryScaling": 1.5,
        "defaultGPUNum": 1,
        "overwriteEnv": False,
    }
    assert settings({"device-config.yaml": {"nvidia": content} if wrapped else content}) == {
        "resource_count_name": "example.com/gpu",
        "resource_memory_name": "example.com/mem",
        "split_count": 4,
        "memory_scaling": 1.5,
        "default_count": 1,
        "overwrite_env": False,
    }


def test_settings_of_single_nodes() -> None:
    entry = {"name": "n1", "operatingmode": "mig", "devicesplitcount": 2, "filterdevices": {"uuid": []}}
    assert settings({"config.json": {"nodeconfig": [entry]}}) == {"nodes": {"n1": {"mode": "mig", "split_count": 2}}}


def test_the_settings_name_nvidias_resources() -> None:
    (vendor, *others) = configured_vendors(
        {"resource_count_name": "example.com/gpu", "default_memory_mib": 500}, VENDORS
    )
    assert vendor.word == NVIDIA.word
    assert vendor.resources.count == "example.com/gpu"
    assert vendor.resources.memory == NVIDIA.resources.memory
    assert vendor.defaults.memory_mib == 500
    assert others == list(VENDORS[1:])


def test_without_settings_the_vendors_are_as_they_are() -> None:
    assert configured_vendors({}, VENDORS) == VENDORS


def test_policies_are_read_and_a_misspelt_one_is_refused() -> None:
    found = settings({"config.yaml": {"nodeSchedulerPolicy": "fgd", "gpuSchedulerPolicy": "binpack,numa"}})
    assert configured_policies(found) == ("fgd", "binpack,numa")
    assert configured_policies({}) == ("binpack", "spread")
    top = fields({"metadata": {"name": "hami"}, "data": {"config.yaml": ""}})
    read_config_map(top, {"config.yaml": {"nodeSchedulerPolicy": "pack"}})
    (error,) = top.report.errors
    assert error.value == "pack"
    assert "binpack, spread, fgd" in error.rule
