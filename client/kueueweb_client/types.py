"""The shapes that the server answers with; `docs/openapi.json` of kueueweb has every field."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

WorkloadStatus = Literal["Pending", "QuotaReserved", "Admitted", "Evicted", "Finished"]
Object = dict[str, Any]
"""An object of a kind that has no type in this client."""


class Workload(TypedDict):
    """A workload in a list. Times are RFC 3339 or None."""

    uid: str
    namespace: str
    name: str
    local_queue: str
    cluster_queue: str
    priority: int
    priority_class: str
    status: WorkloadStatus
    active: bool
    submitted_by: str
    reason: str
    message: str
    position: NotRequired[int]
    created_at: str
    admitted_at: str | None
    finished_at: str | None
    owner: Object | None
    pod_sets: list[Object]


class Condition(TypedDict):
    """A condition of a workload or queue, as Kubernetes writes it."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: str


class WorkloadDetail(Workload):
    """One workload, whole."""

    conditions: list[Condition]
    devices: list[Object]
    push_error: str
    resource_version: str
    """A version that every change replaces."""


class Event(TypedDict):
    """A step in a workload's life."""

    id: int
    at: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    actor: str


class AppliedObject(TypedDict):
    """The result for one object of an apply."""

    kind: str
    namespace: str
    name: str
    outcome: Literal["created", "configured", "unchanged", "pruned"]


class ApplyWarning(TypedDict):
    """A warning about an accepted field."""

    kind: str
    namespace: str
    name: str
    message: str


class SkippedDocument(TypedDict):
    """A document of an unsupported kind that was skipped."""

    document: int
    kind: str
    message: str


class ApplyResult(TypedDict):
    """The result of an apply, or of its dry run."""

    dry_run: bool
    objects: list[AppliedObject]
    warnings: list[ApplyWarning]
    skipped: list[SkippedDocument]


class Key(TypedDict):
    """The name of a workload."""

    namespace: str
    name: str


class Page(TypedDict):
    """One page of a list; `next` is the cursor of the next one."""

    results: list[Any]
    next: str | None
