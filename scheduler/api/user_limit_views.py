"""The quota that users hold in a ClusterQueue, and the amounts that its limits by user allow."""

import time
from collections.abc import Iterator
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from queues.services.visibility import visibility_of
from scheduler.store.kept_world import kept_world
from scheduling.model.cohort import ANYONE
from scheduling.policies.headroom import NOTHING, QueueLevel, limit_of


class LimitedResourceSerializer(serializers.Serializer[Any]):
    """A limited resource; amounts are integers in base units (cpu in milli, memory in bytes)."""

    resource = serializers.CharField()
    held = serializers.IntegerField(help_text="The amount charged to the user's workloads, over all flavors.")
    limit = serializers.IntegerField()
    free = serializers.IntegerField(help_text="0 or more: the amount that the limit leaves.")


class UserHoldingSerializer(serializers.Serializer[Any]):
    """The quota that one user holds at one level, and the limit there."""

    level = serializers.CharField(help_text="`ClusterQueue NAME` or `Cohort NAME`.")
    user = serializers.CharField(allow_blank=True, help_text="Empty: workloads whose user is not known.")
    workloads = serializers.IntegerField(help_text="The number of the user's workloads with quota.")
    max_workloads = serializers.IntegerField(allow_null=True, help_text="Null: not limited.")
    resources = LimitedResourceSerializer(many=True)


class UserHoldingsSerializer(serializers.Serializer[Any]):
    """Holdings and limits, by level from the ClusterQueue up and by user."""

    results = UserHoldingSerializer(many=True)


class UserLimitsView(ClusterView):
    """`cluster-queues/{name}/user-limits/`."""

    serializer_class = UserHoldingsSerializer

    @extend_schema(responses=UserHoldingsSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List what each user holds, and may hold, by the limits of the ClusterQueue and of the cohorts above it.

        Users who do not see all namespaces of the cluster see their own holdings only.
        """
        if not visibility_of(self.access, self.cluster).sees_queue(name):
            raise self.missing("ClusterQueue", name)
        with kept_world(self.cluster, time.time()) as world:
            if world.objects.cluster_queue(name) is None:
                raise self.missing("ClusterQueue", name)
            levels = world.objects.user_levels(name)
        only = None if self.access.sees_everything else self.access.username
        return Response({"results": [row for level in levels for row in _rows(level, self.access.username, only)]})


def _rows(level: QueueLevel, reader: str, only: str | None) -> Iterator[dict[str, Any]]:
    """Yield the users that are named or hold quota, and the reader; or the user `only`."""
    named = {user for limit in level.limits for user in limit.users if user != ANYONE}
    users = (
        {only}
        if only is not None
        else {*named, *(user for user, held in level.users.items() if held.workloads), reader}
    )
    for user in sorted(users):
        limit, held = limit_of(level, user), level.users.get(user, NOTHING)
        if limit is None:
            continue
        yield {
            "level": level.name,
            "user": user,
            "workloads": held.workloads,
            "max_workloads": limit.workloads or None,
            "resources": [
                {
                    "resource": resource,
                    "held": int(held.resources.get(resource, 0)),
                    "limit": int(most),
                    "free": max(0, int(most - held.resources.get(resource, 0))),
                }
                for resource, most in sorted(limit.resources.items())
            ],
        }
