"""Kinds of the Kubernetes API by group, version and plural, and the type of their objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

JsonObject = dict[str, Any]
"""An object of the API as JSON."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind's group, version and plural in the API."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path; namespace "" on a namespaced kind means all namespaces."""
        root = "/api/v1" if self.api_version == "v1" else f"/apis/{self.api_version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


EVENTS: Final = Kind("v1", "Event", "events")
CUSTOM_RESOURCES: Final = Kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
LEASES: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
JOB_FLOWS: Final = Kind("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows")
JOB_TEMPLATES: Final = Kind("flow.volcano.sh/v1alpha1", "JobTemplate", "jobtemplates")
NAMESPACES: Final = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODES: Final = Kind("v1", "Node", "nodes", namespaced=False)
POD_TEMPLATES: Final = Kind("v1", "PodTemplate", "podtemplates")
PROVISIONING_REQUESTS: Final = Kind("autoscaling.x-k8s.io/v1", "ProvisioningRequest", "provisioningrequests")
PODS: Final = Kind("v1", "Pod", "pods")
REPLICA_SETS: Final = Kind("apps/v1", "ReplicaSet", "replicasets")
RESOURCE_QUOTAS: Final = Kind("v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES: Final = Kind("v1", "LimitRange", "limitranges")
SECRETS: Final = Kind("v1", "Secret", "secrets")
MUTATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
RUNTIME_CLASSES: Final = Kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False)


def _device_kind(kind: str, plural: str, *, namespaced: bool = True) -> tuple[Kind, ...]:
    """Return a kind of dynamic resource allocation in the versions that are read, the newest first."""
    versions = ("v1", "v1beta2", "v1beta1")
    return tuple(Kind(f"resource.k8s.io/{version}", kind, plural, namespaced) for version in versions)


DEVICE_CLASSES: Final = _device_kind("DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICES: Final = _device_kind("ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIM_TEMPLATES: Final = _device_kind("ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_CLAIMS: Final = _device_kind("ResourceClaim", "resourceclaims")
DEVICE_KINDS: Final = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS)
