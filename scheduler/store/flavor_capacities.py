"""The quotas of each flavor and the capacity of its nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from accounts.models import Cluster
from gpus.manifests import configured_vendors
from gpus.models import Node as NodeRow
from gpus.vendors import VENDORS
from queues.kinds import KINDS
from queues.models import ClusterQueue, Cohort, FlavorQuota, ResourceFlavor
from scheduler.store.configuration import read_configuration
from scheduler.store.node_rows import read_nodes_of
from scheduling.devices.capacity import FlavorCapacity, flavor_capacity
from scheduling.model.node import Node


def capacities(cluster: Cluster, flavors: Iterable[ResourceFlavor]) -> dict[str, list[FlavorCapacity]]:
    """Flavor -> its resources; empty while no node is known."""
    return {name: found for (_, name), found in capacities_of([cluster], flavors).items()}


def capacities_of(
    clusters: Sequence[Cluster], flavors: Iterable[ResourceFlavor]
) -> dict[tuple[int, str], list[FlavorCapacity]]:
    """Return (cluster, flavor) -> its resources. Flavors of clusters whose nodes are unknown are left out. Clusters are
    given by their keys; the number of queries does not depend on the number of clusters."""
    nodes: dict[int, list[Node]] = defaultdict(list)
    for row, node in read_nodes_of([cluster.pk for cluster in clusters]):
        nodes[row.cluster_id].append(_with_others(row, node))
    if not nodes:
        return {}
    known = {cluster.pk: cluster for cluster in clusters if cluster.pk in nodes}
    vendors = {
        pk: configured_vendors(cluster.device_plugin_configuration.get("settings") or {}, VENDORS)
        for pk, cluster in known.items()
    }
    rules = {pk: read_configuration(cluster.configuration).transformations for pk, cluster in known.items()}
    promised = _promised(list(known))
    kind = KINDS["ResourceFlavor"]
    return {
        (pk, row.name): flavor_capacity(kind.core_value(row), nodes[pk], promised[pk, row.name], vendors[pk], rules[pk])
        for row in flavors
        if (pk := row.cluster_id) in known
    }


def _promised(cluster_ids: Sequence[int]) -> dict[tuple[int, str], dict[str, int]]:
    """(cluster, flavor) -> resource -> the sum of all quotas."""
    queues, cohorts = "resource_group__cluster_queue__cluster", "resource_group__cohort__cluster"
    quotas = FlavorQuota.objects.filter(Q(**{f"{queues}__in": cluster_ids}) | Q(**{f"{cohorts}__in": cluster_ids}))
    sums = quotas.order_by().values_list(Coalesce(queues, cohorts), "flavor", "resource")
    found: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    for cluster, flavor, resource, total in sums.annotate(total=Sum("nominal_quota")):
        found[cluster, flavor][resource] = int(total)
    return found


def followers_of(clusters: Sequence[Cluster]) -> dict[tuple[int, str, str], list[dict[str, str]]]:
    """Return (cluster, flavor, resource) -> the objects whose quota of it follows the nodes, with the rule."""
    found: dict[tuple[int, str, str], list[dict[str, str]]] = {}
    for model in (Cohort, ClusterQueue):
        rows = model.objects.filter(cluster__in=clusters).exclude(node_quotas=[]).order_by("name")
        for cluster, name, stated in rows.values_list("cluster_id", "name", "node_quotas"):
            for cell in stated:
                entry = {"kind": model.__name__, "name": name, "share": cell["share"], "headroom": cell["headroom"]}
                found.setdefault((cluster, cell["flavor"], cell["resource"]), []).append(entry)
    return found


def _with_others(row: NodeRow, node: Node) -> Node:
    """Return the node with only the requests of unmanaged pods. Pods of our workloads that another scheduler placed
    hold quota already."""
    ours = row.unplaced_usage
    if not ours:
        return node
    return replace(node, foreign_usage={name: used - ours.get(name, 0) for name, used in node.foreign_usage.items()})
