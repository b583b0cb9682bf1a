"""Reads and writes `metadata` of an object: name, namespace, labels and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.manifest.errors import MistakeReason
from scheduling.manifest.field_reader import FieldReader
from scheduling.manifest.syntax import (
    Syntax,
    dns_label,
    dns_subdomain,
    generate_name_prefix,
    label_value,
    qualified_name,
)

DEFAULT_NAMESPACE = "default"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS_BYTES = 262144
_MAX_GENERATED_PREFIX = 58
_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "selfLink",
)


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """The identity, labels and annotations of an object. `generate_name` is a prefix to which five random characters
    are added."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    generate_name: bool = False
    uid: str = field(default="", compare=False)
    resource_version: str = field(default="", compare=False)
    """The version of a manifest that was read from a server. Not compared, because it is no part of the desired
    state."""

    @property
    def key(self) -> str:
        """`namespace/name`, or the name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def read_metadata(
    top: FieldReader,
    *,
    namespaced: bool,
    name_syntax: Syntax = dns_subdomain,
    nameless: bool = False,
) -> ObjectMeta:
    """Read `metadata`. Fields that only the API server sets are ignored, because manifests read from a server have
    them."""
    if nameless and not top.has("metadata"):
        top.ignore("metadata")
        return ObjectMeta("")
    fields = top.required_fields("metadata")
    fields.ignore(*_OF_THE_SERVER)
    uid, version = (str(fields.content.get(key) or "") for key in ("uid", "resourceVersion"))
    generated = not fields.has("name") and fields.has("generateName")
    name = _read_name(fields, generated, name_syntax, required=not nameless)
    namespace = _read_namespace(fields, namespaced)
    meta = ObjectMeta(name, namespace, *read_labels_and_annotations(fields), generated, uid, version)
    fields.close()
    return meta


def read_labels_and_annotations(fields: FieldReader) -> tuple[dict[str, str], dict[str, str]]:
    labels = fields.text_map("labels", key_syntax=qualified_name, value_syntax=label_value)
    return labels, read_annotations(fields)


def write_metadata(meta: ObjectMeta, **more: Any) -> dict[str, Any]:
    """`metadata` of a manifest; empty maps are left out."""
    written: dict[str, Any] = {"name": meta.name}
    if meta.namespace:
        written["namespace"] = meta.namespace
    written.update({key: value for key, value in more.items() if value})
    if meta.labels:
        written["labels"] = dict(meta.labels)
    if meta.annotations:
        written["annotations"] = dict(meta.annotations)
    return written


def _read_name(fields: FieldReader, generated: bool, syntax: Syntax, *, required: bool) -> str:
    if not generated:
        fields.ignore("generateName")
        return fields.text("name", required=required, syntax=syntax)
    fields.ignore("name")
    return fields.text("generateName", syntax=generate_name_prefix)[:_MAX_GENERATED_PREFIX]


def _read_namespace(fields: FieldReader, namespaced: bool) -> str:
    if namespaced:
        return fields.text("namespace", DEFAULT_NAMESPACE, syntax=dns_label)
    if fields.take("namespace"):
        fields.error(
            "namespace",
            "must not be set: objects of this kind have no namespace",
            "Remove it.",
            MistakeReason.FORBIDDEN,
        )
    return ""


def read_annotations(fields: FieldReader) -> dict[str, str]:
    """Read the annotations, at most as many bytes as Kubernetes accepts."""
    annotations = fields.text_map("annotations", key_syntax=lambda key: qualified_name(key.lower()))
    annotations.pop(LAST_APPLIED, None)  # kubectl's own copy of the manifest
    size = sum(len(text.encode("utf-8", "surrogatepass")) for item in annotations.items() for text in item)
    if size > MAX_ANNOTATIONS_BYTES:
        fields.report.error(
            fields.at("annotations"),
            size,
            f"must have at most {MAX_ANNOTATIONS_BYTES} bytes in total, has {size}",
            "",
            MistakeReason.TOO_LONG,
        )
    return annotations
