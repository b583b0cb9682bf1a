"""Reads one of two compared configurations: manifests of Kueue's kinds, of nodes, and of the configuration."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpus.manifests import configured_policies
from kueueweb.openb_trace import UnreadableTrace
from queues.manifests.documents import read_documents
from scheduling.model.device import Device
from scheduling.model.node import CPU, MEMORY, PODS, Node
from scheduling.model.vendor import NVIDIA
from scheduling.world import World

_KEYS: Final = {
    "Namespace": "namespaces",
    "Topology": "topologies",
    "Node": "nodes",
    "Reservation": "reservations",
    "ResourceFlavor": "resourceFlavors",
    "AdmissionCheck": "admissionChecks",
    "Cohort": "cohorts",
    "ClusterQueue": "clusterQueues",
    "LocalQueue": "localQueues",
}
"""Kind -> the key of a scenario."""
SETTINGS: Final = "devicePlugin"
"""The key of the settings of HAMi's device plugin, such as `gpu_scheduler_policy`."""
_SETTINGS: Final = ("fairSharing", "admissionFairSharing", "featureGates", "placement", SETTINGS)
_MEMORY_MIB: Final = 100_000
_SLOTS: Final = 100
_WHOLE_CORES: Final = 100
_PODS_OF_A_NODE: Final = 1000


def read_configuration_file(text: bytes, source: str) -> dict[str, Any]:
    """Return the manifests by the keys of a scenario. Raises ManifestErrors for text that is not YAML, and
    UnreadableTrace for another kind and for a file without a LocalQueue."""
    found: dict[str, Any] = {key: [] for key in _KEYS.values()}
    for document in read_documents(text, source=source):
        for manifest in _items(document.content):
            kind = manifest.get("kind", "")
            if kind == "Configuration":
                found |= {name: manifest[name] for name in _SETTINGS if name in manifest}
            elif kind in _KEYS:
                found[_KEYS[kind]].append(manifest)
            else:
                supported = ", ".join(sorted((*_KEYS, "Configuration")))
                raise UnreadableTrace(f'{source}: kind: Unsupported value "{kind}": supported kinds are {supported}')
    if not found["localQueues"]:
        raise UnreadableTrace(f"{source}: Required value: at least one LocalQueue, by which jobs ask for quota")
    return found


def _items(manifest: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    if str(manifest.get("kind", "")).endswith("List") and isinstance(manifest.get("items"), list):
        return list(manifest["items"])
    return [manifest]


def read_nodes(lines: Iterable[str]) -> list[Node]:
    """Return the nodes of openb's node list, each with its devices. Raises UnreadableTrace."""
    try:
        return [_node(row) for row in csv.DictReader(lines)]
    except (KeyError, ValueError, TypeError) as error:
        raise UnreadableTrace(
            f"nodes: must have the columns sn, cpu_milli, memory_mib, gpu and model: {error!r}"
        ) from error


def _node(row: Mapping[str, str]) -> Node:
    name = row["sn"]
    devices = tuple(
        Device(f"{name}-{index}", index, NVIDIA.common_word, row["model"], _SLOTS, _MEMORY_MIB, _WHOLE_CORES)
        for index in range(int(row["gpu"] or 0))
    )
    amounts = {CPU: int(row["cpu_milli"]), MEMORY: int(row["memory_mib"]) * 2**20, PODS: _PODS_OF_A_NODE}
    labels = {"kubernetes.io/hostname": name, "model": row["model"]}
    return Node(name, labels, allocatable=amounts, ready=True, devices=devices)


def add_nodes(nodes: Iterable[Node], settings: Mapping[str, Any], world: World) -> None:
    """Add nodes to the World, with the policies for nodes and devices of a device plugin's settings."""
    world.set_placement_policies(*configured_policies(settings))
    for node in nodes:
        world.set_node(node)
