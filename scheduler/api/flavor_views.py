"""ResourceFlavors over REST, with the capacity of their nodes and the quotas in them."""

from typing import Any

from rest_framework import serializers

from queues.api import configuration_serializers as shapes
from queues.api.configuration_views import EditView, KindListView, KindView
from queues.api.serializers import Shape
from queues.models import ResourceFlavor
from scheduler.store.flavor_capacities import capacities_of, followers_of
from scheduling.devices.capacity import FlavorCapacity


class FollowerSerializer(Shape):
    """A ClusterQueue or cohort with a quota that follows the nodes."""

    kind = serializers.ChoiceField(["ClusterQueue", "Cohort"], read_only=True)
    name = serializers.CharField(read_only=True)
    share = serializers.CharField(read_only=True)
    headroom = serializers.CharField(read_only=True)


class FlavorCapacitySerializer(Shape):
    """A resource of a flavor, in base units."""

    resource = serializers.CharField(read_only=True)
    promised = serializers.IntegerField(
        read_only=True, help_text="The sum of the nominal quotas of all ClusterQueues and cohorts."
    )
    allocatable = serializers.IntegerField(read_only=True, help_text="The capacity of the flavor's nodes.")
    used_by_others = serializers.IntegerField(read_only=True, help_text="The requests of unmanaged pods on its nodes.")
    exceeded = serializers.BooleanField(read_only=True, help_text="Whether the quotas exceed the capacity.")
    followed_by = FollowerSerializer(
        many=True, read_only=True, help_text="The objects whose quota is computed from its capacity."
    )


class ResourceFlavorSerializer(shapes.serializer_of("ResourceFlavor")):  # type: ignore[misc]  # made of the kind
    """A ResourceFlavor."""

    capacity = FlavorCapacitySerializer(many=True, read_only=True, help_text="Empty while none of its nodes is known.")


class _ResourceFlavors(KindView):
    kind = "ResourceFlavor"
    queryset = ResourceFlavor.objects.all()
    serializer_class = ResourceFlavorSerializer

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Add the capacity of the flavors' nodes."""
        clusters = self.reach.clusters
        found, following = capacities_of(clusters, rows), followers_of(clusters)
        return [
            body
            | {
                "capacity": [
                    _json(each) | {"followed_by": following.get((row.cluster_id, row.name, each.resource), [])}
                    for each in found.get((row.cluster_id, row.name), ())
                ]
            }
            for row, body in zip(rows, super().render(rows), strict=True)
        ]


class ResourceFlavorListView(_ResourceFlavors, KindListView):
    """`resource-flavors/`."""

    spans_clusters = True


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
