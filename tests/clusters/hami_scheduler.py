"""A stand-in for HAMi's webhook and scheduler: Filter and Bind, on the wire formats alone.

Filter drops the pod's former reservation, reads the nodes' register annotations and what the other pods' annotations
hold, decides by HAMi's rules and writes its own annotations; Bind takes the node's lock, sets the phase and binds.
"""

from __future__ import annotations

from typing import Any

from clusters.api_objects import NODES, PODS, JsonObject
from clusters.client import ClusterClient
from gpus.annotations import count_scores, found_allocation, node_devices, pod_annotations
from gpus.annotations.lock import NodeLock
from gpus.services import observed_node
from gpus.vendors import VENDORS
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.fleet import Fleet
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PodSetToPlace

NAME = "hami-scheduler"
LOCK = "hami.io/mutex.lock"
HELD = "hami.io/vgpu-devices-allocated"


def given_to_hami(manifest: JsonObject) -> JsonObject:
    """A job whose pods HAMi's webhook has given to its scheduler."""
    manifest["spec"]["template"]["spec"]["schedulerName"] = NAME
    return manifest


class HamiScheduler:
    """One pass of HAMi's scheduler over the pods that are its own and wait at no gate."""

    def __init__(self, client: ClusterClient, *, device_policy: str) -> None:
        self._client = client
        self._device_policy = device_policy

    def run(self, now: float) -> dict[str, str]:
        """Pod -> the devices that Filter chose, for each pod that was bound."""
        bound: dict[str, str] = {}
        for pod in self._client.list(PODS).items:
            spec = pod["spec"]
            if spec.get("schedulerName") == NAME and not spec.get("schedulingGates") and not spec.get("nodeName"):
                bound[pod["metadata"]["name"]] = self._schedule(pod, now)
        return bound

    def _schedule(self, pod: JsonObject, now: float) -> str:
        fleet = self._fleet(pod)
        asked = pod_device_request(pod, VENDORS)
        selector = pod["spec"].get("nodeSelector") or {}
        found = fleet.place([PodSetToPlace("main", 1, devices=asked, node_selector=selector, namespace="team")])
        assert isinstance(found, Placement), found
        placed, metadata = found.pods[0], pod["metadata"]
        annotations: dict[str, Any] = pod_annotations(placed, VENDORS, now, manifest=pod)
        self._client.patch(PODS, metadata["namespace"], metadata["name"], {"metadata": {"annotations": annotations}})
        node = self._client.get(NODES, "", placed.node)
        assert node is not None
        assert LOCK not in node["metadata"]["annotations"], "one pod of a node at a time"
        lock = NodeLock(now, metadata["namespace"], metadata["name"]).encode()
        self._client.patch(NODES, "", placed.node, {"metadata": {"annotations": {LOCK: lock}}})
        phase = {"hami.io/bind-phase": "allocating", "hami.io/bind-time": str(int(now))}
        self._client.patch(PODS, metadata["namespace"], metadata["name"], {"metadata": {"annotations": phase}})
        self._client.bind(metadata["namespace"], metadata["name"], metadata["uid"], placed.node)
        return str(annotations[HELD])

    def _fleet(self, pod: JsonObject) -> Fleet:
        """The usage that HAMi sees: that of every pod with readable annotations, apart from the pod itself."""
        fleet = Fleet(VENDORS, node_policy="binpack", device_policy=self._device_policy, as_hami=True)
        others = [each for each in self._client.list(PODS).items if each["metadata"]["uid"] != pod["metadata"]["uid"]]
        found = [held for each in others if (held := found_allocation(each, VENDORS)) is not None]
        for manifest in self._client.list(NODES).items:
            node = observed_node(manifest)
            devices = node_devices(node.name, node.annotations, node.capacity, {}, VENDORS, 0, node.labels)
            slices = tuple(part for held in found if held.node == node.name for part in held.slices)
            fleet.set_node(
                Node(
                    node.name,
                    labels=node.labels,
                    devices=devices.devices,
                    found=slices,
                    count_scores=count_scores(node.annotations, VENDORS),
                )
            )
        return fleet
