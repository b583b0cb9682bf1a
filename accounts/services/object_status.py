"""Fields that an API server adds to an object: its metadata, and Kueue's `status`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from accounts.models import Cluster

Status = dict[str, Any]

STATUS_READERS: Final[dict[str, Callable[[Cluster, Sequence[Any]], list[Status]]]] = {}
"""Kind -> the statuses of rows of it, in their order. The engine, which computes them, registers itself at start."""


def timestamp(at: Any) -> str:
    """Format a time as Kubernetes does."""
    return str(at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def server_metadata(row: Any) -> dict[str, Any]:
    """Return the metadata that an API server adds to an object."""
    found: dict[str, Any] = {"uid": str(row.uid), "resourceVersion": str(row.generation), "generation": row.generation}
    found["creationTimestamp"] = timestamp(row.created_at)
    if row.deletion_requested_at is not None:
        found["deletionTimestamp"] = timestamp(row.deletion_requested_at)
    return found
