"""The driver of dynamic resource allocation that the suites in `dra` expect: eight GPUs of 80 GiB on each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusters.api_objects import DEVICE_CLASSES, NAMESPACES, NODES, RESOURCE_SLICES, JsonObject, Kind
from clusters.client import ClusterClient
from tests.kueue_suite.plane import CONTROL_PLANE

_CLASSES: Final = DEVICE_CLASSES[0]
_SLICES: Final = RESOURCE_SLICES[0]
_NAME: Final = "gpu.example.com"
_NAMESPACE: Final = "dra-example-driver"
_PROGRAM: Final = f"{_NAMESPACE}-kubeletplugin"
_DAEMON_SETS: Final = Kind("apps/v1", "DaemonSet", "daemonsets")
_GPUS_PER_NODE: Final = 8
_MEMORY_GIB: Final = 80
_COMPUTE: Final = 100


@dataclass(frozen=True, slots=True)
class DeviceDriver:
    """Publishes devices, and nothing else: the scheduler allocates claims, and kwok starts pods without preparing any.

    `partitions` of each GPU share the GPU's counters with the device that is the whole GPU. `is_shared`: each device
    can be allocated to several claims, a part of its capacity to each.
    """

    partitions: int = 0
    is_shared: bool = False

    def install(self, client: ClusterClient) -> None:
        """The driver's DeviceClass, its ResourceSlices of each worker, and its DaemonSet."""
        client.create(_CLASSES, _named(_CLASSES, _NAME, {"selectors": [{"cel": {"expression": _SELECTOR}}]}))
        for node in client.list(NODES).items:
            if CONTROL_PLANE not in node["metadata"]["labels"]:
                for each in self._slices(node["metadata"]["name"]):
                    client.create(_SLICES, each)
        client.create(NAMESPACES, _named(NAMESPACES, _NAMESPACE))
        client.create(_DAEMON_SETS, _daemon_set())

    def _slices(self, node: str) -> Iterator[JsonObject]:
        """Counters and the devices that consume them are in slices of their own."""
        contents: list[dict[str, Any]] = [{"devices": [*self._devices()]}]
        if self.partitions:
            counters = [{"name": _counters(gpu), "counters": _amounts()} for gpu in range(_GPUS_PER_NODE)]
            contents.append({"sharedCounters": counters})
        pool = {"name": node, "generation": 1, "resourceSliceCount": len(contents)}
        for number, content in enumerate(contents):
            spec = {"driver": _NAME, "nodeName": node, "pool": pool, **content}
            yield _named(_SLICES, f"{node}-{number}", spec)

    def _devices(self) -> Iterator[JsonObject]:
        for gpu in range(_GPUS_PER_NODE):
            if not self.partitions:
                yield self._device(f"gpu-{gpu}", gpu)
                continue
            for part in range(self.partitions):
                attributes = {"partition": {"int": part}, "partitionable": {"bool": True}}
                yield self._device(f"gpu-{gpu}-partition-{part}", gpu, self.partitions, attributes)
            yield self._device(f"gpu-{gpu}-full", gpu, 1, {"full": {"bool": True}, "partitionable": {"bool": True}})

    def _device(self, name: str, gpu: int, parts: int = 1, attributes: Mapping[str, Any] | None = None) -> JsonObject:
        found: dict[str, Any] = {
            "name": name,
            "attributes": {
                "index": {"int": gpu}, "uuid": {"string": name}, "model": {"string": "LATEST-GPU-MODEL"},
                "driverVersion": {"version": "1.0.0"}, **(attributes or {}),
            },
            "capacity": {dimension: self._capacity(**value) for dimension, value in _amounts(parts).items()},
        }  # fmt: skip
        if self.is_shared:
            found["allowMultipleAllocations"] = True
        if self.partitions:
            found["consumesCounters"] = [{"counterSet": _counters(gpu), "counters": _amounts(parts)}]
        return found

    def _capacity(self, value: str) -> JsonObject:
        """All of a device unless a claim requests less, in whole steps."""
        if not self.is_shared:
            return {"value": value}
        step = "1Gi" if value.endswith("Gi") else "1"
        return {
            "value": value,
            "requestPolicy": {"default": value, "validRange": {"min": step, "step": step, "max": value}},
        }


_SELECTOR: Final = f"device.driver == '{_NAME}'"


def _counters(gpu: int) -> str:
    return f"gpu-{gpu}-counters"


def _amounts(parts: int = 1) -> dict[str, dict[str, str]]:
    return {"memory": {"value": f"{_MEMORY_GIB // parts}Gi"}, "compute": {"value": str(_COMPUTE // parts)}}


def _named(kind: Kind, name: str, spec: Mapping[str, Any] | None = None) -> JsonObject:
    found: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
    return found if spec is None else {**found, "spec": spec}


def _daemon_set() -> JsonObject:
    """Available as soon as kwok runs its pods, which is all that the suites wait for."""
    labels = {"app": _PROGRAM}
    containers: Sequence[JsonObject] = [{"name": "plugin", "image": "dra-example-driver"}]
    return {
        "apiVersion": _DAEMON_SETS.api_version,
        "kind": _DAEMON_SETS.kind,
        "metadata": {"name": _PROGRAM, "namespace": _NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
