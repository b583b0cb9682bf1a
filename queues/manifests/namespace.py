"""v1 Namespace."""

from dataclasses import dataclass
from typing import Any

from scheduler.core.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduler.core.manifest.syntax import dns_label


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """A namespace is its name and its labels."""

    meta: ObjectMeta


def read_namespace(top: Fields, version: str) -> NamespaceSpec:
    """Read a v1 Namespace; its spec has nothing that we use."""
    top.ignore("spec", "status")
    return NamespaceSpec(read_metadata(top, namespaced=False, name_syntax=dns_label))


def write_namespace(spec: NamespaceSpec) -> dict[str, Any]:
    """The manifest of a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": write_metadata(spec.meta)}
