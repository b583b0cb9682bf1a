"""v1 ResourceQuota."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from queues.manifests.quantities import read_quantities
from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.model.quantity import NANOS, parse_quantity

_LIMITS: Final = "limits."


class ResourceQuotaScope(StrEnum):
    """Which pods a ResourceQuota is about."""

    TERMINATING = "Terminating"
    NOT_TERMINATING = "NotTerminating"
    BEST_EFFORT = "BestEffort"
    NOT_BEST_EFFORT = "NotBestEffort"
    PRIORITY_CLASS = "PriorityClass"
    CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"


@dataclass(frozen=True, slots=True)
class ResourceQuotaSpec:
    """Columns of ResourceQuota."""

    meta: ObjectMeta
    hard: dict[str, str] = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    scope_selector: dict[str, Any] = field(default_factory=dict)


def read_resource_quota(top: Fields, version: str) -> ResourceQuotaSpec:
    """Read a v1 ResourceQuota. What it limits besides devices is Kubernetes' own to enforce."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=True)
    spec = top.fields("spec")
    if spec is None:
        return ResourceQuotaSpec(meta)
    quota = ResourceQuotaSpec(meta, read_quantities(spec, "hard"), _read_scopes(spec), spec.mapping("scopeSelector"))
    spec.close()
    devices = [name for name in quota.hard if name.startswith(_LIMITS) and "/" in name]
    for name in devices:
        if parse_quantity(quota.hard[name]) % NANOS:
            spec.warn(f"hard[{name}]", "is no whole number: it limits nothing, as in HAMi")
    if devices and (quota.scopes or quota.scope_selector):
        spec.warn("scopes" if quota.scopes else "scopeSelector", "limits of devices count for all pods, as in HAMi")
    return quota


def _read_scopes(spec: Fields) -> list[str]:
    scopes = spec.texts("scopes")
    known = list(ResourceQuotaScope)
    for index, scope in enumerate(scopes):
        if scope not in known:
            spec.error(f"scopes[{index}]", f"must be one of {', '.join(known)}")
    return scopes


def write_resource_quota(spec: ResourceQuotaSpec) -> dict[str, Any]:
    """The manifest of a ResourceQuota."""
    body = {"hard": dict(spec.hard), "scopes": list(spec.scopes), "scopeSelector": dict(spec.scope_selector)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": write_metadata(spec.meta),
        "spec": {key: value for key, value in body.items() if value},
    }
