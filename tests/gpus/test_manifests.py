"""Nodes and HAMi's ConfigMaps as manifests."""

from typing import Any

import pytest

from gpus.manifests import NodeSpec, configured_policies, configured_vendors, read_config_map, read_node, write_node
from gpus.vendors import VENDORS
from scheduling.manifest import FieldReader, ObjectMeta, ValidationReport
from scheduling.model.vendor import NVIDIA, ChipModel, ChipTemplate, DeviceVendor


def fields(content: dict[str, Any]) -> FieldReader:
    top = FieldReader(ValidationReport(), "", content)
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
    assert vendor.common_word == NVIDIA.common_word
    assert vendor.resources.count == "example.com/gpu"
    assert vendor.resources.memory == NVIDIA.resources.memory
    assert vendor.defaults.memory_mib == 500
    assert others == list(VENDORS[1:])


def test_without_settings_the_vendors_are_as_they_are() -> None:
    assert configured_vendors({}, VENDORS) == VENDORS


def test_policies_are_read_and_a_misspelt_one_is_refused() -> None:
    found = settings({"config.yaml": {"nodeSchedulerPolicy": "bid-price", "gpuSchedulerPolicy": "binpack,numa"}})
    assert configured_policies(found) == ("bid-price", "binpack,numa")
    assert configured_policies({}) == ("binpack", "spread")
    top = fields({"metadata": {"name": "hami"}, "data": {"config.yaml": ""}})
    read_config_map(top, {"config.yaml": {"nodeSchedulerPolicy": "pack"}})
    (error,) = top.report.errors
    assert error.value == "pack"
    assert "binpack, spread, fgd, bid-price" in error.rule


class TestVendors:
    """The other vendors' sections of HAMi's scheduler configuration."""

    def rows(self, content: dict[str, Any]) -> dict[str, DeviceVendor]:
        found = configured_vendors(settings({"device-config.yaml": content}), VENDORS)
        return {vendor.common_word: vendor for vendor in found}

    def test_names_of_resources(self) -> None:
        rows = self.rows(
            {
                "hygon": {"resourceCountName": "hygon.com/hcunum", "memoryFactor": 2},
                "metax": {"resourceVMemoryName": "example.com/vmemory", "sgpuTopologyAware": True},
                "enflame": {"resourceNameGCU": "example.com/gcu", "resourceNameGCUCore": "example.com/core"},
                "kunlun": {"resourceCountName": "example.com/xpu", "resourceVCountName": "example.com/vxpu"},
            }
        )
        assert (rows["DCU"].resources.count, rows["DCU"].resources.memory_unit_mib) == ("hygon.com/hcunum", 2)
        assert rows["DCU"].resources.memory == "hygon.com/dcumem"
        assert rows["Metax-SGPU"].resources.memory == "example.com/vmemory"
        assert rows["Metax-SGPU"].rules.zones_by_default
        assert rows["GCU"].resources.count == "example.com/gcu"
        assert rows["Enflame"].resources.cores == "example.com/core"
        assert (rows["kunlun"].resources.count, rows["XPU"].resources.count) == ("example.com/xpu", "example.com/vxpu")
        untouched = {vendor.common_word: vendor for vendor in VENDORS}
        assert rows["MLU"] == untouched["MLU"]

    NPU: dict[str, Any] = {
        "chipName": "910B3",
        "commonWord": "Ascend910B3",
        "resourceName": "huawei.com/Ascend910B3",
        "memoryAllocatable": 60_000,
        "memoryCapacity": 65_536,
        "aiCore": 20,
        "runtimeClassName": "ascend",
        "overwriteEnv": True,
        "templates": [
            {"name": "large", "memory": 30_000, "aiCore": 10},
            {"name": "small", "memory": 8000, "aiCore": 2},
        ],
    }

    @pytest.mark.parametrize("soft", [None, True, False])
    def test_ascend_s_chips_as_a_list_and_beside_the_mode(self, soft: bool | None) -> None:
        content = [self.NPU] if soft is None else {"hamiVnpuCore": soft, "configs": [self.NPU]}
        row = self.rows({"vnpus": content})["Ascend910B3"]
        assert row.rules.soft_split is bool(soft)
        assert row.model == ChipModel(
            "910B3", 60_000, 20, (ChipTemplate("small", 8000, 2), ChipTemplate("large", 30_000, 10)), 65_536
        )
        assert (row.additions.runtime_class, row.additions.overwrite_env) == ("ascend", True)

    def test_chips_that_the_table_does_not_know_become_rows(self) -> None:
        rows = self.rows(
            {
                "vnpus": [{**self.NPU, "commonWord": "Ascend999", "resourceName": "huawei.com/npu999"}],
                "iluvatars": [{"commonWord": "TG-V200", "resourceMemoryName": "iluvatar.ai/mem"}],
            }
        )
        npu, tg = rows["Ascend999"], rows["TG-V200"]
        assert (npu.resources.count, npu.resources.memory) == ("huawei.com/npu999", "huawei.com/Ascend999-memory")
        assert npu.annotations.register == "hami.io/node-register-Ascend999"
        assert npu.annotations.use_uuid == "hami.io/use-Ascend999-uuid"
        assert npu.model is not None
        assert npu.model.memory_mib == 60_000
        assert (tg.resources.count, tg.resources.memory) == ("iluvatar.ai/TG-V200-vgpu", "iluvatar.ai/mem")
        assert tg.annotations.allocated == "hami.io/TG-V200-devices-allocated"
        assert len(rows) == len(VENDORS) + 2

    @pytest.mark.parametrize(("pods", "size"), [(True, 2), (False, 1), (None, 1)])
    def test_dies_go_in_modules_in_a_super_pod_only(self, pods: bool | None, size: int) -> None:
        chip = {"commonWord": "Ascend910C", **({} if pods is None else {"superPod": pods})}
        assert self.rows({"vnpus": [chip]})["Ascend910C"].rules.module_size == size

    def test_what_nvidia_s_pods_get_beside_limits(self) -> None:
        nvidia = {"gpuCorePolicy": "force", "runtimeClassName": "nvidia", "overwriteEnv": True, "memoryFactor": 1024}
        row = self.rows({"nvidia": nvidia})["NVIDIA"]
        assert (row.additions.core_policy, row.additions.runtime_class) == ("force", "nvidia")
        assert row.additions.overwrite_env
        assert row.resources.memory_unit_mib == 1024

    @pytest.mark.parametrize(
        "content",
        [
            {"vnpus": [{"commonWord": "Ascend910B3", "aiCore": "many"}]},
            {"vnpus": [{"resourceName": "huawei.com/x"}]},
            {"metax": {"sgpuTopologyAware": "yes"}},
            {"hygon": {"resourceCountName": "not a name"}},
        ],
    )
    def test_what_can_t_be_is_refused(self, content: dict[str, Any]) -> None:
        top = fields({"metadata": {"name": "hami"}, "data": {"device-config.yaml": ""}})
        read_config_map(top, {"device-config.yaml": content})
        assert top.report.errors
