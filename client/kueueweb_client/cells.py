"""The cells of tables: of REST's rows, and of manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
Column = tuple[str, Cell]

NONE: Final = "-"


def shown(value: Any) -> str:
    """Write a value as a cell: a dash for no value, commas between the values of a list."""
    if value is None or value == "":
        return NONE
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def field(key: str) -> Cell:
    """Return the cell of a field of a row."""
    return lambda row: shown(row.get(key))


def find(item: Any, path: str) -> Any:
    """Return the value at a path such as `metadata.name`; None if it is missing."""
    for key in path.split("."):
        item = item.get(key) if isinstance(item, Mapping) else None
    return item


def at(path: str, default: str = NONE) -> Cell:
    """Return the cell of a field of a manifest."""

    def cell(item: Row) -> str:
        found = find(item, path)
        return default if found is None or found == "" else shown(found)

    return cell


def age(text: str | None, now: datetime | None = None) -> str:
    """Write how long ago an RFC 3339 time was, in one unit: 45s, 12m, 3h, 8d."""
    if not text:
        return NONE
    seconds = int(((now or datetime.now(UTC)) - datetime.fromisoformat(text)).total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def requests(row: Row) -> str:
    """Write the pods of a workload's row, and the resources that they request."""
    pods = sum(pod_set["count"] for pod_set in row["pod_sets"])
    total: dict[str, list[str]] = {}
    for pod_set in row["pod_sets"]:
        for resource, amount in pod_set["requests"].items():
            total.setdefault(resource.rpartition("/")[2], []).append(f"{pod_set['count']}x{amount}")
    return f"{pods} pods: " + ", ".join(f"{name} {'+'.join(amounts)}" for name, amounts in sorted(total.items()))


def conditions(item: Row) -> str:
    """Return the types of a manifest's conditions that are true."""
    found: Sequence[Row] = find(item, "status.conditions") or ()
    return ",".join(each["type"] for each in found if each["status"] == "True") or NONE


def row_conditions(row: Row) -> str:
    """Return the types of a row's conditions that are true."""
    return conditions({"status": row})


def is_active(item: Row) -> bool:
    """Return whether a manifest, or a row, has the condition Active."""
    found = conditions(item) if "metadata" in item else row_conditions(item)
    return "Active" in found.split(",")


def usage(row: Row) -> str:
    """Return the usage of a queue's row: flavor:resource=used/nominal, in base units."""
    return ";".join(f"{c['flavor']}:{c['resource']}={c['used']}/{c['nominal']}" for c in row["usage"]) or NONE


def quota(item: Row) -> str:
    """Return the nominal quotas of a manifest: flavor:resource=amount."""
    cells = [
        f"{flavor['name']}:{each['name']}={each['nominalQuota']}"
        for group in find(item, "spec.resourceGroups") or ()
        for flavor in group.get("flavors") or ()
        for each in flavor.get("resources") or ()
    ]
    return ";".join(cells) or NONE


def node_labels(item: Row) -> str:
    """Return the node labels of a ResourceFlavor's manifest."""
    return ",".join(f"{key}={value}" for key, value in (find(item, "spec.nodeLabels") or {}).items()) or NONE


def queue_label(item: Row) -> str:
    """Return the LocalQueue that a job's manifest names."""
    labels = find(item, "metadata.labels") or {}
    return shown(labels.get("kueue.x-k8s.io/queue-name"))


def job_status(item: Row) -> str:
    """Return the state of a Job as kubectl shows it."""
    if find(item, "metadata.deletionTimestamp"):
        return "Terminating"
    true = conditions(item).split(",")
    return next((each for each in ("Complete", "Failed", "Suspended") if each in true), "Running")


def completions(item: Row) -> str:
    """Write the number of succeeded pods of a Job, and of its wanted completions."""
    wanted = find(item, "spec.completions") or find(item, "spec.parallelism") or 1
    return f"{find(item, 'status.succeeded') or 0}/{wanted}"


def share(used: str, total: str, within: str = "") -> Cell:
    """Return the cell of two numbers of a row, as used/total."""

    def cell(row: Row) -> str:
        found = row[within] if within else row
        return f"{found[used]}/{found[total]}"

    return cell


def node_status(row: Row) -> str:
    """Return the state of a node's row, with the words of kubectl."""
    words = ["Ready" if row["ready"] else "NotReady"]
    words += [
        word
        for key, word in (("unschedulable", "SchedulingDisabled"), ("cordoned", "Cordoned"), ("draining", "Draining"))
        if row[key]
    ]
    return ",".join(words)
