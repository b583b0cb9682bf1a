"""Writes events of workloads. Batches write theirs in SQL."""

from datetime import datetime

from queues.models import Workload, WorkloadEvent

_MAX_MESSAGE = 1024
"""The length to which Kubernetes limits an event's message."""


def log_event(
    workload: Workload, reason: str, message: str, *, actor: str, now: datetime, warning: bool = False
) -> None:
    """Add an event, within the caller's transaction."""
    WorkloadEvent.objects.create(
        cluster_id=workload.cluster_id,
        workload_uid=workload.uid,
        namespace=workload.namespace,
        workload_name=workload.name,
        at=now,
        type="Warning" if warning else "Normal",
        reason=reason,
        message=message[:_MAX_MESSAGE],
        actor=actor,
    )
