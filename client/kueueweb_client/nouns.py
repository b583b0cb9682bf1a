"""The kinds that can be listed: the words for them, where they are, and the columns of their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], str]]


def _get(key: str) -> Callable[[Row], str]:
    return lambda row: _shown(row.get(key))


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def age(text: str | None, now: datetime | None = None) -> str:
    """How long ago a time of RFC 3339 was, in one unit: 45s, 12m, 3h, 8d."""
    if not text:
        return "-"
    seconds = int(((now or datetime.now(UTC)) - datetime.fromisoformat(text)).total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def _requests(row: Row) -> str:
    pods = sum(pod_set["count"] for pod_set in row["pod_sets"])
    total: dict[str, list[str]] = {}
    for pod_set in row["pod_sets"]:
        for resource, amount in pod_set["requests"].items():
            total.setdefault(resource.rpartition("/")[2], []).append(f"{pod_set['count']}x{amount}")
    return f"{pods} pods: " + ", ".join(f"{name} {'+'.join(amounts)}" for name, amounts in sorted(total.items()))


def _conditions(row: Row) -> str:
    return ",".join(found["type"] for found in row.get("conditions") or () if found["status"] == "True") or "-"


def _quota(row: Row) -> str:
    cells = [
        f"{flavors['name']}:{quota['name']}={quota['nominal_quota']}"
        for group in row.get("resource_groups") or ()
        for flavors in group.get("flavors") or ()
        for quota in flavors.get("resources") or ()
    ]
    return ";".join(cells) or "-"


def _share(used: str, total: str) -> Callable[[Row], str]:
    return lambda row: f"{row[used]}/{row[total]}"


def _ready(row: Row) -> str:
    words = ["Ready" if row["ready"] else "NotReady"]
    words += [
        word
        for key, word in (("unschedulable", "SchedulingDisabled"), ("cordoned", "Cordoned"), ("draining", "Draining"))
        if row[key]
    ]
    return ",".join(words)


def _node_share(used: str, total: str) -> Callable[[Row], str]:
    return lambda row: f"{row['device_totals'][used]}/{row['device_totals'][total]}"


_AGE: Final[Column] = ("AGE", lambda row: age(row["created_at"]))
_NAME: Final[Column] = ("NAME", _get("name"))
_NAMESPACE: Final[Column] = ("NAMESPACE", _get("namespace"))


@dataclass(frozen=True)
class Noun:
    """A kind: its name in Kubernetes, its address, its words, its columns and what `-o wide` adds."""

    kind: str
    path: str
    words: tuple[str, ...]
    columns: tuple[Column, ...]
    wide: tuple[Column, ...] = ()
    namespaced: bool = False

    @property
    def filters_namespace(self) -> bool:
        """Whether the server can list one namespace."""
        return self.path in ("workloads", "local-queues")


NOUNS: Final = (
    Noun(
        "Workload",
        "workloads",
        ("wl", "workload", "workloads"),
        (
            _NAME,
            ("QUEUE", _get("queue_name")),
            ("CLUSTERQUEUE", _get("cluster_queue")),
            ("STATUS", _get("status")),
            ("POSITION", lambda row: _shown(row.get("position") or None)),
            ("PRIORITY", _get("priority")),
            ("REASON", _get("reason")),
            _AGE,
        ),
        (("REQUESTS", _requests), ("USER", _get("submitted_by")), ("MESSAGE", _get("message"))),
        namespaced=True,
    ),
    Noun(
        "ClusterQueue",
        "cluster-queues",
        ("cq", "clusterqueue", "clusterqueues", "cluster-queues"),
        (
            _NAME,
            ("COHORT", _get("cohort")),
            ("STRATEGY", _get("queueing_strategy")),
            ("PENDING", _get("pending")),
            ("RESERVING", _get("reserving")),
            ("ADMITTED", _get("admitted")),
            ("STOP", _get("stop_policy")),
            _AGE,
        ),
        (("QUOTA", _quota), ("CONDITIONS", _conditions)),
    ),
    Noun(
        "LocalQueue",
        "local-queues",
        ("lq", "queue", "queues", "localqueue", "localqueues", "local-queues"),
        (
            _NAME,
            ("CLUSTERQUEUE", _get("cluster_queue")),
            ("PENDING", _get("pending")),
            ("RESERVING", _get("reserving")),
            ("ADMITTED", _get("admitted")),
            _AGE,
        ),
        (("STOP", _get("stop_policy")), ("CONDITIONS", _conditions)),
        namespaced=True,
    ),
    Noun(
        "Cohort",
        "cohorts",
        ("co", "cohort", "cohorts"),
        (_NAME, ("PARENT", _get("parent")), ("WEIGHT", _get("fair_weight")), _AGE),
        (("QUOTA", _quota),),
    ),
    Noun(
        "ResourceFlavor",
        "resource-flavors",
        ("rf", "flavor", "flavors", "resourceflavor", "resourceflavors", "resource-flavors"),
        (
            _NAME,
            ("NODELABELS", lambda row: ",".join(f"{key}={value}" for key, value in row["node_labels"].items()) or "-"),
            ("TOPOLOGY", _get("topology")),
            _AGE,
        ),
    ),
    Noun(
        "Node",
        "nodes",
        ("no", "node", "nodes"),
        (
            _NAME,
            ("STATUS", _ready),
            ("DEVICES", lambda row: _shown(row["device_totals"]["devices"])),
            ("SLOTS", _node_share("used_slots", "slots")),
            ("MEMORY-MIB", _node_share("used_memory_mib", "memory_mib")),
            ("CORES-%", _node_share("used_cores_percent", "cores_percent")),
        ),
        (
            ("CPU", lambda row: _shown(row["allocatable"].get("cpu"))),
            ("MEMORY", lambda row: _shown(row["allocatable"].get("memory"))),
        ),
    ),
    Noun(
        "Device",
        "devices",
        ("gpu", "gpus", "device", "devices"),
        (
            ("UUID", _get("uuid")),
            ("NODE", _get("node")),
            ("TYPE", _get("type")),
            ("SLOTS", _share("used_slots", "slots")),
            ("MEMORY-MIB", _share("used_memory_mib", "memory_mib")),
            ("CORES-%", _share("used_cores_percent", "cores_percent")),
            ("HEALTHY", _get("healthy")),
        ),
        (("VENDOR", _get("vendor")), ("MODE", _get("mode")), ("NUMA", _get("numa"))),
    ),
    Noun("Topology", "topologies", ("topology", "topologies"), (_NAME, _AGE)),
    Noun("AdmissionCheck", "admission-checks", ("ac", "admissioncheck", "admissionchecks"), (_NAME, _AGE)),
    Noun(
        "WorkloadPriorityClass",
        "workload-priority-classes",
        ("wpc", "workloadpriorityclass", "workloadpriorityclasses"),
        (_NAME, ("VALUE", _get("value")), _AGE),
    ),
    Noun(
        "PriorityClass",
        "priority-classes",
        ("pc", "priorityclass", "priorityclasses"),
        (_NAME, ("VALUE", _get("value")), _AGE),
    ),
    Noun("Namespace", "namespaces", ("ns", "namespace", "namespaces"), (_NAME, _AGE)),
    Noun("Cluster", "clusters", ("cluster", "clusters"), (_NAME, ("MODE", _get("mode")))),
)
_BY_WORD: Final = {word: noun for noun in NOUNS for word in noun.words}


def noun_named(word: str) -> Noun | None:
    """The kind that a word means: its name in any case, its plural or its short name."""
    return _BY_WORD.get(word.lower().partition(".")[0])


def columns(noun: Noun, *, all_namespaces: bool, wide: bool) -> tuple[Column, ...]:
    """The columns of a table."""
    first: tuple[Column, ...] = (_NAMESPACE,) if noun.namespaced and all_namespaces else ()
    return (*first, *noun.columns, *(noun.wide if wide else ()))
