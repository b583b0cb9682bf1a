"""The table of vendors: resource names, units, defaults, rules and annotations. A new vendor is a row.

Rows follow HAMi's default names; a cluster's device configuration may rename the resources, and add chips
(`gpus.manifests`). Ascend and Iluvatar have one row per chip, because each chip has resources of its own.
"""

from __future__ import annotations

from dataclasses import replace

from scheduling.model.vendor import (
    NVIDIA,
    CapacityShape,
    ChipModel,
    ChipTemplate,
    DeviceUnits,
    DeviceVendor,
    FitKind,
    FitRules,
    InventoryEncoding,
    LockRule,
    MemoryRounding,
    NodeScore,
    PodAdditions,
    RequestDefaults,
    VendorAnnotations,
    VendorResources,
)

_GIB = 1024


def _allocation(word: str) -> dict[str, str]:
    """Return the two annotation keys that HAMi writes on pods."""
    return {"to_allocate": f"hami.io/{word}-devices-to-allocate", "allocated": f"hami.io/{word}-devices-allocated"}


def _uuids(prefix: str) -> dict[str, str]:
    """Return the two annotation keys with which users choose devices by UUID."""
    return {"use_uuid": f"{prefix}/use-gpuuuid", "nouse_uuid": f"{prefix}/nouse-gpuuuid"}


def _by_word(word: str) -> dict[str, str]:
    """Return the annotation keys of chips with their own common word."""
    return {
        **_allocation(word),
        "handshake": f"hami.io/node-handshake-{word}",
        "use_uuid": f"hami.io/use-{word}-uuid",
        "nouse_uuid": f"hami.io/no-use-{word}-uuid",
    }


_SPLIT = FitRules(kind=FitKind.ASCEND, split_modes=True)
_NETWORKS = replace(_SPLIT, group_attribute="NetworkID", node_score=NodeScore.SAME_GROUP, group_weight=10)


def _ascend(word: str, model: ChipModel, rules: FitRules = _NETWORKS) -> DeviceVendor:
    """Return a chip of Huawei's Ascend: cut by templates, or softly (`huawei.com/vnpu-mode: hami-core`)."""
    return DeviceVendor(
        common_word=word,
        resources=VendorResources(
            count=f"huawei.com/{word}", memory=f"huawei.com/{word}-memory", cores=f"huawei.com/{word}-core"
        ),
        annotations=VendorAnnotations(
            **_by_word(word),
            register=f"hami.io/node-register-{word}",
            mode="huawei.com/vnpu-mode",
            split="hami-vnpu-core",
        ),
        inventory=InventoryEncoding.JSON,
        rules=rules,
        rounding=MemoryRounding.TEMPLATE,
        model=model,
        additions=PodAdditions(hiding_env="ASCEND_VISIBLE_DEVICES"),
        units=DeviceUnits("die" if rules.module_size > 1 else "NPU", "slots", "AI cores"),
    )


def _chip(name: str, memory_mib: int, cores: int, *templates: tuple[str, int, int], capacity: int = 0) -> ChipModel:
    return ChipModel(name, memory_mib, cores, tuple(ChipTemplate(*template) for template in templates), capacity)


ASCEND = (
    _ascend(
        "Ascend910A",
        _chip("910A", 32_768, 30, ("vir02", 2184, 2), ("vir04", 4369, 4), ("vir08", 8738, 8), ("vir16", 17_476, 16)),
    ),
    _ascend(
        "Ascend910B2",
        _chip(
            "910B2",
            65_536,
            24,
            ("vir03_1c_8g", 8192, 3),
            ("vir06_1c_16g", 16_384, 6),
            ("vir12_3c_32g", 32_768, 12),
        ),
    ),
    _ascend("Ascend910B3", _chip("910B3", 65_536, 20, ("vir05_1c_16g", 16_384, 5), ("vir10_3c_32g", 32_768, 10))),
    _ascend("Ascend910B4", _chip("910B4", 32_768, 20, ("vir05_1c_8g", 8192, 5), ("vir10_3c_16g", 16_384, 10))),
    _ascend("Ascend910B4-1", _chip("910B4-1", 65_536, 20, ("vir05_1c_16g", 16_384, 5), ("vir10_3c_32g", 32_768, 10))),
    _ascend(
        "Ascend910C",
        _chip("910C", 65_536, 20, ("vir05_1c_16g", 16_384, 5), ("vir10_3c_32g", 32_768, 10)),
        replace(_NETWORKS, module_size=2),
    ),
    _ascend(
        "Ascend310P",
        _chip("310P", 21_527, 8, ("vir01", 3072, 1), ("vir02", 6144, 2), ("vir04", 12_288, 4), capacity=24_576),
        _SPLIT,
    ),
)


def _iluvatar(chip: str) -> DeviceVendor:
    """Return an Iluvatar chip. Several devices are assigned with all their cores."""
    return DeviceVendor(
        common_word=chip,
        resources=VendorResources(
            count=f"iluvatar.ai/{chip}-vgpu",
            memory=f"iluvatar.ai/{chip}.vMem",
            cores=f"iluvatar.ai/{chip}.vCore",
            memory_unit_mib=256,
        ),
        annotations=VendorAnnotations(**_by_word(chip), register=f"hami.io/node-{chip}-register"),
        inventory=InventoryEncoding.STRING,
        defaults=RequestDefaults(all_cores_from_count=2),
        additions=PodAdditions(container_name_env="SOL_CONTINER_NAME"),
    )


ILUVATAR = tuple(_iluvatar(chip) for chip in ("MR-V100", "MR-V50", "BI-V150", "BI-V100"))

CAMBRICON = DeviceVendor(
    common_word="MLU",
    resources=VendorResources(
        count="cambricon.com/vmlu",
        memory="cambricon.com/mlu.smlu.vmemory",
        cores="cambricon.com/mlu.smlu.vcore",
        memory_unit_mib=256,
    ),
    annotations=VendorAnnotations(**_allocation("cambricon-mlu"), **_uuids("cambricon.com")),
    defaults=RequestDefaults(cores_percent=100),
    rules=FitRules(resource_quota=True),
    capacity=CapacityShape("cambricon-mlu", slots=100, devices_from_cores=True),
    lock=LockRule("cambricon.com/dsmlu.lock", 120.0, names_holder=False),
)

HYGON = DeviceVendor(
    common_word="DCU",
    resources=VendorResources(count="hygon.com/dcunum", memory="hygon.com/dcumem", cores="hygon.com/dcucores"),
    annotations=VendorAnnotations(
        **_allocation("dcu"),
        register="hami.io/node-dcu-register",
        handshake="hami.io/node-handshake-dcu",
        use_type="hygon.com/use-dcutype",
        nouse_type="hygon.com/nouse-dcutype",
        **_uuids("hygon.com"),
    ),
    inventory=InventoryEncoding.STRING,
    defaults=RequestDefaults(cores_percent=100),
    rules=FitRules(type_filter=True),
)

MOORE_THREADS = DeviceVendor(
    common_word="Mthreads",
    resources=VendorResources(
        count="mthreads.com/vgpu",
        memory="mthreads.com/sgpu-memory",
        cores="mthreads.com/sgpu-core",
        memory_unit_mib=512,
        memory_units=(2, 4, 8, 16, 32, 64, 96),
        amounts_are_totals=True,
    ),
    annotations=VendorAnnotations(allocated="hami.io/mthreads-vgpu-devices-allocated", **_uuids("mthreads.ai")),
    defaults=RequestDefaults(all_cores_from_count=2, whole_device_cores=16, whole_device_memory=96),
    rules=FitRules(one_device_per_pod=True),
    capacity=CapacityShape("mthreads", slots=100, cores_per_device=16, devices_from_cores=True),
    units=DeviceUnits(cores="cores"),
    lock=None,
)

AMD = DeviceVendor(
    common_word="AMD",
    resources=VendorResources(
        count="amd.com/gpu",
        memory="amd.com/gpumem",
        cores="amd.com/gpucores",
        cores_allowed=(1, 100),
        limits_only=True,
    ),
    annotations=VendorAnnotations(
        **_allocation("amd"),
        register="hami.io/node-amd-register",
        use_type="amd.com/use-gputype",
        nouse_type="amd.com/nouse-gputype",
        use_uuid="amd.com/use-gpu-uuid",
        nouse_uuid="amd.com/nouse-gpu-uuid",
    ),
    inventory=InventoryEncoding.JSON,
    defaults=RequestDefaults(cores_percent=100),
    rules=FitRules(type_filter=True, exclusive_cores=False, cores_exhausted=False, cores_are_share=True),
    model_in_allocations=True,
    units=DeviceUnits("GPU", cores="compute units"),
)

METAX_GPU = DeviceVendor(
    common_word="Metax-GPU",
    resources=VendorResources(count="metax-tech.com/gpu"),
    annotations=VendorAnnotations(
        **_allocation("metax-gpu"),
        count_losses="metax-tech.com/gpu.topology.losses",
        count_scores="metax-tech.com/gpu.topology.scores",
    ),
    rules=FitRules(whole_devices=True, one_device_per_pod=True, node_score=NodeScore.COUNT_TABLE),
    capacity=CapacityShape("metax", memory_mib=64 * _GIB),
    lock=None,
)

METAX_SGPU = DeviceVendor(
    common_word="Metax-SGPU",
    resources=VendorResources(
        count="metax-tech.com/sgpu",
        memory="metax-tech.com/vmemory",
        cores="metax-tech.com/vcore",
        bare_memory_unit_mib=_GIB,
        limits_only=True,
    ),
    annotations=VendorAnnotations(
        **_allocation("metax-sgpu"),
        register="metax-tech.com/node-gpu-devices",
        **_uuids("metax-tech.com"),
        qos_policy="metax-tech.com/sgpu-qos-policy",
        app_class="metax-tech.com/sgpu-app-class",
        topology_aware="metax-tech.com/sgpu-topology-aware",
    ),
    inventory=InventoryEncoding.METAX_JSON,
    defaults=RequestDefaults(cores_percent=100),
    rules=FitRules(
        kind=FitKind.METAX_SGPU,
        cores_above_100=True,
        score_includes_request=True,
        group_attribute="LinkZone",
        node_score=NodeScore.TENANTS,
    ),
)

ENFLAME_GCU = DeviceVendor(
    common_word="GCU",
    resources=VendorResources(count="enflame.com/gcu"),
    annotations=VendorAnnotations(**_allocation("enflame-gcu"), **_uuids("enflame.com")),
    rules=FitRules(kind=FitKind.ENFLAME_GCU, whole_devices=True, mutex=False),
    hami_rules={"uuid_filter": False},
    capacity=CapacityShape("GCU", memory_mib=100),
    lock=None,
)

ENFLAME_DRS = DeviceVendor(
    common_word="Enflame",
    resources=VendorResources(
        count="enflame.com/drs-gcu",
        memory="enflame.com/gcu-memory",
        cores="enflame.com/gcu-core",
        cores_allowed=(1, 100),
        count_is_slices=True,
    ),
    annotations=VendorAnnotations(
        allocated="hami.io/enflame-vgpu-devices-allocated",
        register="enflame.com/gcu-drs-capacity",
        **_uuids("enflame.com"),
    ),
    inventory=InventoryEncoding.DRS_JSON,
    rules=FitRules(
        kind=FitKind.ENFLAME_DRS,
        hardware_profiles=True,
        one_device_per_pod=True,
        exclusive_cores=False,
        cores_exhausted=False,
    ),
    hami_rules={"one_device_per_pod": False},
    units=DeviceUnits("GCU", "DRS slices"),
    lock=None,
)

_XPU_UUIDS = {"other_use_uuid": "hami.io/use-xpu-uuid", "other_nouse_uuid": "hami.io/no-use-xpu-uuid"}
_OF_A_SERVER = (1, 2, 4, 8)
"""The numbers of devices of a Kunlun server that a container may get."""

KUNLUN = DeviceVendor(
    common_word="kunlun",
    resources=VendorResources(count="kunlunxin.com/xpu"),
    annotations=VendorAnnotations(allocated="hami.io/kunlun-allocated", **_uuids("baidu.com"), **_XPU_UUIDS),
    defaults=RequestDefaults(whole_device_cores=0),
    rules=FitRules(
        kind=FitKind.KUNLUN_XPU,
        whole_devices=True,
        mutex=False,
        exclusive_cores=False,
        cores_exhausted=False,
        counts=_OF_A_SERVER,
        node_score=NodeScore.HALVES,
    ),
    hami_rules={"counts": ()},
    capacity=CapacityShape("kunlun", memory_mib=96 * _GIB, two_numa_nodes=True, hami_slots=100),
    units=DeviceUnits("XPU"),
    lock=None,
)

KUNLUN_VXPU = DeviceVendor(
    common_word="XPU",
    resources=VendorResources(count="kunlunxin.com/vxpu", memory="kunlunxin.com/vxpu-memory"),
    annotations=VendorAnnotations(
        **_allocation("xpu"),
        register="hami.io/node-register-xpu",
        handshake="hami.io/node-handshake-xpu",
        **_uuids("baidu.com"),
        **_XPU_UUIDS,
    ),
    inventory=InventoryEncoding.JSON,
    rules=FitRules(
        kind=FitKind.KUNLUN_VXPU,
        exclusive_cores=False,
        cores_exhausted=False,
        cores_follow_memory=True,
        counts=_OF_A_SERVER,
    ),
    hami_rules={"counts": ()},
    rounding=MemoryRounding.TEMPLATE,
    model=_chip("vXPU", 98_304, 100, ("quarter", 24_576, 0), ("half", 49_152, 0)),
)

AWS_NEURON = DeviceVendor(
    common_word="AWSNeuron",
    resources=VendorResources(count="aws.amazon.com/neuron", cores="aws.amazon.com/neuroncore", cores_per_count=2),
    annotations=VendorAnnotations(
        allocated="hami.io/aws-neuron-devices-allocated",
        use_uuid="aws.amazon.com/use-neuron-uuid",
        nouse_uuid="aws.amazon.com/nouse-neuron-uuid",
    ),
    rules=FitRules(
        kind=FitKind.AWS_NEURON,
        whole_devices=True,
        exclusive_cores=False,
        cores_exhausted=False,
        cores_are_bits=True,
        family_attribute="AWSNodeType",
    ),
    capacity=CapacityShape(
        "AWSNeuron", cores_per_device=2, cores_are_bits=True, family_label="node.kubernetes.io/instance-type"
    ),
    units=DeviceUnits("device", "slots", "cores"),
    lock=None,
)

VASTAI = DeviceVendor(
    common_word="Vastai",
    resources=VendorResources(count="vastaitech.com/va"),
    annotations=VendorAnnotations(
        **_allocation("Vastai"),
        register="hami.io/node-va-register",
        handshake="hami.io/node-handshake-va",
        use_type="vastaitech.com/use-va",
        nouse_type="vastaitech.com/nouse-va",
        **_uuids("vastaitech.com"),
    ),
    inventory=InventoryEncoding.JSON,
    defaults=RequestDefaults(whole_device_cores=0),
    rules=FitRules(
        kind=FitKind.VASTAI,
        type_filter=True,
        whole_devices=True,
        slots_only=True,
        group_attribute="AIC",
        node_score=NodeScore.DIES,
        group_weight=1,
    ),
    device_cores=100,
    hami_rules={"type_filter": False},
)

BIREN = DeviceVendor(
    common_word="Biren",
    resources=VendorResources(count="birentech.com/gpu"),
    annotations=VendorAnnotations(
        **_allocation("Biren"),
        register="hami.io/node-biren-register",
        handshake="hami.io/node-handshake-biren",
        use_type="birentech.com/use-biren",
        nouse_type="birentech.com/nouse-biren",
        **_uuids("birentech.com"),
    ),
    inventory=InventoryEncoding.JSON,
    defaults=RequestDefaults(whole_device_cores=0),
    rules=FitRules(type_filter=True, whole_devices=True, slots_only=True),
    device_cores=100,
    hami_rules={"type_filter": False},
)

VENDORS: tuple[DeviceVendor, ...] = (
    NVIDIA,
    AMD,
    *ASCEND,
    CAMBRICON,
    HYGON,
    *ILUVATAR,
    MOORE_THREADS,
    METAX_GPU,
    METAX_SGPU,
    ENFLAME_GCU,
    ENFLAME_DRS,
    KUNLUN,
    KUNLUN_VXPU,
    AWS_NEURON,
    VASTAI,
    BIREN,
)
"""All vendors, with their default names."""
