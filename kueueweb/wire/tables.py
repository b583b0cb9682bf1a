"""Objects as tables (meta.k8s.io/v1 Table), with the columns of Kueue's definitions and of Kubernetes' printers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

JsonObject = Mapping[str, Any]
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_YEAR: Final = 365 * _DAY


@dataclass(frozen=True, slots=True)
class Column:
    """A column; one of priority 1 is shown by `-o wide` only."""

    name: str
    description: str
    cell: Callable[[JsonObject, datetime], Any]
    type: str = "string"
    priority: int = 0
    format: str = ""

    @property
    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def duration(seconds: float) -> str:
    """Write a length of time as kubectl does: 90s, 5m30s, 3h, 2d4h."""
    found = max(0, int(seconds))
    steps: tuple[tuple[int, int, str, int, str], ...] = (
        (2 * _MINUTE, 1, "s", 0, ""),
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    )
    for below, unit, letter, rest, small in steps:
        if found < below:
            left = found % unit // rest if rest else 0
            return f"{found // unit}{letter}" + (f"{left}{small}" if left else "")
    return f"{found // _YEAR}y"


def value_at(path: str) -> Callable[[JsonObject, datetime], Any]:
    """Return a cell with the value at a path of names between dots; None if there is none."""
    keys = path.split(".")

    def cell(item: JsonObject, _: datetime) -> Any:
        found: Any = item
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    return cell


def _condition(type_: str) -> Callable[[JsonObject, datetime], Any]:
    def cell(item: JsonObject, _: datetime) -> Any:
        return next((each["status"] for each in _conditions(item) if each["type"] == type_), None)

    return cell


def _conditions(item: JsonObject) -> Sequence[Mapping[str, Any]]:
    return (item.get("status") or {}).get("conditions") or ()


def moment(text: str) -> datetime:
    """Return the time of a timestamp, in UTC without a zone of its own."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _age(item: JsonObject, now: datetime) -> str:
    made = item["metadata"].get("creationTimestamp")
    return duration((now - moment(made)).total_seconds()) if made else "<unknown>"


NAME: Final = Column("Name", "Name of the object", lambda item, _: item["metadata"]["name"], format="name")
AGE: Final = Column("Age", "Time since the object was created", _age)


def _job_status(item: JsonObject, _: datetime) -> str:
    if item["metadata"].get("deletionTimestamp"):
        return "Terminating"
    true = {each["type"] for each in _conditions(item) if each["status"] == "True"}
    return next((type_ for type_ in ("Complete", "Failed", "Suspended") if type_ in true), "Running")


def _job_completions(item: JsonObject, _: datetime) -> str:
    spec, succeeded = item.get("spec") or {}, (item.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 1
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(item: JsonObject, now: datetime) -> str | None:
    status = item.get("status") or {}
    if "startTime" not in status:
        return None
    end = moment(status["completionTime"]) if "completionTime" in status else now
    return duration((end - moment(status["startTime"])).total_seconds())


def _containers(key: str) -> Callable[[JsonObject, datetime], Any]:
    def cell(item: JsonObject, _: datetime) -> str:
        pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
        return ",".join(str(each.get(key, "")) for each in pod.get("containers") or ())

    return cell


def _cohort_column(path: str) -> Column:
    return Column("Cohort", "Cohort that this ClusterQueue belongs to", value_at(path))


_PENDING: Final = Column(
    "Pending Workloads", "Number of pending workloads", value_at("status.pendingWorkloads"), type="integer"
)
_ADMITTED: Final = value_at("status.admittedWorkloads")
_ADMITTED_MEANS: Final = "Number of admitted workloads that have not finished yet"

_COLUMNS: Final[Mapping[str, Sequence[Column]]] = {
    "ClusterQueue": (
        _cohort_column("spec.cohortName"),
        Column("Strategy", "Order of the pending workloads", value_at("spec.queueingStrategy"), priority=1),
        _PENDING,
        Column("Admitted Workloads", _ADMITTED_MEANS, _ADMITTED, type="integer", priority=1),
    ),
    "LocalQueue": (
        Column("ClusterQueue", "ClusterQueue behind this queue", value_at("spec.clusterQueue")),
        _PENDING,
        Column("Admitted Workloads", _ADMITTED_MEANS, _ADMITTED, type="integer"),
    ),
    "MultiKueueCluster": (Column("Connected", "Whether it is connected", _condition("Active")), AGE),
    "Reservation": (
        Column("Start", "Start of the first window", value_at("spec.start")),
        Column("End", "End of the first window", value_at("spec.end")),
        Column("Recurrence", "How often the window returns", value_at("spec.recurrence")),
        Column("Until", "From then on no window starts", value_at("spec.until")),
        Column("Count", "How many of the nodes it takes", value_at("spec.nodes.count"), type="integer"),
        Column("If Busy", "Fate of other workloads at the start", value_at("spec.ifBusy"), priority=1),
        AGE,
    ),
    "Workload": (
        Column("Queue", "LocalQueue that this workload was submitted to", value_at("spec.queueName")),
        Column("Reserved in", "ClusterQueue where it holds quota", value_at("status.admission.clusterQueue")),
        Column("Admitted", "Whether it is admitted", _condition("Admitted")),
        Column("Finished", "Whether it is finished", _condition("Finished")),
        AGE,
    ),
    "WorkloadPriorityClass": (Column("Value", "The priority", value_at("value"), type="integer"),),
    "Namespace": (Column("Status", "The phase of the namespace", value_at("status.phase")), AGE),
}


JOB_COLUMNS: Final[Sequence[Column]] = (
    NAME,
    Column("Status", "State of the job", _job_status),
    Column("Completions", "Pods that have succeeded, out of those wanted", _job_completions),
    Column("Duration", "Time from its start to its end", _job_duration),
    AGE,
    Column("Containers", "Names of the containers", _containers("name"), priority=1),
    Column("Images", "Images of the containers", _containers("image"), priority=1),
)
"""The columns of Kubernetes' own printer of jobs."""


def columns_of(kind: str, version: str) -> Sequence[Column]:
    """Return the columns of a kind. Kinds without columns of their own show their age, as Kubernetes does."""
    if kind == "ClusterQueue" and version == "v1beta1":
        return (NAME, _cohort_column("spec.cohort"), *_COLUMNS[kind][1:])
    return (NAME, *_COLUMNS.get(kind, (AGE,)))


def table(
    columns: Sequence[Column],
    items: Sequence[JsonObject],
    metadata: Mapping[str, Any],
    now: datetime,
    *,
    include: str = "Metadata",
    with_definitions: bool = True,
) -> dict[str, Any]:
    """Return the objects as a Table. `include` is the part of the object that each row includes: Object, Metadata or
    None."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [column.definition for column in columns] if with_definitions else [],
        "rows": [_row(columns, item, now, include) for item in items],
    }


def _row(columns: Sequence[Column], item: JsonObject, now: datetime, include: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [column.cell(item, now) for column in columns]}
    if include == "Object":
        row["object"] = item
    elif include != "None":
        row["object"] = partial(item)
    return row


def partial(item: JsonObject) -> dict[str, Any]:
    """Return the metadata of an object alone (meta.k8s.io/v1 PartialObjectMetadata)."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
