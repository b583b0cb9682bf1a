"""All writes of gpus: nodes, devices, and slices that others hold, as the cluster reports them."""

from gpus.services.foreign_allocations import (
    ExternalPod,
    forget_external,
    keep_external,
    record_external,
)
from gpus.services.node_manifests import apply_nodes, delete_nodes
from gpus.services.node_status import ObservedNode, observed_node
from gpus.services.nodes import forget_node, sync_foreign_usage, sync_node

__all__ = [
    "ExternalPod",
    "ObservedNode",
    "apply_nodes",
    "delete_nodes",
    "forget_external",
    "forget_node",
    "keep_external",
    "observed_node",
    "record_external",
    "sync_foreign_usage",
    "sync_node",
]
