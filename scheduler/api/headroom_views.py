"""The headroom of a user in LocalQueues: the amounts that the user may still use, before a workload is submitted."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.names_filter import names_in
from accounts.api.scope import ClusterView
from accounts.services.access import groups_of
from queues.models import LocalQueue
from scheduler.api.queue_status import Numbers, local_queue_reason, read_numbers
from scheduler.store.kept_world import kept_world
from scheduling.state.known_objects import Headroom, LevelHeadroom
from scheduling.world import World

MAX_QUEUES: Final = 1_000


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
    active = serializers.BooleanField(
        help_text="False: the queue starts no workload, even if quota and devices are free."
    )
    message = serializers.CharField(allow_blank=True, help_text="Why the queue starts no workload.")
    workloads = serializers.IntegerField(
        allow_null=True, help_text="The number of workloads that the limits still allow. Null: not limited."
    )
    resources = ResourceHeadroomSerializer(many=True)


class LevelResourceSerializer(serializers.Serializer[Any]):
    """The amount of a resource that one level leaves, in base units."""

    resource = serializers.CharField()
    quota_free = serializers.IntegerField(help_text="The free quota of all flavors, with what the level may borrow.")
    user_free = serializers.IntegerField(allow_null=True, help_text="Left by the limits of this level. Null: none.")


class LevelHeadroomSerializer(serializers.Serializer[Any]):
    """The amounts that a ClusterQueue, or a cohort above it, leaves to the requesting user."""

    level = serializers.CharField(help_text="`ClusterQueue NAME` or `Cohort NAME`.")
    workloads = serializers.IntegerField(allow_null=True, help_text="By the limits of this level. Null: not limited.")
    resources = LevelResourceSerializer(many=True)


class QueueHeadroomSerializer(HeadroomSerializer):
    """The headroom of the requesting user in one of several LocalQueues, with that of each level."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    levels = LevelHeadroomSerializer(many=True)


class HeadroomsSerializer(serializers.Serializer[Any]):
    """LocalQueues by namespace and name."""

    results = QueueHeadroomSerializer(many=True)
    truncated = serializers.BooleanField(help_text=f"Whether there are more than {MAX_QUEUES:,} LocalQueues.")


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
        shown = _Shown(self.access.username, groups_of(self.access.username), read_numbers(self.cluster))
        with kept_world(self.cluster, time.time()) as world:
            return Response(shown.queue(found, world))


class HeadroomsView(ClusterView):
    """`headroom/`."""

    serializer_class = HeadroomsSerializer

    @extend_schema(
        parameters=[OpenApiParameter("namespace", str, description="Only these namespaces, separated by commas.")],
        responses=HeadroomsSerializer,
    )
    def get(self, request: Request) -> Response:
        """List the LocalQueues to which the requesting user may submit, with their headroom.

        The headroom is the amounts that the user may still use there, and that each level leaves: the ClusterQueue and
        the cohorts above it.
        """
        queues = LocalQueue.objects.filter(cluster=self.cluster).order_by("namespace", "name")
        if (visible := self.access.visible_namespaces()) is not None:
            queues = queues.filter(namespace__in=visible)
        if wanted := request.query_params.get("namespace"):
            queues = queues.filter(namespace__in=names_in(wanted))
        mine = (queue for queue in queues if self.access.may("submit", "Workload", queue.namespace))
        found = list(islice(mine, MAX_QUEUES + 1))
        shown = _Shown(self.access.username, groups_of(self.access.username), read_numbers(self.cluster))
        with kept_world(self.cluster, time.time()) as world:
            results = [shown.with_levels(queue, world) for queue in found[:MAX_QUEUES]]
        return Response({"results": results, "truncated": len(found) > MAX_QUEUES})


@dataclass(frozen=True, slots=True)
class _Shown:
    """The answers for a user, by the numbers of the moment."""

    user: str
    groups: Sequence[str]
    numbers: Numbers

    def queue(self, queue: LocalQueue, world: World) -> dict[str, Any]:
        """Return the headroom in a LocalQueue."""
        name, namespace = queue.cluster_queue_name, queue.namespace
        active, _, message = local_queue_reason(queue, self.numbers)
        answer = {"cluster_queue": name, "active": active, "message": "" if active else message}
        if world.objects.cluster_queue(name) is None:
            return answer | {"workloads": None, "resources": []}
        if active and not world.objects.selects_namespace(name, namespace):
            message = f"ClusterQueue {name} does not select namespace {namespace}"
            answer |= {"active": False, "message": message}
        headroom = world.objects.headroom(name, self.user, self.groups)
        return answer | {"workloads": headroom.workloads, "resources": list(_resources(headroom))}

    def with_levels(self, queue: LocalQueue, world: World) -> dict[str, Any]:
        """Return the same, with the headroom of each level."""
        answer = {"namespace": queue.namespace, "name": queue.name, **self.queue(queue, world)}
        if world.objects.cluster_queue(queue.cluster_queue_name) is None:
            return answer | {"levels": []}
        levels = world.objects.level_headrooms(queue.cluster_queue_name, self.user, self.groups)
        return answer | {"levels": [_level(level) for level in levels]}


def _level(level: LevelHeadroom) -> dict[str, Any]:
    resources = [
        {
            "resource": resource,
            "quota_free": sum(free for key, free in level.quota.items() if key.resource == resource),
            "user_free": level.user.get(resource),
        }
        for resource in sorted({key.resource for key in level.quota})
    ]
    return {"level": level.name, "workloads": level.workloads, "resources": resources}


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
