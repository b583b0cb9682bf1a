"""A control plane with an aggregation layer, where pods behave as the programs of Kueue's suite do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from clusters.api_objects import NODES, JsonObject, Kind
from clusters.leases import KUEUES_NAMESPACE
from tests.kubernetes.control_plane import ControlPlane

CONFIGURATION_KEY: Final = "controller_manager_config.yaml"
_CONFIG_MAP: Final = "kueue-manager-config"
_CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
_STAGES: Final = Path(__file__).with_name("stages.yaml")
_FRONT_PROXY: Final = "front-proxy-client"
_ROOM: Final = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_STOPPED: Final = "kubelet-is-stopped"
"""The label of a node that has no kubelet."""
_CONTROL_PLANE_TAINT: Final = {"key": CONTROL_PLANE, "effect": "NoSchedule"}


class AggregatedPlane(ControlPlane):
    """The API server passes requests for visibility.kueue.x-k8s.io on to the server that is registered for them."""

    stages = _STAGES
    managed_nodes = ("--manage-nodes-with-label-selector", f"!{_STOPPED}")

    def _further_arguments(self) -> tuple[str, ...]:
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 10 -keyout front.key -out front.crt -subj"
        subprocess.run((*command.split(), f"/CN={_FRONT_PROXY}"), cwd=self._folder, check=True, capture_output=True)
        return (
            "--requestheader-client-ca-file", "front.crt", "--requestheader-allowed-names", _FRONT_PROXY,
            "--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
            "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
            "--proxy-client-cert-file", "front.crt", "--proxy-client-key-file", "front.key",
        )  # fmt: skip

    def stored_configuration(self) -> JsonObject:
        """The ConfigMap in which the suites read and write how Kueue is configured."""
        found = self.admin.get(_CONFIG_MAPS, KUEUES_NAMESPACE, _CONFIG_MAP)
        assert found is not None
        return found

    def store_configuration(self, configuration: str) -> None:
        """Write that ConfigMap."""
        metadata = {"namespace": KUEUES_NAMESPACE, "name": _CONFIG_MAP}
        data = {CONFIGURATION_KEY: configuration}
        self.admin.create(_CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    def set_kubelet(self, node: str, *, runs: bool) -> None:
        """Stop or start the kubelet of a node: without one it renews no lease, and its pods stay as they are."""
        if self.admin.get(NODES, "", node) is not None:
            self.admin.patch(NODES, "", node, {"metadata": {"labels": {_STOPPED: None if runs else ""}}})

    def add_nodes(self, cluster: Path) -> None:
        """The nodes that kind makes of a cluster's configuration."""
        for node in _nodes(yaml.safe_load(cluster.read_text())["nodes"]):
            self.admin.create(NODES, {key: node[key] for key in node if key != "status"})
            self.admin.patch(NODES, "", node["metadata"]["name"], {"status": node["status"]}, subresource="status")


def _nodes(items: list[dict[str, Any]]) -> Iterator[JsonObject]:
    workers = 0
    for item in items:
        name, labels, taints = "kind-control-plane", {CONTROL_PLANE: ""}, [_CONTROL_PLANE_TAINT]
        if item["role"] != "control-plane":
            workers += 1
            name, labels, taints = f"kind-worker{workers if workers > 1 else ''}", item.get("labels") or {}, []
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
            "spec": {"taints": taints},
            "status": {"capacity": _ROOM, "allocatable": _ROOM},
        }
