"""What the scheduler must know about a vendor, as plain data: a new vendor is a row, not code.

A row names the vendor's resources and annotations and says which of HAMi's rules its cards follow. The rows themselves
are in `gpus.vendors`; `NVIDIA` is here because it is the model that all others are described against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class InventoryEncoding(StrEnum):
    """How a node tells which cards of the vendor it has."""

    JSON = "json"
    STRING = "string"
    METAX_JSON = "metax-json"
    DRS_JSON = "drs-json"
    """Enflame's slices: the cards with their numbers of slices, and the profiles that they may be cut into."""
    CAPACITY = "capacity"


class DeviceGroups(StrEnum):
    """Which cards belong together when a container asks for several."""

    ANY = "any"
    MODULES = "modules"
    """Whole modules of `module_size` neighbours by index, of one value of an attribute first (Ascend 910C)."""
    ATTRIBUTE = "attribute"
    """Cards of one value of an attribute first, such as a network or an adapter (Ascend, Vastai)."""
    ZONES = "zones"
    """As ATTRIBUTE, for whole cards of pods that ask for it (MetaX sGPU)."""
    CONSECUTIVE = "consecutive"
    """Neighbours by index without a gap, all of them unused (AWS Neuron)."""
    HALVES = "halves"
    """Within one half of the eight cards, else over the links between the halves (Kunlun)."""


class NodeScore(StrEnum):
    """What a vendor adds to the score of a node that its cards would be taken from (HAMi's ScoreNode)."""

    NONE = "none"
    SAME_GROUP = "same-group"
    """The share of a container's cards that are of one group, `group_weight` times (Ascend, Vastai)."""
    BUBBLES = "bubbles"
    """Best where the fewest tasks would fill up what is left of the node (Kunlun)."""
    COUNT_TABLE = "count-table"
    """What the node's own table says of taking so many cards (MetaX GPU)."""
    TENANTS = "tenants"
    """Who else is on the card, or how whole the zones stay (MetaX sGPU)."""


class MemoryRounding(StrEnum):
    """What becomes of a memory request that the vendor's hardware can't cut exactly."""

    EXACT = "exact"
    TEMPLATE = "template"
    """Rounded up to the next template's memory; above the largest, to the whole card."""


@dataclass(frozen=True, slots=True)
class VendorResources:
    """Resource names in a container's limits; empty where the vendor has none. Memory units are in MiB."""

    count: str
    memory: str = ""
    memory_percentage: str = ""
    cores: str = ""
    priority: str = ""
    memory_unit_mib: int = 1
    bare_memory_unit_mib: int = 0
    """Above 0: a bare integer counts in this unit, a quantity with a suffix in bytes (MetaX sGPU)."""
    memory_units: tuple[int, ...] = ()
    """The amounts of memory units that may be asked for of one card; empty: any."""
    limits_only: bool = False
    """Requests don't stand in for missing limits (AMD)."""
    amounts_are_totals: bool = False
    """Memory and cores are named for all the cards of a container together (Moore Threads)."""
    cores_allowed: tuple[int, int] | None = None
    """The lowest and the highest percentage of cores; None: any, of which more than 100 count as 100."""
    cores_per_count: int = 0
    """Above 0: a container may name single cores instead of cards, of which a card has this many (AWS Neuron)."""
    count_is_slices: bool = False
    """The count is a number of slices of one card (Enflame DRS)."""

    @property
    def names(self) -> frozenset[str]:
        """All resource names of the vendor."""
        all_names = (self.count, self.memory, self.memory_percentage, self.cores, self.priority)
        return frozenset(name for name in all_names if name)


@dataclass(frozen=True, slots=True)
class RequestDefaults:
    """What a container gets that leaves something out.

    `count` is added where only memory or cores are named (0: never). `cores_percent` stands for missing cores.
    `exclusive_cores` are written by the webhook for a container that asks for whole cards (None: nothing is written).
    `memory_mib` stands for missing memory; 0 means all of the card. From `whole_cards_from_count` cards on a request is
    for whole cards whatever else it names (0: never), each with `whole_card_cores` and `whole_card_memory` memory units
    (0: all of the card).
    """

    count: int = 0
    memory_mib: int = 0
    cores_percent: int = 0
    exclusive_cores: int | None = None
    whole_devices_from_count: int = 0
    whole_device_cores: int = 100
    whole_device_memory: int = 0


@dataclass(frozen=True, slots=True)
class PodAdditions:
    """What HAMi's webhook adds to pods that use the vendor's devices, beside limits; "" for nothing.

    `priority_env`, `container_name_env` and `core_policy_env` name variables for the priority that is asked for, the
    container's name and the configured `core_policy`. With `overwrite_env` containers without the vendor's devices get
    `hiding_env` = `hiding_value`, which hides all cards. `runtime_class` is set where the pod names none.
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
    """The annotation that keeps other pods off a node while the vendor's plugin hands out devices, and when it expires.

    `names_holder`: its value is `time,namespace,pod`; else the time alone.
    """

    annotation: str = "hami.io/mutex.lock"
    timeout_seconds: float = 300.0
    names_holder: bool = True


@dataclass(frozen=True, slots=True)
class ChipTemplate:
    """A fixed cut of a card: its name, memory and cores (in the card's own core units)."""

    name: str
    memory_mib: int
    cores: int


@dataclass(frozen=True, slots=True)
class ChipModel:
    """A chip type with its totals and the templates that it may be cut into, smallest first."""

    name: str
    memory_mib: int
    cores: int
    templates: tuple[ChipTemplate, ...] = ()
    capacity_mib: int = 0
    """What the chip has in all, where not all of it can be asked for; 0: `memory_mib`."""


@dataclass(frozen=True, slots=True)
class FitRules:
    """Which of HAMi's checks the vendor's Fit makes beyond health, UUID, slots, memory and cores."""

    type_filter: bool = False
    numa_bind: bool = False
    topology_aware: bool = False
    mutex: bool = False
    resource_quota: bool = False
    exclusive_cores: bool = True
    """A request for all cores of a 100-core card needs an empty card."""
    cores_exhausted: bool = True
    """A request without cores can't join a card whose cores are all given away."""
    whole_devices: bool = False
    """A card is given to one container, entirely; its memory and cores can't be asked for."""
    equal_slices: bool = False
    """A card only holds slices of one size."""
    one_device_per_pod: bool = False
    """All containers of a pod share one card (Moore Threads)."""
    cores_are_share: bool = False
    """Cores are a percentage of the card's own number of cores, at least one (AMD's compute units)."""
    cores_are_bits: bool = False
    """A card's cores are a mask with a bit for each core; a slice holds the bits of its own cores (AWS Neuron)."""
    hardware_profiles: bool = False
    """A slice is the smallest of the card's profiles that has as much memory, cores and slots (Enflame DRS)."""
    split_modes: bool = False
    """Cards are split by their hardware or softly, node by node, and pods ask for one of the two (Ascend)."""
    soft_split: bool = False
    """Cards of nodes that say nothing of it are split softly."""
    tenant_classes: bool = False
    """The tenants of a card are of one QoS policy, and those of an application class stay among themselves (MetaX)."""
    zones_by_default: bool = False
    """Pods that say nothing of it ask for cards of one zone (`DeviceGroups.ZONES`)."""
    groups: DeviceGroups = DeviceGroups.ANY
    group_attribute: str = ""
    node_score: NodeScore = NodeScore.NONE
    group_weight: int = 0
    module_size: int = 1
    counts: tuple[int, ...] = ()
    """The counts that may be asked for; empty: any."""
    family_attribute: str = ""
    family_counts: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """The counts that cards of a family give: those whose `family_attribute` begins with a prefix (AWS Neuron)."""


@dataclass(frozen=True, slots=True)
class VendorAnnotations:
    """Annotation keys; empty where the vendor has none.

    HAMi writes the first four on pods and nodes; users write those from `use_type` to `mode` and from `qos_policy` on
    on pods; the others are on nodes.
    """

    to_allocate: str = ""
    allocated: str = ""
    register: str = ""
    handshake: str = ""
    use_type: str = ""
    nouse_type: str = ""
    use_uuid: str = ""
    nouse_uuid: str = ""
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
    """How a vendor's cards follow from a node's capacity, where no annotation lists them.

    A card's UUID is `<node>-<infix>-<index>`. The number of cards is the capacity of the count resource, or
    (`cards_from_cores`) that of the cores over `cores_per_card`; `memory_mib` 0 shares the capacity of the memory
    resource evenly. With `core_bits` a card's cores are a mask of so many bits; `family_label` is the label of the node
    that names the cards' family.
    """

    infix: str
    slots: int = 1
    cores_per_device: int = 100
    devices_from_cores: bool = False
    memory_mib: int = 0
    core_bits: int = 0
    family_label: str = ""


@dataclass(frozen=True, slots=True)
class DeviceVendor:
    """One vendor, or one chip type of a vendor that names its resources by chip.

    `model_in_allocations`: pods' annotations name the card's model where other vendors write their word (AMD). `lock`
    is None for vendors whose plugin finds the pod without one.
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
        type_filter=True,
        numa_bind=True,
        topology_aware=True,
        mutex=True,
        resource_quota=True,
    ),
    additions=PodAdditions(
        priority_env="CUDA_TASK_PRIORITY",
        core_policy_env="GPU_CORE_UTILIZATION_POLICY",
        hiding_env="NVIDIA_VISIBLE_DEVICES",
        hiding_value="none",
    ),
)
