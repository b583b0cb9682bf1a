"""What quota promises of each flavor's nodes, and what these have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.db.models import Sum

from accounts.models import Cluster
from gpus.manifests import configured_vendors
from gpus.models import Node as NodeRow
from gpus.vendors import VENDORS
from queues.kinds import KINDS
from queues.models import ClusterQueue, Cohort, FlavorQuota, ResourceFlavor
from scheduler.store.configuration import read_configuration
from scheduler.store.nodes import read_nodes
from scheduling.devices.capacity import FlavorCapacity, flavor_capacity
from scheduling.model.node import Node


def capacities(cluster: Cluster, flavors: Iterable[ResourceFlavor]) -> dict[str, list[FlavorCapacity]]:
    """Flavor -> its resources; empty while no node is known, as then nothing can be said."""
    nodes = [_with_others(row, node) for row, node in read_nodes(cluster.pk)]
    if not nodes:
        return {}
    vendors = configured_vendors(cluster.device_plugin_configuration.get("settings") or {}, VENDORS)
    promised: dict[str, dict[str, int]] = {}
    quotas = FlavorQuota.objects.filter(resource_group__cluster_queue__cluster=cluster) | FlavorQuota.objects.filter(
        resource_group__cohort__cluster=cluster
    )
    sums = quotas.order_by().values_list("flavor", "resource").annotate(total=Sum("nominal_quota"))
    for flavor, resource, total in sums:
        promised.setdefault(flavor, {})[resource] = int(total)
    kind = KINDS["ResourceFlavor"]
    rules = read_configuration(cluster.configuration).transformations
    return {
        row.name: flavor_capacity(kind.core_value(row), nodes, promised.get(row.name, {}), vendors, rules)
        for row in flavors
    }


def followers(cluster: Cluster) -> dict[tuple[str, str], list[dict[str, str]]]:
    """(flavor, resource) -> whose quota of it follows the nodes, and how."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for model in (Cohort, ClusterQueue):
        rows = model.objects.filter(cluster=cluster).exclude(node_quotas=[]).order_by("name")
        for name, stated in rows.values_list("name", "node_quotas"):
            for cell in stated:
                entry = {"kind": model.__name__, "name": name, "share": cell["share"], "headroom": cell["headroom"]}
                found.setdefault((cell["flavor"], cell["resource"]), []).append(entry)
    return found


def _with_others(row: NodeRow, node: Node) -> Node:
    """The node with the requests of others alone. Pods of our workloads that others placed hold quota already."""
    ours = row.unplaced_usage
    if not ours:
        return node
    return replace(node, foreign_usage={name: used - ours.get(name, 0) for name, used in node.foreign_usage.items()})
