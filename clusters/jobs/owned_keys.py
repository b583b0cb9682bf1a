"""Labels and annotations that only kueueweb or a device plugin writes: a tenant's values never reach a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpus.annotations import owned_annotations
from gpus.vendors import VENDORS

MANAGED_LABEL: Final = "kueueweb.io/managed"
JOB_UID_LABEL: Final = "kueueweb.io/job-uid"
WORKLOAD_UID_LABEL: Final = "kueueweb.io/workload-uid"
REPLICA_ANNOTATION: Final = "kueueweb.io/replica"
WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/workload"
POD_SET_LABEL: Final = "kueue.x-k8s.io/podset"
CLUSTER_QUEUE_LABEL: Final = "kueue.x-k8s.io/cluster-queue-name"
LOCAL_QUEUE_LABEL: Final = "kueue.x-k8s.io/local-queue-name"
SUBMITTED_BY: Final = "kueueweb.io/submitted-by"
SUBMITTED_BY_SIGNATURE: Final = "kueueweb.io/submitted-by-signature"
_OURS: Final = frozenset(
    {
        MANAGED_LABEL, JOB_UID_LABEL, WORKLOAD_UID_LABEL, REPLICA_ANNOTATION, WORKLOAD_ANNOTATION, POD_SET_LABEL,
        CLUSTER_QUEUE_LABEL, LOCAL_QUEUE_LABEL, SUBMITTED_BY, SUBMITTED_BY_SIGNATURE,
    }
)  # fmt: skip


def owned_keys(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, by `labels` and `annotations`, the keys that a tenant may not write."""
    labels, annotations = (
        found if isinstance(found := metadata.get(field), Mapping) else {} for field in ("labels", "annotations")
    )
    found = {
        "labels": [key for key in labels if key in _OURS],
        "annotations": sorted(
            {*(key for key in annotations if key in _OURS), *owned_annotations(annotations, VENDORS)}
        ),
    }
    return {field: keys for field, keys in found.items() if keys}


def without_owned_keys(manifest: Any) -> Any:
    """Return a manifest, or a part of one, with only the metadata that a tenant may write: of the object and of each
    pod template in it."""
    if isinstance(manifest, list | tuple):
        return [without_owned_keys(each) for each in manifest]
    if not isinstance(manifest, Mapping):
        return manifest
    return {key: _cleaned(value) if key == "metadata" else without_owned_keys(value) for key, value in manifest.items()}


def _cleaned(metadata: Any) -> Any:
    if not isinstance(metadata, Mapping):
        return metadata
    cleaned = dict(metadata)
    for field, keys in owned_keys(metadata).items():
        cleaned[field] = {key: value for key, value in metadata[field].items() if key not in keys}
    return cleaned


def owned_paths(manifest: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of keys in a manifest that are not pushed to the cluster."""
    if isinstance(manifest, list | tuple):
        for number, each in enumerate(manifest):
            yield from owned_paths(each, f"{path}[{number}]")
    elif isinstance(manifest, Mapping):
        for key, value in manifest.items():
            here = f"{path}.{key}" if path else str(key)
            if key == "metadata" and isinstance(value, Mapping):
                yield from (f"{here}.{field}[{name}]" for field, names in owned_keys(value).items() for name in names)
            else:
                yield from owned_paths(value, here)
