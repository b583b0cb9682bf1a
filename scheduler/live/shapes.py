"""The frames of the live stream, declared once.

The type checker holds the publisher to these shapes, and `make schema` makes the front end's types of them. Amounts are
integers in base units: cpu in milli, memory in bytes, device memory in MiB, everything else in whole units.
"""

from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

Share = Annotated[
    float | Literal["Infinity"],
    Meta(description="Kueue's dominant resource share; infinite when a queue borrows with a fair weight of zero."),
]


class LiveTotals(TypedDict):
    """Sums over the cluster."""

    pending: Annotated[int, Meta(description="Tried in one of the next cycles.")]
    inadmissible: Annotated[int, Meta(description="Waits until something changes that may let it start.")]
    reserving: int
    admitted: int
    nodes: int
    devices: int
    devices_in_use: int
    slots: int
    used_slots: int
    memory_mib: int
    used_memory_mib: int
    cores_percent: int
    used_cores_percent: int


class LiveQuota(TypedDict):
    """One flavor and resource of a ClusterQueue."""

    flavor: str
    resource: str
    nominal: int
    deserved: Annotated[int | None, Meta(description="By the sharing policy of its cohort; null without one.")]
    borrowing_limit: int | None
    lending_limit: int | None
    used: int
    borrowed: int


class LiveClusterQueue(TypedDict):
    """One ClusterQueue."""

    cohort: str
    active: bool
    reason: Annotated[str, Meta(description="Why it is not active, as a stable token.")]
    message: Annotated[str, Meta(description="Why it is not active, for people.")]
    pending: int
    inadmissible: int
    reserving: int
    admitted: int
    weighted_share: Share
    usage: list[LiveQuota]


class LiveCohortQuota(TypedDict):
    """One flavor and resource of a cohort."""

    flavor: str
    resource: str
    deserved: Annotated[int | None, Meta(description="By the sharing policy above it or its own; null without one.")]
    subtree_quota: int
    used: int


class LiveCohort(TypedDict):
    """One cohort, declared or not."""

    parent: str
    weighted_share: Share
    usage: list[LiveCohortQuota]


class LiveMigInstance(TypedDict):
    """A MIG instance and the memory slices of the device that it takes."""

    profile: str
    start: int
    size: int


class LiveSlice(TypedDict):
    """The part of a device that one container holds."""

    workload: Annotated[
        str | None,
        Meta(description="namespace/name; null if you may not see the holder, or if it is not a workload of kueueweb."),
    ]
    namespace: Annotated[str | None, Meta(description="Null or empty where the holder is not known.")]
    pod_set: str
    replica: int
    container: str
    memory_mib: int
    cores_percent: int
    mig: NotRequired[Annotated[list[LiveMigInstance], Meta(description="Of a device in MIG mode.")]]


class LiveDeviceUnits(TypedDict):
    """The vendor's terms for the device and its parts, and the unit of its cores."""

    device: str
    parts: Annotated[str, Meta(description="The vendor's term for slots: slots, MIG instances, DRS slices.")]
    cores_unit: Annotated[str, Meta(description="%, compute units, AI cores, cores.")]
    cores: int
    used_cores: int


class LiveDevice(TypedDict):
    """One device and who holds it."""

    node: str
    index: int
    type: str
    vendor: str
    health: bool
    cordoned: bool
    node_unschedulable: Annotated[bool, Meta(description="Its node is cordoned, here or in the cluster.")]
    draining: Annotated[bool, Meta(description="Being emptied, by itself or with its node.")]
    slots: int
    used_slots: int
    memory_mib: int
    used_memory_mib: int
    cores_percent: int
    used_cores_percent: int
    units: LiveDeviceUnits
    slices: list[LiveSlice]
    mig_places: NotRequired[
        Annotated[int, Meta(description="The memory slices that MIG instances divide; of a device in MIG mode.")]
    ]


class LiveData(TypedDict):
    """Everything that a page shows live."""

    totals: LiveTotals
    cluster_queues: dict[str, LiveClusterQueue]
    cohorts: dict[str, LiveCohort]
    devices: dict[str, LiveDevice]


class LiveRemoved(TypedDict, total=False):
    """The names of removed entries."""

    cluster_queues: list[str]
    cohorts: list[str]
    devices: list[str]


class LiveWorkloads(TypedDict):
    """Which workloads came, went or changed; what they are now is read over REST (`workloads/?names=`)."""

    changed: Annotated[list[str], Meta(description="namespace/name of the workloads that you may see; at most 100.")]
    more: NotRequired[Annotated[bool, Meta(description="True if others changed too, so that lists must be read.")]]


class LiveChanges(TypedDict, total=False):
    """The parts that changed: whole entries by name, but workloads by their names alone."""

    totals: LiveTotals
    cluster_queues: dict[str, LiveClusterQueue]
    cohorts: dict[str, LiveCohort]
    devices: dict[str, LiveDevice]
    removed: LiveRemoved
    workloads: LiveWorkloads


class _Head(TypedDict):
    """The position of a frame in the stream. A new leader begins a new epoch."""

    cluster: str
    epoch: int
    sequence: int
    time: Annotated[datetime, Meta(description="When the scheduler took these figures.")]


class LiveSnapshotFrame(_Head):
    """Replaces all figures."""

    type: Literal["snapshot"]
    age_seconds: NotRequired[
        Annotated[float, Meta(description="Time since the scheduler sent this, by the server's clock.")]
    ]
    data: LiveData


class LiveDeltaFrame(_Head):
    """Replaces the entries that it names."""

    type: Literal["delta"]
    since: NotRequired[
        Annotated[int, Meta(description="The sequence this delta starts from; without it, the one before its own.")]
    ]
    data: LiveChanges


class LiveHeartbeatFrame(_Head):
    """The scheduler is alive, and nothing changed."""

    type: Literal["heartbeat"]


class LiveQuestionFrame(TypedDict):
    """A question of this user to the studio has ended; its answer is read over REST. It has no place in the stream."""

    type: Literal["question"]
    cluster: str
    id: int
    kind: str
    state: Literal["Answered", "Failed"]


FRAMES = (LiveSnapshotFrame, LiveDeltaFrame, LiveHeartbeatFrame, LiveQuestionFrame)
