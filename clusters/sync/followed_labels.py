"""Labels that the owner of a job that was found in the cluster may change there: its workload follows (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusters.client import JsonObject
from queues.manifests.kueue_keys import PRIORITY_CLASS, QUEUE_NAME

FOLLOWED: Final = (QUEUE_NAME, PRIORITY_CLASS)


def relabelled(job: JsonObject, manifest: Mapping[str, Any]) -> JsonObject | None:
    """The stored manifest with the queue and the priority class that the job names now; None if it names the same.

    A queue's label that was taken away changes nothing: the job stays where it is.
    """
    labels = dict((manifest.get("metadata") or {}).get("labels") or {})
    now = job["metadata"].get("labels") or {}
    wanted = {key: now[key] for key in FOLLOWED if now.get(key)}
    kept = {key: value for key, value in labels.items() if key != PRIORITY_CLASS}
    changed = {**kept, **wanted}
    if changed == labels:
        return None
    return {**manifest, "metadata": {**manifest["metadata"], "labels": changed}}
