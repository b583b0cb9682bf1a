"""v1 Namespace."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import dns_label

NAME_LABEL: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """A namespace is its name and its labels."""

    meta: ObjectMeta


def read_namespace(top: Fields, version: str) -> NamespaceSpec:
    """Read a v1 Namespace; its spec has nothing that we use."""
    top.ignore("spec", "status")
    meta = read_metadata(top, namespaced=False, name_syntax=dns_label)
    return NamespaceSpec(replace(meta, labels=namespace_labels(meta.name, meta.labels)))


def namespace_labels(name: str, labels: Mapping[str, str] | None = None) -> dict[str, str]:
    """The labels of a namespace with the one that Kubernetes gives to each: its name, for selectors."""
    return {**(labels or {}), NAME_LABEL: name}


def write_namespace(spec: NamespaceSpec) -> dict[str, Any]:
    """The manifest of a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": write_metadata(spec.meta)}
