"""Workload slices of elastic jobs: a job that grows keeps the quota that it has while a second workload waits for more.

A slice may differ from its job in the counts of pods only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusters.jobs.framework.conditions import finish, has_quota, is_evicted, is_finished
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.manifest import JsonObject, annotations_of, name_of, namespace_of, set_annotation
from clusters.jobs.framework.pod_sets import counts_of
from clusters.jobs.framework.store import ObjectStore
from queues.manifests import kueue_keys as keys

_REPLACED: Final = ("WorkloadSliceReplaced", "Replaced to accommodate a new workload slice")
_OUT_OF_SYNC: Final = ("OutOfSync", "The workload slice is out of sync with its parent job")


def unfinished(workloads: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the workloads that have not finished, the oldest first."""
    return sorted(
        (workload for workload in workloads if not is_finished(workload)),
        key=lambda each: (each["metadata"].get("creationTimestamp") or "", each["metadata"].get("uid") or ""),
    )


def latest_with_quota(workloads: Sequence[JsonObject]) -> JsonObject | None:
    holding = [each for each in unfinished(workloads) if has_quota(each) and not is_evicted(each)]
    return holding[-1] if holding else None


def replaced_by(workload: JsonObject) -> str | None:
    """Return the key of the slice that this one replaces."""
    return annotations_of(workload).get(keys.REPLACED_SLICE)


def _key(workload: JsonObject) -> str:
    return f"{namespace_of(workload)}/{name_of(workload)}"


def link_slice(workload: JsonObject, workloads: Sequence[JsonObject]) -> None:
    """Mark a new workload as a slice that replaces the existing one. Raises JobError."""
    existing = unfinished(workloads)
    if len(existing) > 1:
        raise JobError(f"unexpected workload-slices count: {len(existing)}")
    set_annotation(workload, keys.ELASTIC_JOB, "true")
    first = name_of(workload)
    if existing:
        old = existing[0]
        set_annotation(workload, keys.REPLACED_SLICE, _key(old))
        first = annotations_of(old).get(keys.SLICE_NAME) or name_of(old)
    set_annotation(workload, keys.SLICE_NAME, first)


def fit_slices(
    workloads: Sequence[JsonObject], pod_sets: Sequence[JsonObject], store: ObjectStore, now: str
) -> tuple[JsonObject | None, bool]:
    """Return the slice that matches the job as it is, None if a new slice is needed. Also return whether a slice can
    match at all: none can if the job's pod sets changed."""
    existing = unfinished(workloads)
    selected = existing[0] if len(existing) == 1 else _select(existing, store, now)
    if selected is None:
        return None, True
    wanted, had = counts_of(pod_sets), counts_of(selected["spec"]["podSets"])
    if wanted.keys() != had.keys():
        return None, False
    if wanted == had:
        return selected, True
    if has_quota(selected) and not _is_smaller(wanted, had):
        return None, True
    for pod_set in selected["spec"]["podSets"]:
        pod_set["count"] = wanted[pod_set["name"]]
    store.write(selected)
    return selected, True


def _is_smaller(wanted: dict[str, int], had: dict[str, int]) -> bool:
    fewer = any(wanted[name] < had[name] for name in had)
    return fewer and not any(wanted[name] > had[name] for name in had)


def _select(existing: Sequence[JsonObject], store: ObjectStore, now: str) -> JsonObject | None:
    """Choose among several slices: the replacement of the slice with quota, or else that slice, or else the latest.

    Evicted slices are not chosen. All slices but the chosen one and the one with quota are finished.
    """
    replacements = _replacements(existing)
    holding, latest = None, None
    for workload in existing:
        if is_evicted(workload):
            continue
        latest = workload
        replacement = replacements.get(_key(workload))
        if has_quota(workload) and not (replacement is not None and has_quota(replacement)):
            holding = workload
    waiting = replacements.get(_key(holding)) if holding is not None else None
    selected = waiting or holding or latest
    for workload in existing:
        if workload is selected or workload is holding:
            continue
        reason, message = _REPLACED if _key(workload) in replacements else _OUT_OF_SYNC
        if finish(workload, reason, message, now):
            store.write(workload)
    return selected


def _replacements(existing: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Return the slices that replace others, by the key of the replaced slice; one with quota takes precedence."""
    found: dict[str, JsonObject] = {}
    for workload in existing:
        key = replaced_by(workload)
        if key is None or is_evicted(workload):
            continue
        if key not in found or (has_quota(workload) and not has_quota(found[key])):
            found[key] = workload
    return found
