"""Every write of gpus: what the cluster shows of nodes, cards and the slices that others hold."""

from gpus.services.applied import apply_nodes, delete_nodes
from gpus.services.found import FoundPod, decided_cards, forget_found, keep_found, record_found
from gpus.services.nodes import forget_node, sync_foreign_usage, sync_node
from gpus.services.observed import ObservedNode, observed_node

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
