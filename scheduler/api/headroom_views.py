"""The headroom of a user in a LocalQueue: the amounts that the user may still use, before a workload is submitted."""

import time
from collections.abc import Iterator
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.services.access import groups_of
from queues.models import LocalQueue
from scheduler.api.queue_status import local_queue_reason, read_numbers
from scheduler.store.kept_world import kept_world
from scheduling.state.known_objects import Headroom


class FlavorHeadroomSerializer(serializers.Serializer[Any]):
    """The free quota of a resource in one flavor, in base units."""

    flavor = serializers.CharField()
    free = serializers.IntegerField()


class ResourceHeadroomSerializer(serializers.Serializer[Any]):
    """The amount of a resource that the user may still use; integers in base units (cpu in milli, memory in bytes)."""

    resource = serializers.CharField()
    free = serializers.IntegerField(help_text="The smaller one of `quota_free` and `user_free`.")
    quota_free = serializers.IntegerField(
        help_text="The free quota of all flavors together, with the quota that the ClusterQueue may borrow."
    )
    user_free = serializers.IntegerField(
        allow_null=True, help_text="Left by the limits of the user and of the group. Null: not limited."
    )
    flavors = FlavorHeadroomSerializer(many=True)


class HeadroomSerializer(serializers.Serializer[Any]):
    """The headroom of the requesting user in a LocalQueue."""

    cluster_queue = serializers.CharField()
    active = serializers.BooleanField(help_text="False: the queue starts no workload, whatever is free.")
    message = serializers.CharField(allow_blank=True, help_text="Why the queue starts no workload.")
    workloads = serializers.IntegerField(
        allow_null=True, help_text="The number of workloads that the limits still allow. Null: not limited."
    )
    resources = ResourceHeadroomSerializer(many=True)


class HeadroomView(ClusterView):
    """`local-queues/{namespace}/{name}/headroom/`."""

    serializer_class = HeadroomSerializer

    @extend_schema(responses=HeadroomSerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return what the requesting user may still use in the LocalQueue, by free quota and by limits of the user.

        Free devices and nodes are not considered, nor is quota that preemption would free.
        """
        found = LocalQueue.objects.filter(cluster=self.cluster, namespace=namespace, name=name).first()
        if found is None or not self.access.sees(namespace):
            raise self.missing("LocalQueue", namespace, name)
        active, _, message = local_queue_reason(found, read_numbers(self.cluster))
        answer = {"cluster_queue": found.cluster_queue_name, "active": active, "message": "" if active else message}
        mine = groups_of(self.access.username)
        with kept_world(self.cluster, time.time()) as world:
            if world.objects.cluster_queue(found.cluster_queue_name) is None:
                return Response(answer | {"workloads": None, "resources": []})
            if active and not world.objects.selects_namespace(found.cluster_queue_name, namespace):
                message = f"ClusterQueue {found.cluster_queue_name} does not select namespace {namespace}"
                answer |= {"active": False, "message": message}
            headroom = world.objects.headroom(found.cluster_queue_name, self.access.username, mine)
        return Response(answer | {"workloads": headroom.workloads, "resources": list(_resources(headroom))})


def _resources(headroom: Headroom) -> Iterator[dict[str, Any]]:
    for resource in sorted({key.resource for key in headroom.quota}):
        by_flavor = {key.flavor: free for key, free in headroom.quota.items() if key.resource == resource}
        quota, user = sum(by_flavor.values()), headroom.user.get(resource)
        yield {
            "resource": resource,
            "free": quota if user is None else min(quota, user),
            "quota_free": quota,
            "user_free": user,
            "flavors": [{"flavor": flavor, "free": free} for flavor, free in by_flavor.items()],
        }
