"""The kinds that the simulated API server serves, and their discovery documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clusters.api_objects import JOB_FLOWS, JOB_TEMPLATES, Kind
from clusters.jobs.registry import JOB_KINDS
from queues.kinds import KINDS
from simulation.api.objects import JsonObject

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind: its place in the URL, its scope and its subresources.

    * group: "" for the core group.
    * generation: whether `metadata.generation` counts changes of the spec.
    * custom: it is served while its CustomResourceDefinition is there.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    generation: bool = False
    custom: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


CRDS = "customresourcedefinitions"
MUTATING = "mutatingwebhookconfigurations"
VALIDATING = "validatingwebhookconfigurations"
KUEUE_GROUP = "kueue.x-k8s.io"
_VERSION: Final = re.compile(r"v(?P<major>\d+)((?P<stage>alpha|beta)(?P<minor>\d+))?")
_STAGES: Final = ("", "beta", "alpha")


def _custom(kind: Kind) -> Resource:
    group, _, version = kind.api_version.partition("/")
    return Resource(group, version, kind.plural, kind.kind, kind.namespaced, (), ("status",), True, True)


def _kueue_kinds() -> list[Kind]:
    """Kueue's kinds, the older versions first: the newest is what a name alone means."""
    versions = [f"{KUEUE_GROUP}/{version}" for version in ("v1beta1", "v1beta2")]
    kinds = [(kind.name, kind.plural.replace("-", ""), kind.namespaced, kind.versions) for kind in KINDS.values()]
    kinds.append(("Workload", "workloads", True, tuple(versions)))
    return [
        Kind(version, name, plural, namespaced)
        for version in versions
        for name, plural, namespaced, known in kinds
        if version in known
    ]


RESOURCES: tuple[Resource, ...] = (
    Resource("", "v1", "namespaces", "Namespace", False, ("ns",), ("status",)),
    Resource("", "v1", "nodes", "Node", False, ("no",), ("status",)),
    Resource("", "v1", "pods", "Pod", True, ("po",), ("status", "binding", "eviction", "log"), True),
    Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",)),
    Resource("", "v1", "secrets", "Secret", True),
    Resource("", "v1", "podtemplates", "PodTemplate", True, (), (), True),
    Resource("", "v1", "events", "Event", True, ("ev",)),
    Resource("", "v1", "limitranges", "LimitRange", True, ("limits",)),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True, ("quota",), ("status",)),
    Resource("admissionregistration.k8s.io", "v1", MUTATING, "MutatingWebhookConfiguration", False, (), (), True),
    Resource("admissionregistration.k8s.io", "v1", VALIDATING, "ValidatingWebhookConfiguration", False, (), (), True),
    Resource("apps", "v1", "deployments", "Deployment", True, ("deploy",), ("status",), True),
    Resource("apps", "v1", "replicasets", "ReplicaSet", True, ("rs",), ("status",), True),
    Resource(
        "autoscaling.x-k8s.io",
        "v1",
        "provisioningrequests",
        "ProvisioningRequest",
        True,
        ("provreq",),
        ("status",),
        True,
    ),
    Resource("apps", "v1", "statefulsets", "StatefulSet", True, ("sts",), ("status",), True),
    Resource("apiextensions.k8s.io", "v1", CRDS, "CustomResourceDefinition", False, ("crd",), ("status",), True),
    Resource("batch", "v1", "cronjobs", "CronJob", True, ("cj",), ("status",), True),
    Resource("batch", "v1", "jobs", "Job", True, (), ("status",), True),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True),
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False, (), (), True),
    Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False, (), (), True),
    Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True),
    Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True, (), ("status",)),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",)),
    *(
        _custom(resource)
        for kind in JOB_KINDS.values()
        for resource in ([kind.resource] if kind.optional else []) + list(kind.refers_to)
    ),
    *map(_custom, (JOB_FLOWS, JOB_TEMPLATES)),
    *map(_custom, _kueue_kinds()),
)

BY_PLURAL = {resource.plural: resource for resource in RESOURCES}
BY_KIND = {(resource.api_version, resource.kind): resource for resource in RESOURCES}
_BY_URL = {(resource.group, resource.version, resource.plural): resource for resource in RESOURCES}


def find(group: str, version: str, plural: str) -> Resource | None:
    """Return the resource of a URL, or None."""
    return _BY_URL.get((group, version, plural))


def crd_name(resource: Resource) -> str:
    """Return the name of a custom resource's CustomResourceDefinition."""
    return f"{resource.plural}.{resource.group}"


def crd_of(resource: Resource) -> JsonObject:
    """Return the CustomResourceDefinition of a custom resource, without a schema."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(resource)},
        "spec": {
            "group": resource.group,
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [{"name": resource.version, "served": True, "storage": True}],
        },
    }


def _groups(served: Sequence[Resource]) -> dict[str, list[str]]:
    """Return the versions of each group, the preferred one first: v1 before v2beta1 before v1beta1 before v1alpha1."""
    found: dict[str, set[str]] = {}
    for resource in served:
        found.setdefault(resource.group, set()).add(resource.version)
    found.pop("")
    return {group: sorted(versions, key=_precedence) for group, versions in found.items()}


def _precedence(version: str) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        return len(_STAGES), 0, 0
    return _STAGES.index(found["stage"] or ""), -int(found["major"]), -int(found["minor"] or 0)


def api_group(group: str, served: Sequence[Resource]) -> JsonObject | None:
    versions = _groups(served).get(group)
    if versions is None:
        return None
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": entries, "preferredVersion": entries[0]}


def api_group_list(served: Sequence[Resource]) -> JsonObject:
    """Return the answer to GET /apis."""
    groups = []
    for group in _groups(served):
        entry = api_group(group, served)
        if entry is not None:
            groups.append({key: entry[key] for key in ("name", "versions", "preferredVersion")})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_versions() -> JsonObject:
    """Return the answer to GET /api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def api_resource_list(group: str, version: str, served: Sequence[Resource]) -> JsonObject | None:
    """Return the answer to GET /api/v1 or /apis/GROUP/VERSION, or None when there is no such group version."""
    served = [resource for resource in served if (resource.group, resource.version) == (group, version)]
    if not served:
        return None
    entries: list[JsonObject] = []
    for resource in served:
        entry: JsonObject = {
            "name": resource.plural,
            "singularName": resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _VERBS,
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        entries.append(entry)
        entries.extend(_subresource(resource, name) for name in resource.subresources)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": entries,
    }


def _subresource(resource: Resource, name: str) -> JsonObject:
    kind = {"binding": "Binding", "eviction": "Eviction"}.get(name, resource.kind)
    verbs = {"status": ["get", "patch", "update"], "log": ["get"]}.get(name, ["create"])
    entry: JsonObject = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": verbs,
    }
    if name == "eviction":
        entry.update({"group": "policy", "version": "v1"})
    return entry
