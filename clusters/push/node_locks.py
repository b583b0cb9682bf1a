"""Node annotations that keep other pods off a node between a pod's binding and the assignment of its devices.

HAMi's plugins, and the vendors' own, use them to find the pod for which a container's devices are meant. Each
vendor's row names the annotation and its expiry, or says that its plugin needs none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from clusters.api_errors import ClusterError
from clusters.api_objects import NODES, PODS, JsonObject
from clusters.client import ClusterClient
from gpus.annotations import AnnotationError, NodeLock
from scheduling.model.placement import PodPlacement
from scheduling.model.vendor import DeviceVendor, LockRule

_log = logging.getLogger(__name__)


def locks_of(placement: PodPlacement, vendors: Iterable[DeviceVendor]) -> list[LockRule]:
    """Return the locks that a pod's devices need, by annotation. As in HAMi, devices of init containers need no lock of
    their own."""
    held = {part.vendor for container in placement.containers[placement.init_container_count :] for part in container}
    rules = {vendor.lock.annotation: vendor.lock for vendor in vendors if vendor.common_word in held and vendor.lock}
    return [rules[annotation] for annotation in sorted(rules)]


class NodeLocks:
    """Takes and releases the locks of nodes during one pass over the pods."""

    def __init__(self, client: ClusterClient, clock: Callable[[], float]) -> None:
        """`clock` returns seconds since the epoch."""
        self._client = client
        self._clock = clock
        self._busy: set[tuple[str, str]] = set()
        self._written: dict[tuple[str, str], str] = {}

    def take(self, node: str, pod: JsonObject, rules: Iterable[LockRule]) -> bool:
        """Take all these locks for a pod, or none; False while another pod waits for its devices."""
        taken: list[LockRule] = []
        for rule in rules:
            if not self._take(node, pod, rule):
                self.give_back(node, taken)
                return False
            taken.append(rule)
        return True

    def give_back(self, node: str, rules: Iterable[LockRule]) -> None:
        """Release locks that led to no binding, unless another holder has them by now."""
        for rule in rules:
            self._give_back(node, rule)

    def _take(self, name: str, pod: JsonObject, rule: LockRule) -> bool:
        key = (name, rule.annotation)
        if key in self._busy:
            return False
        node = self._client.get(NODES, "", name)
        if node is None:
            raise ClusterError(404, "NotFound", f'its node "{name}" no longer exists')
        metadata = pod["metadata"]
        text = (node["metadata"].get("annotations") or {}).get(rule.annotation)
        if text and not self._may_take(text, metadata, rule):
            self._busy.add(key)
            return False
        holder = (metadata["namespace"], metadata["name"]) if rule.names_holder else ()
        lock = NodeLock(self._clock(), *holder).encode()
        try:
            self._annotate(node, rule.annotation, lock)
        except ClusterError as error:
            if error.conflict:
                return False
            raise
        self._busy.add(key)
        self._written[key] = lock
        return True

    def _may_take(self, text: str, metadata: Mapping[str, Any], rule: LockRule) -> bool:
        try:
            lock = NodeLock.decode(text)
        except AnnotationError as error:
            _log.warning("A node's lock is unreadable and must be removed by hand: %s", error)
            return False
        return lock.free_for(
            metadata["namespace"],
            metadata["name"],
            self._clock(),
            holder_exists=self._waits_for_devices(lock),
            timeout_seconds=rule.timeout_seconds,
        )

    def _waits_for_devices(self, lock: NodeLock) -> bool:
        """Return whether the lock's holder may still get devices. Devices of a pod that its kubelet has begun to start
        are assigned already, even if the vendor's plugin has not released the lock."""
        if not lock.pod:
            return True
        pod = self._client.get(PODS, lock.namespace, lock.pod)
        status = (pod.get("status") or {}) if pod is not None else None
        return status is not None and status.get("phase", "Pending") == "Pending" and not status.get("startTime")

    def _give_back(self, name: str, rule: LockRule) -> None:
        written = self._written.pop((name, rule.annotation), None)
        node = self._client.get(NODES, "", name) if written else None
        if node is None or (node["metadata"].get("annotations") or {}).get(rule.annotation) != written:
            return
        try:
            self._annotate(node, rule.annotation, None)
        except ClusterError as error:
            _log.warning("The lock of node %s stays until it expires: %s", name, error)

    def _annotate(self, node: JsonObject, annotation: str, value: str | None) -> None:
        version = node["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, "annotations": {annotation: value}}}
        self._client.patch(NODES, "", node["metadata"]["name"], patch)
