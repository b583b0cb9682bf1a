"""Every write of gpus: what the cluster shows of nodes, cards and the slices that others hold."""

from gpus.services.foreign_allocations import FoundPod, decided_cards, forget_found, keep_found, record_found
from gpus.services.node_manifests import apply_nodes, delete_nodes
from gpus.services.node_status import ObservedNode, observed_node
from gpus.services.nodes import forget_node, sync_foreign_usage, sync_node

__all__ = [
    "FoundPod",
    "ObservedNode",
    "apply_nodes",
    "decided_cards",
    "delete_nodes",
    "forget_found",
    "forget_node",
    "keep_found",
    "observed_node",
    "record_found",
    "sync_foreign_usage",
    "sync_node",
]
