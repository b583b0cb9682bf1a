"""v1 Namespace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from accounts.models import Namespace
from kinds.declaration import Kind
from scheduling.manifest import ObjectMeta
from scheduling.manifest.syntax import dns_label

NAME_LABEL: Final = "kubernetes.io/metadata.name"


def namespace_labels(name: str, labels: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the labels of a namespace, with the label of its name that Kubernetes adds for selectors."""
    return {**(labels or {}), NAME_LABEL: name}


def _with_name_label(meta: ObjectMeta) -> ObjectMeta:
    return replace(meta, labels=namespace_labels(meta.name, meta.labels))


NAMESPACE: Final = Kind(
    "Namespace",
    ("v1",),
    "namespaces",
    ("ns",),
    description="A namespace.",
    model=Namespace,
    name_syntax=dns_label,
    complete=_with_name_label,
    core=lambda row, _: (row.name, row.labels),
)
