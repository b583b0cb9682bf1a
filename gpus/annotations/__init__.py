"""Encodes and decodes HAMi's annotations on nodes and pods. Pure functions.

* node, inventory: the devices that a node registers
* device_assignment: the annotations that kueueweb writes on a pod with devices
* vendor_extras: the annotations of single vendors beyond the common ones
* allocation: the format of these annotations, written and read
* owned: the annotations that users must not write
* lock: the node's lock and the device plugin's handshake
"""

from gpus.annotations.allocation import (
    NODE,
    TIMES,
    AllocatedDevice,
    FoundAllocation,
    MigAllocation,
    align_containers,
    decode_containers,
    decode_mig_allocations,
    encode_containers,
    encode_mig_allocations,
    found_allocation,
)
from gpus.annotations.device_assignment import pinned_devices, pod_annotations, webhook_annotations
from gpus.annotations.errors import AnnotationError
from gpus.annotations.inventory import (
    decode_cordoned,
    decode_devices,
    decode_pair_scores,
)
from gpus.annotations.lock import MUTEX_LOCK, NodeLock, plugin_answers
from gpus.annotations.node import NodeDevices, count_scores, node_devices
from gpus.annotations.owned import owned_annotations

__all__ = [
    "MUTEX_LOCK",
    "NODE",
    "TIMES",
    "AllocatedDevice",
    "AnnotationError",
    "FoundAllocation",
    "MigAllocation",
    "NodeDevices",
    "NodeLock",
    "align_containers",
    "count_scores",
    "decode_containers",
    "decode_cordoned",
    "decode_devices",
    "decode_mig_allocations",
    "decode_pair_scores",
    "encode_containers",
    "encode_mig_allocations",
    "found_allocation",
    "node_devices",
    "owned_annotations",
    "pinned_devices",
    "plugin_answers",
    "pod_annotations",
    "webhook_annotations",
]
