"""The kinds that can be listed: their names, addresses, and table columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kueueweb_client import cells
from kueueweb_client.cells import Column, age, at, field, share

_KUEUE: Final = "apis/kueue.x-k8s.io/v1beta2"
_BATCH: Final = "apis/batch/v1"
_CORE: Final = "api/v1"


class Source(StrEnum):
    """The source of a kind's objects."""

    WIRE = "wire"
    """Kubernetes' wire format: pages, selectors and watches by the server."""
    MANIFESTS = "manifests"
    """`manifests/{kind}/` of REST, whole."""
    ROWS = "rows"
    """REST's rows: the kind has no manifest."""


@dataclass(frozen=True)
class Noun:
    """A kind: its name in Kubernetes, its list in REST ("" for none), its words, its columns and what `-o wide` adds.

    `address` is that of its group in Kubernetes' wire format; empty if it is not served there. `of_rows` says that the
    columns read REST's rows and not manifests.
    """

    kind: str
    path: str
    words: tuple[str, ...]
    columns: tuple[Column, ...]
    wide: tuple[Column, ...] = ()
    namespaced: bool = False
    address: str = ""
    of_rows: bool = False
    source: Source = Source.WIRE

    @property
    def plural(self) -> str:
        """The plural in Kubernetes' addresses."""
        return self.words[0]


_NAME: Final[Column] = ("NAME", at("metadata.name"))
_AGE: Final[Column] = ("AGE", lambda item: age(cells.find(item, "metadata.creationTimestamp")))
_ROW_NAME: Final[Column] = ("NAME", field("name"))
_ROW_AGE: Final[Column] = ("AGE", lambda row: age(row["created_at"]))
_QUEUE: Final[Column] = ("QUEUE", cells.queue_label)


def _served(kind: str, path: str, words: tuple[str, ...], *columns: Column, wide: tuple[Column, ...] = ()) -> Noun:
    return Noun(kind, path, words, (_NAME, *columns, _AGE), wide, address=_KUEUE)


def _read(kind: str, path: str, words: tuple[str, ...], *columns: Column, namespaced: bool = False) -> Noun:
    shown = (_NAME, *columns, _AGE)
    return Noun(kind, path, words, shown, namespaced=namespaced, source=Source.MANIFESTS)


def _job(kind: str, *short_names: str) -> Noun:
    plural = f"{kind.lower()}s"
    return _read(kind, "", (plural, kind.lower(), *short_names), _QUEUE, namespaced=True)


WORKLOADS: Final = Noun(
    "Workload",
    "workloads",
    ("workloads", "workload", "wl", "kwl", "kueueworkload", "kueueworkloads"),
    (
        _ROW_NAME,
        ("QUEUE", field("local_queue")),
        ("CLUSTERQUEUE", field("cluster_queue")),
        ("STATUS", field("status")),
        ("POSITION", lambda row: cells.shown(row.get("position") or None)),
        ("PRIORITY", field("priority")),
        ("REASON", field("reason")),
        _ROW_AGE,
    ),
    (("REQUESTS", cells.requests), ("USER", field("submitted_by")), ("MESSAGE", field("message"))),
    namespaced=True,
    address=_KUEUE,
    of_rows=True,
)
JOBS: Final = Noun(
    "Job",
    "",
    ("jobs", "job"),
    (_NAME, _QUEUE, ("STATUS", cells.job_status), ("COMPLETIONS", cells.completions), _AGE),
    namespaced=True,
    address=_BATCH,
)
LOCAL_QUEUES: Final = Noun(
    "LocalQueue",
    "local-queues",
    ("localqueues", "localqueue", "lq", "queue", "queues", "local-queues"),
    (
        _NAME,
        ("CLUSTERQUEUE", at("spec.clusterQueue")),
        ("PENDING", at("status.pendingWorkloads", "0")),
        ("RESERVING", at("status.reservingWorkloads", "0")),
        ("ADMITTED", at("status.admittedWorkloads", "0")),
        _AGE,
    ),
    (("STOP", at("spec.stopPolicy", "None")), ("CONDITIONS", cells.conditions)),
    namespaced=True,
    address=_KUEUE,
)
CLUSTER_QUEUES: Final = _served(
    "ClusterQueue",
    "cluster-queues",
    ("clusterqueues", "clusterqueue", "cq", "cluster-queues"),
    ("COHORT", at("spec.cohortName")),
    ("STRATEGY", at("spec.queueingStrategy")),
    ("PENDING", at("status.pendingWorkloads", "0")),
    ("RESERVING", at("status.reservingWorkloads", "0")),
    ("ADMITTED", at("status.admittedWorkloads", "0")),
    ("STOP", at("spec.stopPolicy", "None")),
    wide=(("QUOTA", cells.quota), ("CONDITIONS", cells.conditions)),
)
NODES: Final = Noun(
    "Node",
    "nodes",
    ("nodes", "node", "no"),
    (
        _ROW_NAME,
        ("STATUS", cells.node_status),
        ("DEVICES", lambda row: cells.shown(row["device_totals"]["devices"])),
        ("SLOTS", share("used_slots", "slots", "device_totals")),
        ("MEMORY-MIB", share("used_memory_mib", "memory_mib", "device_totals")),
        ("CORES-%", share("used_cores_percent", "cores_percent", "device_totals")),
    ),
    (
        ("CPU", lambda row: cells.shown(row["allocatable"].get("cpu"))),
        ("MEMORY", lambda row: cells.shown(row["allocatable"].get("memory"))),
    ),
    of_rows=True,
    source=Source.MANIFESTS,
)
DEVICES: Final = Noun(
    "Device",
    "devices",
    ("devices", "device", "gpu", "gpus"),
    (
        ("UUID", field("uuid")),
        ("NODE", field("node")),
        ("TYPE", field("type")),
        ("SLOTS", share("used_slots", "slots")),
        ("MEMORY-MIB", share("used_memory_mib", "memory_mib")),
        ("CORES-%", share("used_cores_percent", "cores_percent")),
        ("HEALTHY", field("healthy")),
    ),
    (("VENDOR", field("vendor")), ("MODE", field("mode")), ("NUMA", field("numa"))),
    of_rows=True,
    source=Source.ROWS,
)
PODS: Final = Noun(
    "Pod",
    "pods",
    ("pods", "pod", "po"),
    (
        _ROW_NAME,
        ("WORKLOAD", field("workload")),
        ("READY", field("ready")),
        ("STATUS", lambda row: "Terminating" if row["terminating"] else cells.shown(row["reason"] or row["phase"])),
        ("RESTARTS", field("restarts")),
        ("NODE", field("node")),
        ("AGE", lambda row: age(row["started_at"])),
    ),
    (("PODSET", field("pod_set")), ("MESSAGE", field("message"))),
    namespaced=True,
    of_rows=True,
    source=Source.ROWS,
)
EVENTS: Final = Noun(
    "Event",
    "events",
    ("events", "event", "ev"),
    (
        ("LAST SEEN", lambda row: age(row["at"])),
        ("TYPE", field("type")),
        ("REASON", field("reason")),
        ("OBJECT", field("object")),
        ("MESSAGE", field("message")),
    ),
    (("BY", field("actor")),),
    namespaced=True,
    of_rows=True,
    source=Source.ROWS,
)
_VALUE: Final[Column] = ("VALUE", at("value"))

NOUNS: Final = (
    WORKLOADS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    _served(
        "Cohort", "cohorts", ("cohorts", "cohort", "co"), ("PARENT", at("spec.parentName")),
        ("WEIGHT", at("spec.fairSharing.weight", "1")), wide=(("QUOTA", cells.quota),),
    ),
    _served(
        "ResourceFlavor", "resource-flavors",
        ("resourceflavors", "resourceflavor", "rf", "flavor", "flavors", "resource-flavors"),
        ("NODELABELS", cells.node_labels), ("TOPOLOGY", at("spec.topologyName")),
    ),
    NODES,
    DEVICES,
    _served("Topology", "topologies", ("topologies", "topology", "topo")),
    _served("AdmissionCheck", "admission-checks", ("admissionchecks", "admissioncheck", "ac")),
    _served("WorkloadPriorityClass", "workload-priority-classes",
            ("workloadpriorityclasses", "workloadpriorityclass", "wpc"), _VALUE),
    _served("MultiKueueCluster", "multikueue-clusters", ("multikueueclusters", "multikueuecluster", "mkc")),
    _served("MultiKueueConfig", "multikueue-configs", ("multikueueconfigs", "multikueueconfig", "mkconf")),
    _served("ProvisioningRequestConfig", "provisioning-request-configs",
            ("provisioningrequestconfigs", "provisioningrequestconfig", "prc")),
    _read("PriorityClass", "priority-classes", ("priorityclasses", "priorityclass", "pc"), _VALUE),
    _read("RuntimeClass", "runtime-classes", ("runtimeclasses", "runtimeclass")),
    _read("ResourceQuota", "resource-quotas", ("resourcequotas", "resourcequota", "quota"), namespaced=True),
    _read("LimitRange", "limit-ranges", ("limitranges", "limitrange", "limits"), namespaced=True),
    _read("Reservation", "reservations", ("reservations", "reservation", "resv"),
          ("START", at("spec.start")), ("END", at("spec.end")), ("RECURRENCE", at("spec.recurrence", "None")),
          ("UNTIL", at("spec.until")), ("COUNT", at("spec.nodes.count")), ("IFBUSY", at("spec.ifBusy", "Wait"))),
    _read("RoleBinding", "role-bindings", ("rolebindings", "rolebinding", "rb"),
          ("ROLE", at("spec.role")), ("USER", at("spec.user")), ("GROUP", at("spec.group"))),
    _read("ConfigMap", "", ("configmaps", "configmap", "cm"), namespaced=True),
    _read("Configuration", "", ("configurations", "configuration")),
    Noun("Namespace", "namespaces", ("namespaces", "namespace", "ns"), (_NAME, _AGE), address=_CORE),
    Noun("Cluster", "clusters", ("clusters", "cluster"), (_ROW_NAME, ("MODE", field("mode"))), of_rows=True,
         source=Source.ROWS),
    JOBS,
    PODS,
    EVENTS,
    *(_job(kind) for kind in (
        "AppWrapper", "JAXJob", "JobSet", "MPIJob", "PaddleJob", "PyTorchJob", "RayCluster", "RayJob", "RayService",
        "SparkApplication", "TFJob", "TrainJob", "XGBoostJob",
    )),
    _job("CronJob", "cj"), _job("Deployment", "deploy"), _job("LeaderWorkerSet", "lws"), _job("StatefulSet", "sts"),
)  # fmt: skip
_BY_WORD: Final = {word: noun for noun in NOUNS for word in noun.words}
ALL: Final = (LOCAL_QUEUES, JOBS, WORKLOADS)
"""The kinds of `get all`: the kinds that a tenant works with."""


def noun_named(word: str) -> Noun | None:
    """Return the kind that a word means: its name in any case, its plural or its short name."""
    return _BY_WORD.get(word.lower().partition(".")[0])


def columns(noun: Noun, *, all_namespaces: bool, wide: bool) -> tuple[Column, ...]:
    """Return the columns of a table."""
    namespace: Column = ("NAMESPACE", field("namespace") if noun.of_rows else at("metadata.namespace"))
    first = (namespace,) if noun.namespaced and all_namespaces else ()
    return (*first, *noun.columns, *(noun.wide if wide else ()))
