"""An imitation of HAMi's device plugin: what happens between a pod's binding and the start of its containers.

It trusts the pod's annotations for which devices and how much of them (never another statement of the scheduler),
finishes HAMi's handshake, and releases the node's lock. It reads the wire format by itself, so that a mistake in what
we write shows here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from simulation.api.objects import JsonObject, annotations_of, name_of, namespace_of, timestamp
from simulation.api.pods import node_of
from simulation.api.registry import Writer
from simulation.api.resources import BY_PLURAL
from simulation.environment import Environment

VGPU_NODE = "hami.io/vgpu-node"
BIND_PHASE = "hami.io/bind-phase"
BIND_TIME = "hami.io/bind-time"
MUTEX_LOCK = "hami.io/mutex.lock"
CAMBRICON_LOCK = "cambricon.com/dsmlu.lock"
CAMBRICON_PROFILE = "CAMBRICON_DSMLU_PROFILE"
TO_ALLOCATE_SUFFIX = "devices-to-allocate"
NVIDIA_COUNT = "nvidia.com/gpu"
NVIDIA_REGISTER = "hami.io/node-nvidia-register"
NVIDIA_TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
HANDSHAKE_PREFIX = "hami.io/node-handshake"

_MANAGER = "hami-device-plugin"


class AllocationFailed(Exception):
    """The device plugin's Allocate answers with an error: the kubelet fails the pod."""


class DevicePlugin:
    """Allocates the devices in a pod's annotations."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def needs_devices(self, pod: JsonObject) -> bool:
        """Return whether Allocate is called for the pod: it requests devices, or a scheduler has promised it some."""
        return any(_counts(pod)) or VGPU_NODE in annotations_of(pod)

    def allocate(self, pod: JsonObject) -> None:
        """Consume the work list, set the phase to success, and release the lock; or fail with AllocationFailed."""
        try:
            remaining = self._consumed(pod)
        except AllocationFailed:
            self._annotate(pod, {BIND_PHASE: "failed"})
            self._release(pod)
            raise
        self._annotate(pod, {**remaining, BIND_PHASE: "success"})
        self._release(pod)

    def answer_handshake(self, node: JsonObject) -> None:
        """Replace each scheduler's "Requesting_..." on a node with "Reported ..."."""
        asked = {
            key: f"Reported {timestamp(self._environment.now())}"
            for key, value in annotations_of(node).items()
            if key.startswith(HANDSHAKE_PREFIX) and value.startswith("Requesting")
        }
        if asked:
            _patch_annotations(self._environment, "nodes", node, asked)

    def set_device_health(self, uuid: str, healthy: bool) -> bool:
        """Publish a device's health in its node's register annotation; False if no node has that device."""
        for node in self._environment.store.items("nodes"):
            text = annotations_of(node).get(NVIDIA_REGISTER)
            devices = orjson.loads(text) if text else []
            found = [device for device in devices if device["id"] == uuid]
            if not found:
                continue
            for device in found:
                device.pop("health", None)
                if healthy:
                    device["health"] = True
            _patch_annotations(self._environment, "nodes", node, {NVIDIA_REGISTER: orjson.dumps(devices).decode()})
            return True
        return False

    def _consumed(self, pod: JsonObject) -> dict[str, str]:
        annotations = annotations_of(pod)
        if annotations.get(VGPU_NODE) != node_of(pod) or BIND_TIME not in annotations:
            raise AllocationFailed(f"no pod of node {node_of(pod)} waits for an allocation")
        if annotations.get(BIND_PHASE) not in ("allocating", "success"):
            raise AllocationFailed(f"bind phase is {annotations.get(BIND_PHASE)!r}, not allocating")
        lists = _work_lists(pod)
        self._check_counts(pod, lists.get(NVIDIA_TO_ALLOCATE, ""))
        for text in lists.values():
            self._check_devices(pod, text)
        return {key: ";" * text.count(";") for key, text in lists.items()}

    def _check_counts(self, pod: JsonObject, text: str) -> None:
        wanted = [count for count in _counts(pod) if count]
        given = [len(entry) for entry in device_entries(text) if entry]
        if wanted != given:
            why = f"the kubelet asks for {wanted}, the annotation has {given}"
            raise AllocationFailed(f"device number not matched: {why}")

    def _check_devices(self, pod: JsonObject, text: str) -> None:
        node = self._environment.store.get("nodes", "", node_of(pod)) or {"metadata": {}}
        known = {uuid for value in annotations_of(node).values() if value.startswith("[{") for uuid in _uuids(value)}
        for entry in device_entries(text):
            for uuid, _vendor, _memory, _cores in entry:
                if known and uuid not in known:
                    raise AllocationFailed(f"unknown device {uuid}")

    def _annotate(self, pod: JsonObject, annotations: dict[str, str]) -> None:
        _patch_annotations(self._environment, "pods", pod, annotations)

    def _release(self, pod: JsonObject) -> None:
        node = self._environment.store.get("nodes", "", node_of(pod))
        if node is None:
            return
        lock = annotations_of(node).get(MUTEX_LOCK, "").split(",")
        if lock[1:] == [namespace_of(pod), name_of(pod)]:
            _patch_annotations(self._environment, "nodes", node, {MUTEX_LOCK: None})
        if CAMBRICON_PROFILE in annotations_of(pod) and CAMBRICON_LOCK in annotations_of(node):
            _patch_annotations(self._environment, "nodes", node, {CAMBRICON_LOCK: None})


def _patch_annotations(
    environment: Environment, plural: str, item: JsonObject, annotations: Mapping[str, str | None]
) -> None:
    def edit(live: JsonObject) -> JsonObject:
        kept = {**annotations_of(live), **annotations}
        metadata = {**live["metadata"], "annotations": {key: value for key, value in kept.items() if value is not None}}
        return {**live, "metadata": metadata}

    environment.registry.change(BY_PLURAL[plural], namespace_of(item), name_of(item), edit, Writer(_MANAGER))


def _counts(pod: JsonObject) -> Iterable[int]:
    """Yield the number of NVIDIA devices that each container requests from the kubelet, init containers first."""
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        limits = (container.get("resources") or {}).get("limits") or {}
        yield int(limits.get(NVIDIA_COUNT, 0))


def _work_lists(pod: JsonObject) -> dict[str, str]:
    return {key: value for key, value in annotations_of(pod).items() if key.endswith(TO_ALLOCATE_SUFFIX)}


def device_entries(text: str) -> list[list[tuple[str, str, int, int]]]:
    """Parse "UUID,VENDOR,MIB,CORES:...;" per container into lists of (uuid, vendor word, MiB, percent). Raises
    AllocationFailed for unreadable text."""
    containers = []
    for container in text.split(";")[:-1]:
        devices = []
        for device in container.split(":"):
            if not device:
                continue
            parts = device.split(",")
            if len(parts) < 4 or not (parts[2].isdigit() and parts[3].isdigit()):
                raise AllocationFailed(f"cannot read {device!r} in the device annotation")
            devices.append((parts[0], parts[1], int(parts[2]), int(parts[3])))
        containers.append(devices)
    return containers


def _uuids(register: str) -> list[str]:
    try:
        return [str(device["id"]) for device in orjson.loads(register)]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return []
