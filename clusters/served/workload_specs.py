"""Workload objects where kueueweb serves them: the parts that both sides may change, and their older version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.served.agreement import ABSENT, Side
from clusters.served.contents import as_submitted, digest
from clusters.served.served_rows import row_version
from queues.manifests.workload import WorkloadSpec
from queues.manifests.workload_object import PriorityClassSource, read_workload, write_workload
from queues.models import Workload
from queues.services.workload_objects import workload_spec
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport
from scheduling.model.topology_encoding import decode

KIND: Final = "Workload"
_SOURCES: Final = {
    "WorkloadPriorityClass": PriorityClassSource.WORKLOAD_PRIORITY_CLASS,
    "PriorityClass": PriorityClassSource.POD_PRIORITY_CLASS,
}


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """A workload's row: its version, and the parts that both sides may change."""

    row: Workload
    version: int
    side: Side


def read_spec(obj: JsonObject, api_version: str) -> tuple[WorkloadSpec, list[str]]:
    """Read the spec of the object, and its mistakes."""
    report = ValidationReport()
    spec = read_workload(FieldReader(report, "", as_submitted(obj)), api_version.rpartition("/")[2])
    mistakes = [f"{each.path}: {each.rule}" for each in report.errors if each.reason != MistakeReason.UNKNOWN_FIELD]
    return replace(spec, api_version=api_version), mistakes


def workload_content(spec: WorkloadSpec, *, has_job: bool) -> str:
    """Return a digest of the whole spec.

    For a workload with a job, the digest covers only the fields that its owner may change (active, the priority and its
    class) and the fields that follow from the job (the queue and the pod counts).
    """
    if has_job:
        own = {"active": spec.active, "priority": spec.priority or 0, "class": spec.priority_class_name}
        return digest({**own, **_of_its_job(spec)})
    return digest(write_workload(replace(spec, priority=spec.priority or 0)))


def follows_job(spec: WorkloadSpec, row: Workload) -> bool:
    """Return whether the object has the queue and the number of pods of the row, which follows its job."""
    return _of_its_job(spec) == _of_its_job(workload_spec(row))


def _of_its_job(spec: WorkloadSpec) -> dict[str, Any]:
    counts = {pod_set.name: [pod_set.count, pod_set.min_count] for pod_set in spec.pod_sets}
    return {"queue": spec.queue_name, "counts": counts}


def workload_rows(cluster: Cluster, keys: Collection[str]) -> dict[str, WorkloadRow]:
    """Return the rows of these keys, with their jobs and pod sets."""
    names = {key.rpartition("/")[2] for key in keys}
    rows = Workload.objects.filter(cluster=cluster, name__in=names).select_related("job").prefetch_related("pod_sets")
    found = rows.annotate(row_version=row_version(Workload)).order_by("pk")
    return {row.key: _row(row) for row in found if row.key in keys}


def _row(row: Any) -> WorkloadRow:
    deleting = row.deletion_requested_at is not None
    content = ABSENT if deleting else workload_content(workload_spec(row), has_job=row.job_id is not None)
    return WorkloadRow(row, row.row_version, Side(content, row.updated_at))


def spec_in(spec: Mapping[str, Any], api_version: str) -> JsonObject:
    """Convert the spec of v1beta2 to that version."""
    written = dict(spec)
    if api_version.endswith("/v1beta1"):
        reference = written.pop("priorityClassRef", None)
        written.pop("preemptionGates", None)
        if reference:
            written["priorityClassName"] = reference["name"]
            written["priorityClassSource"] = _SOURCES[reference["kind"]].value
    return written


def status_in(status: JsonObject, api_version: str) -> JsonObject:
    """Convert the status of v1beta2 to that version, which lists the domains of a topology one by one."""
    if not api_version.endswith("/v1beta1"):
        return status
    status = {key: value for key, value in status.items() if key != "preemptionGates"}
    if "admission" not in status:
        return status
    admission = status["admission"]
    assigned = [_plain(each) for each in admission["podSetAssignments"]]
    return {**status, "admission": {**admission, "podSetAssignments": assigned}}


def _plain(assignment: Mapping[str, Any]) -> JsonObject:
    if "topologyAssignment" not in assignment:
        return dict(assignment)
    topology = decode(assignment["topologyAssignment"])
    domains = [{"values": list(domain.values), "count": domain.count} for domain in topology.domains]
    return {**assignment, "topologyAssignment": {"levels": list(topology.levels), "domains": domains}}
