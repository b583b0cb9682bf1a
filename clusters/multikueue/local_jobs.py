"""Copies the status of each job in a worker to the manager's own job.

A pass every two seconds visits every running job. A job whose copy has not changed since both were equal is read again
only once a minute.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping, Sequence
from typing import Any, Final, NamedTuple

from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient
from clusters.jobs.framework.job_kind import JobKind, Stopping
from clusters.jobs.framework.manifest import dig
from clusters.jobs.reading import NO_CLUSTER
from clusters.multikueue.manager_rows import Case
from scheduling.manifest.merge_patch import difference

_log = logging.getLogger(__name__)

_SCHEDULED: Final = "PodScheduled"
_AGAIN_SECONDS: Final = 60.0
"""The time after which a job is read again although its copy has not changed: another client may have written its
status."""


class Alike(NamedTuple):
    """The resourceVersion of a job's copy whose status the manager's job has, and when it was copied, in seconds."""

    version: str
    seconds: float


Copied = MutableMapping[str, Alike]
"""By the uid of the job in the worker."""


class LocalJobs:
    """Writes to the manager. A missing job, or one that refuses its status, does not delay the others."""

    def __init__(self, client: ClusterClient, copied: Copied, now: float) -> None:
        self._client = client
        self._copied = copied
        self._now = now
        for uid in [uid for uid, alike in copied.items() if now - alike.seconds >= _AGAIN_SECONDS]:
            del copied[uid]

    def follow(self, case: Case, found: Sequence[JsonObject]) -> bool:
        """Copy the status of each job in the worker to the job here. Return whether a later attempt may copy more,
        because the API server did not answer or was too busy."""
        kind = case.kind
        if kind is None or kind.stopping is Stopping.DELETE_PODS:
            return False  # its own controller is at work here too, and would overwrite it
        again = False
        for remote in found:
            metadata = remote["metadata"]
            alike = self._copied.get(metadata["uid"])
            if alike is not None and alike.version == metadata["resourceVersion"]:
                continue
            try:
                if self._copy(kind, remote):
                    self._copied[metadata["uid"]] = Alike(metadata["resourceVersion"], self._now)
            except ClusterError as error:
                _log.warning("The status of %s can't be copied from its worker: %s", case.key, error)
                again = again or error.passes
        return again

    def _copy(self, kind: JobKind, remote: JsonObject) -> bool:
        """Copy the status; return whether both jobs have the same status now."""
        namespace, name = remote["metadata"]["namespace"], remote["metadata"]["name"]
        here = self._client.get(kind.resource, namespace, name)
        if here is None or _must_wait(kind, here, remote):
            return False
        patch = status_patch(kind, here, remote)
        if patch:
            self._client.patch(kind.resource, namespace, name, {"status": patch}, subresource="status")
        return True

    @staticmethod
    def are_ready(kind: JobKind, found: Sequence[JsonObject]) -> bool:
        """Return whether all pods in the worker are ready, or done."""
        return all(kind.pods_ready(each, NO_CLUSTER) or kind.outcome(each).finished for each in found)


def _must_wait(kind: JobKind, here: JsonObject, remote: JsonObject) -> bool:
    """Return whether the copy's status must not be copied yet: the API server does not start a suspended job whose
    status says that it has started."""
    if kind.stopping is not Stopping.SUSPEND:
        return False
    waits = kind.is_suspended(here) and not kind.is_suspended(remote)
    return waits and not kind.outcome(remote).finished


def status_patch(kind: JobKind, here: JsonObject, remote: JsonObject) -> JsonObject | None:
    """Return the merge patch from one status to the other; None if they are equal."""
    before, wanted = here.get("status") or {}, dict(remote.get("status") or {})
    if kind.stopping is Stopping.DELETE:
        wanted = _with_own_gate(here, wanted)
    return difference(before, wanted) or None


def _with_own_gate(here: JsonObject, wanted: JsonObject) -> JsonObject:
    """Return the status with the PodScheduled condition that a pod gated here has, until its copy is scheduled: with
    the condition of an unscheduled copy, an autoscaler would create a node for it."""
    own = _condition(here, _SCHEDULED)
    if own is None or not dig(here, "spec", "schedulingGates") or _is_true(wanted, _SCHEDULED):
        return wanted
    others = [each for each in wanted.get("conditions") or () if each.get("type") != _SCHEDULED]
    return {**wanted, "conditions": [*others, own]}


def _condition(obj: JsonObject, type_: str) -> Any:
    conditions = dig(obj, "status", "conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), None)


def _is_true(status: JsonObject, type_: str) -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == type_ and each.get("status") == "True" for each in conditions)
