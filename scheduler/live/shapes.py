"""The frames of the live stream, declared once.

The type checker checks the publisher against these shapes, and `make schema` generates the front end's types from them.
Amounts are integers in base units: cpu in milli, memory in bytes, device memory in MiB, everything else in whole units.
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

    pending: Annotated[int, Meta(description="Workloads that one of the next cycles considers.")]
    inadmissible: Annotated[int, Meta(description="Workloads that wait until a change may let them start.")]
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
    deserved: Annotated[
        int | None, Meta(description="The quota that it deserves by its cohort's sharing policy; null without one.")
    ]
    borrowing_limit: int | None
    lending_limit: int | None
    used: int
    borrowed: int


class LiveClusterQueue(TypedDict):
    """One ClusterQueue."""

    cohort: str
    active: bool
    reason: Annotated[str, Meta(description="Why it is not active, as a stable identifier.")]
    message: Annotated[str, Meta(description="Why it is not active, as human-readable text.")]
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
    deserved: Annotated[
        int | None,
        Meta(description="The quota that it deserves by its own or an ancestor's sharing policy; null without one."),
    ]
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
    namespace: Annotated[str | None, Meta(description="Null or empty if the holder is unknown.")]
    pod_set: str
    replica: int
    container: str
    memory_mib: int
    cores_percent: int
    mig: NotRequired[Annotated[list[LiveMigInstance], Meta(description="Only for a device in MIG mode.")]]


class LiveDeviceUnits(TypedDict):
    """The vendor's terms for the device and its parts, and the unit of its cores."""

    device: str
    parts: Annotated[str, Meta(description="The vendor's term for slots: slots, MIG instances, DRS slices.")]
    cores_unit: Annotated[str, Meta(description="Units of cores: %, compute units, AI cores or cores.")]
    cores: int
    used_cores: int


class LiveDevice(TypedDict):
    """One device and the holders of its slices."""

    node: str
    index: int
    type: str
    vendor: str
    health: bool
    cordoned: bool
    node_unschedulable: Annotated[
        bool, Meta(description="Whether its node is cordoned, in kueueweb or in the cluster.")
    ]
    draining: Annotated[bool, Meta(description="Whether it is being drained, by itself or with its node.")]
    slots: int
    used_slots: int
    memory_mib: int
    used_memory_mib: int
    cores_percent: int
    used_cores_percent: int
    units: LiveDeviceUnits
    slices: list[LiveSlice]
    mig_places: NotRequired[
        Annotated[int, Meta(description="The memory slices that MIG instances divide; only for a device in MIG mode.")]
    ]


class LiveData(TypedDict):
    """All live data of a page."""

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
    """The workloads that were created, deleted or changed. Their current state is read over REST
    (`workloads/?names=`).
    """

    changed: Annotated[list[str], Meta(description="namespace/name of the workloads that you may see; at most 100.")]
    more: NotRequired[
        Annotated[bool, Meta(description="Whether other workloads changed too, so that lists must be read again.")]
    ]


class LiveChanges(TypedDict, total=False):
    """The parts that changed: whole entries by name, but workloads only by their names."""

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
    time: Annotated[datetime, Meta(description="When the scheduler took these numbers.")]


class LiveSnapshotFrame(_Head):
    """A snapshot: replaces all numbers."""

    type: Literal["snapshot"]
    age_seconds: NotRequired[
        Annotated[float, Meta(description="Seconds since the scheduler sent this, by the server's clock.")]
    ]
    data: LiveData


class LiveDeltaFrame(_Head):
    """A delta: replaces the entries that it names."""

    type: Literal["delta"]
    since: NotRequired[
        Annotated[
            int, Meta(description="The sequence number that this delta starts from; without it, the previous one.")
        ]
    ]
    data: LiveChanges


class LiveHeartbeatFrame(_Head):
    """A heartbeat: the scheduler is alive, and nothing has changed."""

    type: Literal["heartbeat"]


class LiveQuestionFrame(TypedDict):
    """A question of this user to the studio has ended, or has a first answer (Running); the answer is read over REST.
    The frame has no sequence number."""

    type: Literal["question"]
    cluster: str
    id: int
    kind: str
    state: Literal["Running", "Answered", "Failed"]


FRAMES = (LiveSnapshotFrame, LiveDeltaFrame, LiveHeartbeatFrame, LiveQuestionFrame)
