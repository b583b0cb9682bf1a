"""Workload rows -> our JSON, a page of them in two queries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.db.models import F, QuerySet

from foundation.shown_past import shown_time
from queues.api.expected_start import EXPECTED_COLUMNS, take_expected_start
from queues.api.label_selector import label_text
from queues.manifests.kueue_keys import ALLOWED_FLAVORS
from queues.manifests.translated_condition import translated_condition
from queues.models import PodSet, Workload
from queues.querysets import queue_time, workload_state, workload_version
from queues.services.visibility import Reader
from scheduling.model.quantity import format_amounts

_WORKLOAD_FIELDS: Final = (
    "id", "uid", "namespace", "name", "priority", "status", "active", "reason", "message", "created_at",
    "state", "queued_at", "quota_reserved_at", "admitted_at", "evicted_at", "finished_at", "requeue_at", "submitted_by",
    "never_preempt", "maximum_execution_seconds", "labels", "parent_name",
)  # fmt: skip
_POD_SET_FIELDS: Final = (
    "workload_id", "name", "count", "min_count", "requests", "admitted_count", "flavors", "resource_usage",
    "topology_request", "topology_assignment", "reclaimable_count",
)  # fmt: skip
_DETAIL_FIELDS: Final = (
    "annotations", "conditions", "admission_check_states", "requeue_count", "eviction_counts", "unhealthy_nodes",
    "push_error", "generation", "deletion_requested_at", "has_variants",
)  # fmt: skip


_ASKED: Final = "asked_annotation_"


def workload_values(workloads: QuerySet[Workload], *, detail: bool = False, annotations: Sequence[str] = ()) -> Any:
    """Return the columns for `workloads_json` as dicts, with the values of only these annotations."""
    fields: tuple[str, ...] = _WORKLOAD_FIELDS
    if detail:
        fields = (*_WORKLOAD_FIELDS, *_DETAIL_FIELDS, "resource_version")
        workloads = workloads.annotate(resource_version=workload_version())
    return workloads.annotate(queued_at=queue_time(), state=workload_state()).values(
        *fields,
        cluster_name=F("cluster__name"),
        cluster_queue=F("cluster_queue_name"),
        local_queue=F("queue_name"),
        priority_class=F("priority_class_name"),
        job_kind=F("job__kind"),
        job_name=F("job__name"),
        **EXPECTED_COLUMNS,
        **{f"{_ASKED}{place}": label_text("annotations", key) for place, key in enumerate(annotations)},
    )


def workloads_json(
    rows: Iterable[dict[str, Any]], readers: Mapping[str, Reader], annotations: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the workloads with their pod sets, reduced to the data that the reader may see in each cluster."""
    rows = list(rows)
    pod_sets: dict[int, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
    found = PodSet.objects.filter(workload_id__in=pod_sets).order_by("workload_id", "position")
    for pod_set in found.values(*_POD_SET_FIELDS, node_selector=F("template__spec__nodeSelector")):
        pod_sets[pod_set.pop("workload_id")].append(_pod_set_json(pod_set))
    now = shown_time()
    for row in rows:
        row["expected_start"] = take_expected_start(row, now)
        kind, name = row.pop("job_kind"), row.pop("job_name")
        row["cluster"], row["variant_of"] = row.pop("cluster_name"), row.pop("parent_name")
        row["owner"] = {"kind": kind, "name": name} if kind else None
        row["pod_sets"] = pod_sets[row["id"]]
        row["message"] = readers[row["cluster"]].message(row["message"])
        if annotations:
            values = {key: row.pop(f"{_ASKED}{place}") for place, key in enumerate(annotations)}
            row["annotations"] = {key: value for key, value in values.items() if value is not None}
    return rows


def workload_detail_json(row: dict[str, Any], reader: Reader) -> dict[str, Any]:
    """Return one workload with its conditions and the device slices that it holds. This takes two more queries, and one
    more for variants."""
    [body] = workloads_json([row], {row["cluster_name"]: reader})
    translated = translated_condition(body["annotations"], body["created_at"])
    conditions = [*reader.conditions(body["conditions"]), *([translated] if translated else [])]
    body["conditions"] = [condition_json(condition) for condition in conditions]
    body["admission_checks"] = [
        condition_json(state) for state in reader.conditions(body.pop("admission_check_states"))
    ]
    slices = Workload(pk=body["id"]).device_allocations.filter(source="decided").order_by("id")
    body["devices"] = list(
        slices.values(
            "pod_set",
            "replica",
            "container",
            "memory_mib",
            "cores_percent",
            node_name=F("node__name"),
            uuid=F("device_uuid"),
        )
    )
    for device in body["devices"]:
        device["node"] = device.pop("node_name")
    body["variants"] = _variants_json(body, reader) if body.pop("has_variants") else []
    return body


def _variants_json(body: Mapping[str, Any], reader: Reader) -> list[dict[str, Any]]:
    """Return why each variant waits, or that it runs, the preferred flavor first."""
    cluster = Workload.objects.filter(pk=body["id"]).values("cluster_id")
    rows = Workload.objects.filter(cluster_id__in=cluster, namespace=body["namespace"], parent_name=body["name"])
    found = rows.annotate(flavor=label_text("annotations", ALLOWED_FLAVORS), state=workload_state())
    columns = ("name", "flavor", "status", "state", "active", "reason", "message", "admitted_at", "gate_opened_at")
    variants = list(found.order_by("created_at", "pk").values(*columns))
    for variant in variants:
        variant["message"] = reader.message(variant["message"])
    return variants


def condition_json(condition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a condition or a check's state with the names of our JSON: `lastTransitionTime` becomes
    `last_transition_time`."""
    return {_snake(key): value for key, value in condition.items()}


def _pod_set_json(pod_set: dict[str, Any]) -> dict[str, Any]:
    pod_set["requests"] = format_amounts(pod_set["requests"])
    pod_set["resource_usage"] = format_amounts(pod_set["resource_usage"])
    pod_set["node_selector"] = pod_set["node_selector"] or {}
    pod_set["topology_request"] = {_snake(key): value for key, value in pod_set["topology_request"].items()}
    return pod_set


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
