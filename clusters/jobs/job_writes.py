"""Writes the changes that the controller's pass makes to a job into the cluster, for the watcher and the push.

A job is suspended before its templates change, because templates of a running job are immutable.
"""

from __future__ import annotations

import copy
from typing import Final

from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import annotations_of, name_of, namespace_of, uid_of
from clusters.jobs.whole_objects import difference

_ATTEMPTS: Final = 4
"""How many times a status is written. The controllers of a job that has just been suspended report about its pods."""


def write_job(client: ClusterClient, kind: JobKind, there: JsonObject, wanted: JsonObject) -> JsonObject | None:
    """Write a pass's changes of a job's spec and annotations.

    Return the job, or its current state if it has changed meanwhile, or None if it was deleted. A job that must stop is
    suspended first, because the templates of a running job cannot change. Raises ClusterError.
    """
    try:
        if kind.is_suspended(wanted) and not kind.is_suspended(there):
            there = patch(client, kind, there, difference(there, _suspended(kind, there)) or {})
        ready = ready_for_change(client, kind, there)
        return change_job(client, kind, ready, wanted)
    except ClusterError as error:
        if not error.conflict:
            raise
        return newer(client, kind, there)


def change_job(client: ClusterClient, kind: JobKind, there: JsonObject, wanted: JsonObject) -> JsonObject:
    """Write a pass's changes of a job's spec and annotations in one request; return the job. Raises ClusterError, with
    `conflict` if the job has changed meanwhile."""
    change = difference(there, _with_spec(there, wanted))
    return there if change is None else patch(client, kind, there, change)


def is_written(there: JsonObject, wanted: JsonObject) -> bool:
    """Return whether the job in the cluster has the spec and the annotations that the pass wrote."""
    return _written(there) == _written(wanted)


def patch(
    client: ClusterClient, kind: JobKind, there: JsonObject, change: JsonObject, *, subresource: str = ""
) -> JsonObject:
    """Return the object with the patch applied."""
    return client.patch(kind.resource, namespace_of(there), name_of(there), change, subresource=subresource)


def ready_for_change(client: ClusterClient, kind: JobKind, there: JsonObject) -> JsonObject:
    """Return a suspended job, whose templates may be changed.

    Raises ClusterError, with `conflict` if it was edited meanwhile. Without the version that was read, the answer would
    be a newer job, whose changes the next write would overwrite: a job that was started meanwhile would lose its start
    time, and its templates an edit. A controller that reports the state of the job's pods edits nothing; its status is
    read again.
    """
    for attempt in range(_ATTEMPTS):
        status = kind.status_before_change(there) if kind.is_suspended(there) else None
        if status is None:
            return there
        seen = {key: there["metadata"][key] for key in ("uid", "resourceVersion") if key in there["metadata"]}
        try:
            return patch(client, kind, there, {"metadata": seen, "status": status}, subresource="status")
        except ClusterError as error:
            now = newer(client, kind, there) if error.conflict and attempt + 1 < _ATTEMPTS else None
            if now is None or _written(now) != _written(there):
                raise
            there = now
    return there


def newer(client: ClusterClient, kind: JobKind, there: JsonObject) -> JsonObject | None:
    """Return the current state of the object; None if it no longer exists."""
    found = client.get(kind.resource, namespace_of(there), name_of(there))
    return found if found is not None and uid_of(found) == uid_of(there) else None


def _written(job: JsonObject) -> tuple[object, ...]:
    """Return the parts of a job that passes write, and that only edits change."""
    return job["spec"], annotations_of(job)


def _suspended(kind: JobKind, there: JsonObject) -> JsonObject:
    suspended = copy.deepcopy(there)
    kind.suspend(suspended)
    return suspended


def _with_spec(there: JsonObject, wanted: JsonObject) -> JsonObject:
    metadata = {**there["metadata"], "annotations": dict(annotations_of(wanted))}
    return {**there, "metadata": metadata, "spec": wanted["spec"]}
