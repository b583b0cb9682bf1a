"""node.k8s.io/v1 RuntimeClass."""

from dataclasses import dataclass, field
from typing import Any, Final

from queues.manifests.quantities import read_quantities
from scheduling.manifest import Fields, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import dns_label, label_value, qualified_name
from scheduling.manifest.taints import read_tolerations

RUNTIME_CLASS_VERSION: Final = "node.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class RuntimeClassSpec:
    """Columns of RuntimeClass."""

    meta: ObjectMeta
    handler: str = ""
    pod_overhead: dict[str, str] = field(default_factory=dict)
    scheduling: dict[str, Any] = field(default_factory=dict)


def read_runtime_class(top: Fields, version: str) -> RuntimeClassSpec:
    """Read a RuntimeClass; its overhead counts in requests, its scheduling is kept."""
    meta = read_metadata(top, namespaced=False)
    handler = top.text("handler", required=True, syntax=dns_label)
    overhead = top.fields("overhead")
    amounts = read_quantities(overhead, "podFixed") if overhead is not None else {}
    if overhead is not None:
        overhead.close()
    return RuntimeClassSpec(meta, handler, amounts, _read_scheduling(top))


def _read_scheduling(top: Fields) -> dict[str, Any]:
    scheduling = top.fields("scheduling")
    if scheduling is None:
        return {}
    found = {
        "nodeSelector": scheduling.text_map("nodeSelector", key_syntax=qualified_name, value_syntax=label_value),
        "tolerations": read_tolerations(scheduling, "tolerations"),
    }
    scheduling.close()
    return {key: value for key, value in found.items() if value}


def write_runtime_class(spec: RuntimeClassSpec) -> dict[str, Any]:
    """The manifest of a RuntimeClass."""
    written: dict[str, Any] = {
        "apiVersion": RUNTIME_CLASS_VERSION,
        "kind": "RuntimeClass",
        "metadata": write_metadata(spec.meta),
        "handler": spec.handler,
    }
    if spec.pod_overhead:
        written["overhead"] = {"podFixed": dict(spec.pod_overhead)}
    return {**written, "scheduling": dict(spec.scheduling)} if spec.scheduling else written
