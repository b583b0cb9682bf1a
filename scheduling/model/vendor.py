"""The properties of a vendor as plain data, so that a new vendor is a row, not code.

A row names the vendor's resources and annotations, and the HAMi rules that its devices follow. The rows are in
`gpus.vendors`, except `NVIDIA`, which is here because all others are described relative to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class InventoryEncoding(StrEnum):
    """The form in which a node announces the vendor's devices."""

    JSON = "json"
    """An annotation with a JSON list of devices."""
    STRING = "string"
    """HAMi's older annotation: fields with commas, devices with colons."""
    METAX_JSON = "metax-json"
    """MetaX's own JSON annotation."""
    DRS_JSON = "drs-json"
    """Enflame's slices: the devices with their numbers of slices, and the profiles into which they may be cut."""
    CAPACITY = "capacity"
    """No annotation: the node's capacity gives the number of devices."""


class FitKind(StrEnum):
    """The method that finds devices for a request on a node; each except COMMON has a file in
    `scheduling.devices.vendors`."""

    COMMON = "common"
    """Device by device, with the checks that `FitRules` names."""
    NVIDIA = "nvidia"
    """MIG instances, and the devices with the best links."""
    ASCEND = "ascend"
    """Hard or soft split, devices of one network, modules of two."""
    VASTAI = "vastai"
    """Dies of one adapter."""
    METAX_SGPU = "metax-sgpu"
    """One QoS policy per device, application classes, devices of one link zone."""
    ENFLAME_GCU = "enflame-gcu"
    """Whole devices only."""
    ENFLAME_DRS = "enflame-drs"
    """Slices of the node's hardware profiles."""
    KUNLUN_XPU = "kunlun-xpu"
    """Whole devices that are linked with each other, in one half of the server if possible."""
    KUNLUN_VXPU = "kunlun-vxpu"
    """Devices of one half of the server, otherwise across the links between the halves."""
    AWS_NEURON = "aws-neuron"
    """Adjacent devices, all of them unused."""


class NodeScore(StrEnum):
    """The vendor's addition to the score of a node from which its devices would be taken (HAMi's ScoreNode)."""

    NONE = "none"
    SAME_GROUP = "same-group"
    """The share of a container's devices in one group, times `group_weight` (Ascend)."""
    DIES = "dies"
    """The same for dies (Vastai)."""
    HALVES = "halves"
    """How few halves of the server the pod breaks (Kunlun)."""
    COUNT_TABLE = "count-table"
    """The score in the node's own table for taking that many devices (MetaX GPU)."""
    TENANTS = "tenants"
    """The other tenants of the device, or how whole the zones stay (MetaX sGPU)."""


class MemoryRounding(StrEnum):
    """The rounding of a memory request that the vendor's hardware cannot provide exactly."""

    EXACT = "exact"
    TEMPLATE = "template"
    """Rounded up to the next template's memory; above the largest, to the whole device."""


@dataclass(frozen=True, slots=True)
class VendorResources:
    """Resource names in a container's limits; empty if the vendor has none. Memory units are in MiB."""

    count: str
    memory: str = ""
    memory_percentage: str = ""
    cores: str = ""
    priority: str = ""
    memory_unit_mib: int = 1
    bare_memory_unit_mib: int = 0
    """Above 0: a bare integer counts in this unit, a quantity with a suffix in bytes (MetaX sGPU)."""
    memory_units: tuple[int, ...] = ()
    """The amounts of memory units that may be requested of one device; empty: any."""
    limits_only: bool = False
    """Requests don't stand in for missing limits (AMD)."""
    amounts_are_totals: bool = False
    """Memory and cores are totals over all devices of a container (Moore Threads)."""
    cores_allowed: tuple[int, int] | None = None
    """The lowest and highest percentage of cores; None: any, and more than 100 counts as 100."""
    cores_per_count: int = 0
    """Above 0: a container may request single cores instead of devices, and a device has this many (AWS Neuron)."""
    count_is_slices: bool = False
    """The count is a number of slices of one device (Enflame DRS)."""

    @property
    def names(self) -> frozenset[str]:
        """All resource names of the vendor."""
        all_names = (self.count, self.memory, self.memory_percentage, self.cores, self.priority)
        return frozenset(name for name in all_names if name)


@dataclass(frozen=True, slots=True)
class RequestDefaults:
    """Defaults for incomplete requests.

    `count` is added if only memory or cores are named (0: never). `cores_percent` replaces missing cores.
    `exclusive_cores` is set by the webhook for containers that request whole devices (None: not set). `memory_mib`
    replaces missing memory; 0 means the whole device. A request for whole devices takes `whole_device_cores` of
    each, and so does one for `all_cores_from_count` devices or more (0: never), with `whole_device_memory` memory
    units of each (0: the memory that it names).
    """

    count: int = 0
    memory_mib: int = 0
    cores_percent: int = 0
    exclusive_cores: int | None = None
    all_cores_from_count: int = 0
    whole_device_cores: int = 100
    whole_device_memory: int = 0


@dataclass(frozen=True, slots=True)
class PodAdditions:
    """The additions of HAMi's webhook to pods with the vendor's devices, besides limits; "" for none.

    `priority_env`, `container_name_env` and `core_policy_env` are variables for the requested priority, the
    container's name and the configured `core_policy`. With `overwrite_env`, containers without the vendor's devices
    get `hiding_env` = `hiding_value`, which hides all devices. `runtime_class` is set if the pod names none.
    """

    priority_env: str = ""
    container_name_env: str = ""
    core_policy_env: str = ""
    core_policy: str = ""
    hiding_env: str = ""
    hiding_value: str = ""
    overwrite_env: bool = False
    runtime_class: str = ""


@dataclass(frozen=True, slots=True)
class LockRule:
    """The annotation that keeps other pods off a node while the vendor's plugin assigns devices, and its expiry.

    `names_holder`: its value is `time,namespace,pod`; otherwise the time alone.
    """

    annotation: str = "hami.io/mutex.lock"
    timeout_seconds: float = 300.0
    names_holder: bool = True


@dataclass(frozen=True, slots=True)
class ChipTemplate:
    """A fixed cut of a device: its name, memory and cores (in the device's own core units)."""

    name: str
    memory_mib: int
    cores: int


@dataclass(frozen=True, slots=True)
class ChipModel:
    """A chip type with its totals and its templates, smallest first."""

    name: str
    memory_mib: int
    cores: int
    templates: tuple[ChipTemplate, ...] = ()
    capacity_mib: int = 0
    """The chip's total memory, where not all of it may be requested; 0: `memory_mib`."""


@dataclass(frozen=True, slots=True)
class FitRules:
    """The checks of HAMi that apply to the vendor, in addition to health, slots, memory and cores."""

    kind: FitKind = FitKind.COMMON
    type_filter: bool = False
    uuid_filter: bool = True
    numa_bind: bool = False
    topology_aware: bool = False
    mutex: bool = True
    """The device policy `mutex` closes devices that are in use."""
    resource_quota: bool = False
    exclusive_cores: bool = True
    """A request for all cores of a 100-core device needs an unused device."""
    cores_exhausted: bool = True
    """A request without cores cannot use a device whose cores are all taken."""
    whole_devices: bool = False
    """A device is assigned whole; its memory and cores cannot be requested."""
    slots_only: bool = False
    """Memory and cores are neither compared nor counted (Vastai, Biren)."""
    one_device_per_pod: bool = False
    """A container only gets devices that earlier containers of the pod have (Moore Threads, MetaX GPU)."""
    cores_are_share: bool = False
    """Cores are a percentage of the device's own number of cores, at least one (AMD's compute units)."""
    cores_are_bits: bool = False
    """A device's cores are a bit mask; a slice holds the bits of its cores (AWS Neuron)."""
    cores_follow_memory: bool = False
    """A slice has the same share of the cores as of the memory (Kunlun vXPU)."""
    cores_above_100: bool = False
    """More than 100 percent points of cores are not reduced to 100 (MetaX sGPU)."""
    hardware_profiles: bool = False
    """A slice is one of the node's profiles (Enflame DRS)."""
    split_modes: bool = False
    """Each node splits devices by hardware or softly, and pods request one of the two (Ascend)."""
    soft_split: bool = False
    """Devices are split softly if their node does not report a mode."""
    score_includes_request: bool = False
    """A device's score includes the request, as in HAMi where the device's type is the vendor's word."""
    zones_by_default: bool = False
    """Nodes are scored by how whole their link zones stay, for pods that state no preference (MetaX sGPU)."""
    group_attribute: str = ""
    """The attribute that devices of one group share, such as a network or an adapter."""
    node_score: NodeScore = NodeScore.NONE
    group_weight: int = 0
    module_size: int = 1
    """Devices are assigned in modules of this many neighbours by index (Ascend 910C)."""
    counts: tuple[int, ...] = ()
    """The counts that may be requested; empty: any."""
    family_attribute: str = ""
    """The attribute with a device's family, which decides which devices are adjacent (AWS Neuron)."""
    as_hami: bool = False
    """Follow HAMi even where it is wrong; see `DeviceVendor.as_hami`."""


@dataclass(frozen=True, slots=True)
class VendorAnnotations:
    """Annotation keys; empty if the vendor has none.

    On pods: HAMi writes the first four; users write those from `use_type` to `mode`, and `qos_policy` and all after
    it. The others are on nodes.
    """

    to_allocate: str = ""
    allocated: str = ""
    register: str = ""
    handshake: str = ""
    use_type: str = ""
    nouse_type: str = ""
    use_uuid: str = ""
    nouse_uuid: str = ""
    other_use_uuid: str = ""
    other_nouse_uuid: str = ""
    numa_bind: str = ""
    mode: str = ""
    pair_scores: str = ""
    cordon: str = ""
    split: str = ""
    count_losses: str = ""
    count_scores: str = ""
    qos_policy: str = ""
    app_class: str = ""
    topology_aware: str = ""


@dataclass(frozen=True, slots=True)
class CapacityShape:
    """The rule by which a vendor's devices are derived from a node's capacity, if no annotation lists them.

    A device's UUID is `<node>-<infix>-<index>`. The number of devices is the capacity of the count resource, or
    (`devices_from_cores`) the capacity of cores divided by `cores_per_device`; `memory_mib` 0 divides the capacity of
    the memory resource evenly. With `cores_are_bits` each device has a mask of its share of the node's cores
    (`cores_per_device` if the capacity names none), and as many slots. `family_label` is the node label with the
    devices' family. With `two_numa_nodes` the second half of the devices is on NUMA node 1. HAMi counts `hami_slots`
    slots (0: `slots`).
    """

    infix: str
    slots: int = 1
    cores_per_device: int = 100
    devices_from_cores: bool = False
    memory_mib: int = 0
    cores_are_bits: bool = False
    family_label: str = ""
    two_numa_nodes: bool = False
    hami_slots: int = 0


@dataclass(frozen=True, slots=True)
class DeviceUnits:
    """The vendor's terms for its devices, their shares, and their cores."""

    device: str = "device"
    parts: str = "slots"
    cores: str = "%"


@dataclass(frozen=True, slots=True)
class DeviceVendor:
    """One vendor, or one chip type of a vendor whose resources are named by chip.

    `model_in_allocations`: pods' annotations contain the device's model where other vendors write their word (AMD).
    `lock` is None for vendors whose plugin needs none to find the pod. `device_cores` are the cores of a device
    whatever it registers (0: as registered). `hami_rules` enables rules of HAMi that are wrong and that kueueweb
    corrects by default.
    """

    common_word: str
    resources: VendorResources
    annotations: VendorAnnotations = field(default_factory=VendorAnnotations)
    inventory: InventoryEncoding = InventoryEncoding.CAPACITY
    defaults: RequestDefaults = field(default_factory=RequestDefaults)
    rules: FitRules = field(default_factory=FitRules)
    rounding: MemoryRounding = MemoryRounding.EXACT
    model: ChipModel | None = None
    capacity: CapacityShape | None = None
    additions: PodAdditions = field(default_factory=PodAdditions)
    lock: LockRule | None = field(default_factory=LockRule)
    model_in_allocations: bool = False
    device_cores: int = 0
    units: DeviceUnits = field(default_factory=DeviceUnits)
    hami_rules: Mapping[str, Any] = field(default_factory=dict)

    def hami_type(self, registered: str) -> str:
        """HAMi's type of a device of the vendor that registered this one."""
        return self.common_word if self.rules.score_includes_request else registered

    def as_hami(self) -> DeviceVendor:
        """Return the row that follows HAMi even where HAMi is wrong."""
        shape = self.capacity
        if shape is not None and shape.hami_slots:
            shape = replace(shape, slots=shape.hami_slots)
        return replace(self, rules=replace(self.rules, as_hami=True, **self.hami_rules), capacity=shape)


NVIDIA = DeviceVendor(
    common_word="NVIDIA",
    resources=VendorResources(
        count="nvidia.com/gpu",
        memory="nvidia.com/gpumem",
        memory_percentage="nvidia.com/gpumem-percentage",
        cores="nvidia.com/gpucores",
        priority="nvidia.com/priority",
    ),
    annotations=VendorAnnotations(
        to_allocate="hami.io/vgpu-devices-to-allocate",
        allocated="hami.io/vgpu-devices-allocated",
        register="hami.io/node-nvidia-register",
        handshake="hami.io/node-handshake",
        use_type="nvidia.com/use-gputype",
        nouse_type="nvidia.com/nouse-gputype",
        use_uuid="nvidia.com/use-gpuuuid",
        nouse_uuid="nvidia.com/nouse-gpuuuid",
        numa_bind="nvidia.com/numa-bind",
        mode="nvidia.com/vgpu-mode",
        pair_scores="hami.io/node-nvidia-score",
        cordon="hami.io/device-cordon",
    ),
    inventory=InventoryEncoding.JSON,
    defaults=RequestDefaults(count=1, exclusive_cores=100),
    rules=FitRules(
        kind=FitKind.NVIDIA,
        type_filter=True,
        numa_bind=True,
        topology_aware=True,
        resource_quota=True,
    ),
    additions=PodAdditions(
        priority_env="CUDA_TASK_PRIORITY",
        core_policy_env="GPU_CORE_UTILIZATION_POLICY",
        hiding_env="NVIDIA_VISIBLE_DEVICES",
        hiding_value="none",
    ),
)
