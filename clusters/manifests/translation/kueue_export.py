"""Our manifests as Kueue's, with a report of what Kueue does not have (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from clusters.manifests.translation.translated import JsonObject, Translation
from queues.manifests import kueue_keys as keys

_OURS: Final = "kueueweb.io"
_REMEDIES: Final = {
    "kueueweb.io/node-quotas": "write the amounts: Kueue's quotas do not follow nodes",
    "kueueweb.io/sharing-policy": "Kueue shares by its own rules: borrowing, lending and fairSharing",
    "kueueweb.io/priority-weights": "Kueue orders by priority and time",
    "kueueweb.io/backfill": "BestEffortFIFO passes a workload that waits, without a planned start",
    "kueueweb.io/user-limits": "make a ClusterQueue for each user or group",
    "kueueweb.io/never-reclaim": "let no queue of the cohort reclaim",
    keys.START_AFTER: "suspend the job, and resume it by another program",
}
_NO_COUNTERPART: Final = "no counterpart"


def export_to_kueue(contents: Sequence[Mapping[str, Any]]) -> list[Translation]:
    """Return the export of each object; one of a kind of ours has no manifest."""
    return [_exported(content) for content in contents]


def _exported(content: Mapping[str, Any]) -> Translation:
    made = Translation("kueueweb")
    if str(content.get("apiVersion", "")).partition("/")[0] == _OURS:
        made.lose("kind", f"Kueue has no {content.get('kind')}")
        return made
    copy = deepcopy(dict(content))
    for path, metadata in _metadata(copy):
        annotations = metadata.get("annotations") or {}
        for name in sorted(name for name in annotations if name.partition("/")[0] == _OURS):
            del annotations[name]
            if name != keys.TRANSLATED:
                made.lose(f"{path}.annotations[{name}]", _REMEDIES.get(name, _NO_COUNTERPART))
        if "annotations" in metadata and not annotations:
            del metadata["annotations"]
    made.manifests.append(copy)
    return made


def _metadata(content: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    yield "metadata", content.setdefault("metadata", {})
    template = (content.get("spec") or {}).get("template")
    if isinstance(template, dict) and isinstance(template.get("metadata"), dict):
        yield "spec.template.metadata", template["metadata"]
