"""ResourceFlavors over REST, with what their nodes have beside what quota promises of them."""

from typing import Any

from django.db.models import Sum
from rest_framework import serializers

from accounts.models import Cluster
from gpus.manifests import configured_vendors
from gpus.vendors import VENDORS
from queues.api import configuration_serializers as shapes
from queues.api.configuration_views import EditView, KindListView, KindView
from queues.api.serializers import Shape
from queues.kinds import KINDS
from queues.models import FlavorQuota, ResourceFlavor
from scheduler.store.configuration import read_configuration
from scheduler.store.nodes import read_nodes
from scheduling.devices.capacity import FlavorCapacity, flavor_capacity


class FlavorCapacitySerializer(Shape):
    """A resource of a flavor, in base units."""

    resource = serializers.CharField(read_only=True)
    promised = serializers.IntegerField(
        read_only=True, help_text="The sum of the nominal quotas of all ClusterQueues and cohorts."
    )
    allocatable = serializers.IntegerField(read_only=True, help_text="What the flavor's nodes have.")
    used_by_others = serializers.IntegerField(read_only=True, help_text="What pods of others ask for there.")
    exceeded = serializers.BooleanField(read_only=True, help_text="Whether more is promised than there is.")


class ResourceFlavorSerializer(shapes.serializer_of("ResourceFlavor")):  # type: ignore[misc]  # made of the kind
    """A ResourceFlavor."""

    capacity = FlavorCapacitySerializer(
        many=True, read_only=True, help_text="Empty while no node of the cluster is known."
    )


def capacities(cluster: Cluster, flavors: list[ResourceFlavor]) -> dict[str, list[FlavorCapacity]]:
    """Flavor -> its resources; empty while no node is known, as then nothing can be said."""
    nodes = [node for _, node in read_nodes(cluster.pk)]
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


class _ResourceFlavors(KindView):
    kind = "ResourceFlavor"
    queryset = ResourceFlavor.objects.all()
    serializer_class = ResourceFlavorSerializer

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """With what their nodes have."""
        found = capacities(self.cluster, rows)
        return [
            KINDS[self.kind].to_json(row) | {"capacity": [_json(each) for each in found.get(row.name, ())]}
            for row in rows
        ]


class ResourceFlavorListView(_ResourceFlavors, KindListView):
    """`resource-flavors/`."""


class ResourceFlavorView(_ResourceFlavors, EditView):
    """`resource-flavors/{name}/`."""


def _json(capacity: FlavorCapacity) -> dict[str, Any]:
    return {
        "resource": capacity.resource,
        "promised": capacity.promised,
        "allocatable": capacity.allocatable,
        "used_by_others": capacity.used_by_others,
        "exceeded": capacity.is_exceeded,
    }
