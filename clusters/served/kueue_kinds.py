"""The kinds of Kueue's objects that are followed or served, and their versions in the cluster."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from clusters.api_objects import Kind
from queues.kinds import KINDS

GROUP: Final = "kueue.x-k8s.io"
_VERSIONS: Final = ("v1beta2", "v1beta1")
"""The newest first."""


def _kinds() -> dict[str, tuple[Kind, ...]]:
    """Return each kind in the versions that we read, the newest first."""
    found = {"Workload": tuple(Kind(f"{GROUP}/{version}", "Workload", "workloads") for version in _VERSIONS)}
    for kind in KINDS.values():
        versions = [version for version in kind.versions if version.startswith(f"{GROUP}/")]
        plural = kind.plural.replace("-", "")
        if versions:
            found[kind.name] = tuple(Kind(version, kind.name, plural, kind.namespaced) for version in versions)
    return found


KUEUE_KINDS: Final = _kinds()
"""Kind -> where it may be served, the newest version first."""
PRIORITY_CLASSES: Final = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)


def newest(served: Collection[Kind]) -> frozenset[Kind]:
    """Return the newest version of each kind that the cluster serves."""
    found = (next((kind for kind in kinds if kind in served), None) for kinds in KUEUE_KINDS.values())
    return frozenset(kind for kind in found if kind is not None)


def missing(served: Collection[Kind]) -> list[str]:
    """Return the kinds that the cluster serves in no version that kueueweb reads."""
    return sorted(name for name, kinds in KUEUE_KINDS.items() if not any(kind in served for kind in kinds))
