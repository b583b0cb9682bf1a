"""Jobs of the past of a cluster, from the records of the use that ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from accounts.models import Cluster
from history.models import UsageRecord
from kueueweb.traces.trace_files import in_order
from scheduling.model.quantity import format_amount
from scheduling.simulator.trace_job import TraceJob

_FIELDS: Final = (
    "workload_uid", "namespace", "workload_name", "local_queue", "priority", "pods", "queued_at", "started_at",
    "ended_at", "held",
)  # fmt: skip
_DEVICE: Final = "device"


def recorded_jobs(cluster: Cluster, since: datetime) -> list[TraceJob]:
    """Return the workloads that were queued since then and have ended, in the order of submission. A job runs for the
    whole time in which it held quota, with the largest amounts that it held."""
    records = UsageRecord.objects.filter(cluster=cluster, ended_at__gte=since).order_by("id").values(*_FIELDS)
    by_workload: dict[Any, list[Mapping[str, Any]]] = {}
    for record in records:
        by_workload.setdefault(record["workload_uid"], []).append(record)
    found = (_job(uses) for uses in by_workload.values())
    return in_order(job for job in found if job is not None)


def _job(uses: list[Mapping[str, Any]]) -> TraceJob | None:
    queued = [use["queued_at"] for use in uses if use["queued_at"] is not None]
    if not queued:
        return None  # its submission is before the records
    largest = max(uses, key=lambda use: use["pods"])
    pods, amounts = max(1, largest["pods"]), _amounts(largest["held"])
    devices = float(amounts.pop(_DEVICE, 0.0))
    first = uses[0]
    return TraceJob(
        first["workload_name"],
        first["namespace"],
        first["local_queue"],
        min(queued).timestamp(),
        sum((use["ended_at"] - use["started_at"]).total_seconds() for use in uses),
        pods,
        devices,
        {name: format_amount(name, int(amount) // pods) for name, amount in amounts.items()},
        first["priority"],
    )


def _amounts(held: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for amounts in held.values():
        for name, amount in amounts.items():
            found[name] = found.get(name, 0.0) + float(amount)
    return found
