"""The effects of a change of queues and quotas as JSON: workloads that it would admit or evict, and exceeded quotas."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from rest_framework import serializers

from accounts.services.access import Access
from scheduling.outlook import Effects, LoadChange, NodeKind, Outlook, look_ahead
from scheduling.world import World

_SECONDS: Final = 1.5
"""How long cycles are tried: a person waits for the answer."""
_MAX_NAMED: Final = 20
QUOTA_HOLDERS: Final = [kind.value for kind in NodeKind]


class AffectedWorkloadSerializer(serializers.Serializer[Any]):
    """A workload that gains or loses."""

    workload = serializers.CharField(help_text="namespace/name.")
    cluster_queue = serializers.CharField()


class AffectedWorkloadsSerializer(serializers.Serializer[Any]):
    """Workloads that gain or lose."""

    count = serializers.IntegerField()
    workloads = AffectedWorkloadSerializer(many=True, help_text="The first ones that the user may see.")


class QuotaEffectSerializer(serializers.Serializer[Any]):
    """A quota that changes, or of which more is used than may be; amounts are integers in base units."""

    kind = serializers.ChoiceField(QUOTA_HOLDERS)
    name = serializers.CharField()
    flavor = serializers.CharField()
    resource = serializers.CharField()
    nominal_before = serializers.IntegerField()
    nominal = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Now, by what is admitted.")
    over = serializers.IntegerField(help_text="Usage above the quota, own and borrowed. It shrinks as workloads end.")


class InactiveQueueSerializer(serializers.Serializer[Any]):
    """A ClusterQueue that would admit nothing any more."""

    name = serializers.CharField()
    message = serializers.CharField(allow_blank=True)


class EffectsSerializer(serializers.Serializer[Any]):
    """The immediate effects, compared with those of the next cycles without the change."""

    complete = serializers.BooleanField(
        help_text="False where the time was over before the scheduler's cycles came to rest: there is more to come."
    )
    starts = AffectedWorkloadsSerializer(help_text="They would get their quota.")
    waits = AffectedWorkloadsSerializer(help_text="They would start without the change, and would wait with it.")
    preempted = AffectedWorkloadsSerializer()
    stopped = AffectedWorkloadsSerializer(help_text="Their queue would be drained.")
    quotas = QuotaEffectSerializer(many=True)
    inactive = InactiveQueueSerializer(many=True)


def present_outlook(world: World, now: float) -> Outlook:
    """Return the result of the next cycles, as far as the time allows to try."""
    return look_ahead(world, now, _until(time.monotonic() + _SECONDS))


def effects_json(found: Effects, access: Access) -> dict[str, Any]:
    """Return the effects in the shape of `EffectsSerializer`. A caller who may change the queues may read their
    names."""
    return {
        "complete": found.complete,
        "starts": _workloads(found.starts, access),
        "waits": _workloads(found.waits, access),
        "preempted": _workloads(found.preempted, access),
        "stopped": _workloads(found.stopped, access),
        "quotas": [_quota(change) for change in found.quotas],
        "inactive": [{"name": name, "message": why} for name, why in sorted(found.inactive.items())],
    }


def _until(deadline: float) -> Callable[[], bool]:
    return lambda: time.monotonic() < deadline


def _workloads(found: Mapping[str, str], access: Access) -> dict[str, Any]:
    seen = [key for key in sorted(found) if access.sees(key.partition("/")[0])]
    return {
        "count": len(found),
        "workloads": [{"workload": key, "cluster_queue": found[key]} for key in seen[:_MAX_NAMED]],
    }


def _quota(change: LoadChange) -> dict[str, Any]:
    place, load = change.place, change.load
    return {
        "kind": place.kind.value,
        "name": place.name,
        "flavor": place.flavor,
        "resource": place.resource,
        "nominal_before": change.nominal_before,
        "nominal": load.nominal,
        "used": load.used,
        "over": load.over,
    }
