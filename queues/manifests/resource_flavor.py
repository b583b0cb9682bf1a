"""ResourceFlavor and Topology: which nodes quota is counted on, and how they lie to each other."""

from dataclasses import dataclass, field
from typing import Any, Final

from scheduling.manifest import Fields, MistakeReason, ObjectMeta, read_metadata, write_metadata
from scheduling.manifest.syntax import dns_subdomain, label_value, qualified_name
from scheduling.manifest.taints import read_taints, read_tolerations
from scheduling.model.selectors import HOSTNAME_LABEL

_MOST: Final = 8
_MOST_LEVELS: Final = 16
_LONGEST_LEVEL: Final = 316


@dataclass(frozen=True, slots=True)
class ResourceFlavorSpec:
    """Columns of ResourceFlavor."""

    meta: ObjectMeta
    node_labels: dict[str, str] = field(default_factory=dict)
    node_taints: list[dict[str, Any]] = field(default_factory=list)
    tolerations: list[dict[str, Any]] = field(default_factory=list)
    topology_name: str = ""


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """Columns of Topology."""

    meta: ObjectMeta
    levels: list[str] = field(default_factory=list)


def read_resource_flavor(top: Fields, version: str) -> ResourceFlavorSpec:
    """Read a ResourceFlavor; v1alpha2 has `nodeSelector` and `taints` at the top."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=False)
    if version == "v1alpha2":
        return ResourceFlavorSpec(meta, _read_labels(top, "nodeSelector"), read_taints(top, "taints", _MOST))
    spec = top.fields("spec")
    if spec is None:
        return ResourceFlavorSpec(meta)
    flavor = ResourceFlavorSpec(
        meta,
        _read_labels(spec, "nodeLabels"),
        read_taints(spec, "nodeTaints", _MOST),
        read_tolerations(spec, "tolerations", _MOST),
        spec.text("topologyName", syntax=dns_subdomain),
    )
    spec.close()
    if flavor.topology_name and not flavor.node_labels:
        spec.error(
            "topologyName",
            "needs at least one node label beside it",
            "Add nodeLabels that select the nodes of the topology.",
        )
    return flavor


def _read_labels(fields: Fields, key: str) -> dict[str, str]:
    return fields.text_map(key, most=_MOST, key_syntax=qualified_name, value_syntax=label_value)


def write_resource_flavor(spec: ResourceFlavorSpec) -> dict[str, Any]:
    """The manifest of a ResourceFlavor."""
    body = {
        "nodeLabels": dict(spec.node_labels),
        "nodeTaints": list(spec.node_taints),
        "tolerations": list(spec.tolerations),
        "topologyName": spec.topology_name,
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": write_metadata(spec.meta),
        "spec": {key: value for key, value in body.items() if value},
    }


def read_topology(top: Fields, version: str) -> TopologySpec:
    """Read a Topology: 1 to 16 different node labels, the host name only as the last."""
    top.ignore("status")
    meta = read_metadata(top, namespaced=False)
    spec = top.required_fields("spec")
    levels: list[str] = []
    items = spec.items("levels", least=1, most=_MOST_LEVELS)
    for index, item in enumerate(items):
        label = item.text("nodeLabel", required=True, longest=_LONGEST_LEVEL, syntax=qualified_name)
        item.close()
        if label and label in levels:
            item.error("nodeLabel", "is a level already", "Remove one.", MistakeReason.DUPLICATE)
        if label == HOSTNAME_LABEL and index < len(items) - 1:
            item.error("nodeLabel", f"{HOSTNAME_LABEL} may only be the last level", "Move it to the end.")
        levels.append(label)
    spec.close()
    return TopologySpec(meta, levels)


def write_topology(spec: TopologySpec) -> dict[str, Any]:
    """The manifest of a Topology."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Topology",
        "metadata": write_metadata(spec.meta),
        "spec": {"levels": [{"nodeLabel": level} for level in spec.levels]},
    }
