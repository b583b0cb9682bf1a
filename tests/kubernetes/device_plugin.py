"""In the place of HAMi's device plugin: it hands out what a pod's annotations say, and gives the node's lock back."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, Self

import orjson

from clusters.api_errors import ClusterError
from clusters.api_objects import NODES, PODS, JsonObject
from clusters.client import ClusterClient
from simulation.controllers.device_plugin import (
    BIND_PHASE,
    MUTEX_LOCK,
    NVIDIA_REGISTER,
    NVIDIA_TO_ALLOCATE,
    VGPU_NODE,
    device_entries,
)

_ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
_POLL_SECONDS: Final = 0.1


class DevicePlugin:
    """A thread that acts on pods between their binding and their start."""

    def __init__(self, admin: ClusterClient) -> None:
        self._admin = admin
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-plugin", daemon=True)
        self.faults: list[str] = []
        self.allocated: Counter[str] = Counter()
        """How many slices of each device were handed out so far."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stopped.wait(_POLL_SECONDS):
            for pod in self._admin.list(PODS, field_selector="status.phase=Pending").items:
                annotations = pod["metadata"].get("annotations", {})
                if pod["spec"].get("nodeName") and annotations.get(BIND_PHASE) == "allocating":
                    self._allocate(pod, annotations)

    def _allocate(self, pod: JsonObject, annotations: dict[str, str]) -> None:
        node = self._admin.get(NODES, "", pod["spec"]["nodeName"])
        assert node is not None
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        known = {device["id"] for device in orjson.loads(node["metadata"]["annotations"][NVIDIA_REGISTER])}
        devices = [entry[0] for container in device_entries(annotations[NVIDIA_TO_ALLOCATE]) for entry in container]
        if annotations.get(VGPU_NODE) != node["metadata"]["name"] or not known.issuperset(devices):
            self.faults.append(f"{name} on {node['metadata']['name']}: {annotations}")
        lock = node["metadata"]["annotations"].get(MUTEX_LOCK, "")
        if lock.split(",")[1:] != [namespace, name]:
            self.faults.append(f"{name} was bound while the node's lock was {lock!r}")
        self.allocated.update(devices)
        try:
            self._admin.patch(PODS, namespace, name, {"metadata": {"annotations": {BIND_PHASE: "success"}}})
        except ClusterError as error:
            if not error.not_found:  # its test deleted it meanwhile
                raise
        self._admin.patch(NODES, "", node["metadata"]["name"], {"metadata": {"annotations": {MUTEX_LOCK: None}}})


def slices_of(pod: JsonObject) -> list[tuple[str, str]]:
    """The node and device of each slice that a pod's annotations name."""
    text = pod["metadata"].get("annotations", {}).get(_ALLOCATED, "")
    node = pod["spec"].get("nodeName", "")
    return [(node, entry[0]) for container in device_entries(text) for entry in container]
