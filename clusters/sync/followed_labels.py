"""Labels that the owner of a found job may change in the cluster, and that its workload follows. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusters.client import JsonObject
from queues.manifests.kueue_keys import PRIORITY_CLASS, QUEUE_NAME

FOLLOWED: Final = (QUEUE_NAME, PRIORITY_CLASS)


def relabelled(job: JsonObject, manifest: Mapping[str, Any]) -> JsonObject | None:
    """The stored manifest with the job's present queue and priority class; None if they are unchanged.

    A removed queue label changes nothing: the job stays in its queue.
    """
    labels = dict((manifest.get("metadata") or {}).get("labels") or {})
    now = job["metadata"].get("labels") or {}
    wanted = {key: now[key] for key in FOLLOWED if now.get(key)}
    kept = {key: value for key, value in labels.items() if key != PRIORITY_CLASS}
    changed = {**kept, **wanted}
    if changed == labels:
        return None
    return {**manifest, "metadata": {**manifest["metadata"], "labels": changed}}
