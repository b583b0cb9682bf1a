"""The quota that users and groups hold in a ClusterQueue, and the amounts that its limits allow."""

import time
from collections.abc import Collection, Iterator
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from accounts.services.access import groups_of
from queues.services.visibility import visibility_of
from scheduler.store.kept_world import kept_world
from scheduling.model.cohort import ANYONE, UserLimit
from scheduling.policies.headroom import NOTHING, Holding, QueueLevel, group_limit_of, group_of, limit_of


class LimitedResourceSerializer(serializers.Serializer[Any]):
    """A limited resource; amounts are integers in base units (cpu in milli, memory in bytes)."""

    resource = serializers.CharField()
    held = serializers.IntegerField(help_text="The amount charged to the workloads, over all flavors.")
    limit = serializers.IntegerField()
    free = serializers.IntegerField(help_text="0 or more: the amount that the limit leaves.")


class UserHoldingSerializer(serializers.Serializer[Any]):
    """The quota that one user, or one group, holds at one level, and the limit there."""

    level = serializers.CharField(help_text="`ClusterQueue NAME` or `Cohort NAME`.")
    user = serializers.CharField(allow_blank=True, help_text="Empty: workloads whose user is not known, or a group.")
    group = serializers.CharField(
        allow_blank=True, help_text="Empty: a user. `*` is all groups together that no limit of the level names."
    )
    workloads = serializers.IntegerField(help_text="The number of workloads with quota.")
    max_workloads = serializers.IntegerField(allow_null=True, help_text="Null: not limited.")
    resources = LimitedResourceSerializer(many=True)


class UserHoldingsSerializer(serializers.Serializer[Any]):
    """Holdings and limits, by level from the ClusterQueue up, of users and then of groups."""

    results = UserHoldingSerializer(many=True)


class UserLimitsView(ClusterView):
    """`cluster-queues/{name}/user-limits/`."""

    serializer_class = UserHoldingsSerializer

    @extend_schema(responses=UserHoldingsSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List the quota that each user and each group holds, and the limits.

        The limits are those of the ClusterQueue and of the cohorts above it.
        Users who do not see all namespaces of the cluster see their own holdings and those of their groups only.
        """
        if not visibility_of(self.access, self.cluster).sees_queue(name):
            raise self.missing("ClusterQueue", name)
        with kept_world(self.cluster, time.time()) as world:
            if world.objects.cluster_queue(name) is None:
                raise self.missing("ClusterQueue", name)
            levels = world.objects.user_levels(name)
        sees_all, reader = self.access.sees_everything, self.access.username
        only = None if sees_all else reader
        groups = [] if sees_all else groups_of(reader)
        mine = None if sees_all else {*groups, group_of(levels, groups)}
        rows = [row for level in levels for row in (*_of_users(level, reader, only), *_of_groups(level, mine))]
        return Response({"results": rows})


def _of_users(level: QueueLevel, reader: str, only: str | None) -> Iterator[dict[str, Any]]:
    """Yield the users that are named or hold quota, and the reader; or the user `only`."""
    named = {user for limit in level.limits for user in limit.users if user != ANYONE}
    users = (
        {only}
        if only is not None
        else {*named, *(user for user, held in level.users.items() if held.workloads), reader}
    )
    for user in sorted(users):
        limit, held = limit_of(level, user), level.users.get(user, NOTHING)
        if limit is not None:
            yield _row(level.name, user, "", limit, held)


def _of_groups(level: QueueLevel, mine: Collection[str] | None) -> Iterator[dict[str, Any]]:
    """Yield the limited groups; `mine`: only these."""
    for group in sorted({group for limit in level.limits for group in limit.groups}):
        limit = group_limit_of(level, group)
        if limit is not None and (mine is None or group in mine):
            yield _row(level.name, "", group, limit, level.groups.get(group, NOTHING))


def _row(level: str, user: str, group: str, limit: UserLimit, held: Holding) -> dict[str, Any]:
    return {
        "level": level,
        "user": user,
        "group": group,
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
