"""Effects of a change as JSON: workloads that it would admit or evict, and exceeded quotas. Names obey the reader's
rights; numbers stay."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rest_framework import serializers

from accounts.services.access import Access
from scheduling.outlook import Effects, LoadChange, NodeKind

_MAX_NAMED: Final = 20
QUOTA_HOLDERS: Final = [kind.value for kind in NodeKind]


class AffectedWorkloadSerializer(serializers.Serializer[Any]):
    """A workload that the change affects."""

    workload = serializers.CharField(help_text="namespace/name.")
    cluster_queue = serializers.CharField(allow_blank=True, help_text="Empty where it holds no quota of one.")


class AffectedWorkloadsSerializer(serializers.Serializer[Any]):
    """Workloads that the change affects."""

    count = serializers.IntegerField()
    workloads = AffectedWorkloadSerializer(many=True, help_text="The first affected workloads that the user may see.")


class QuotaEffectSerializer(serializers.Serializer[Any]):
    """A quota that changes or is exceeded; amounts are integers in base units."""

    kind = serializers.ChoiceField(QUOTA_HOLDERS)
    name = serializers.CharField()
    flavor = serializers.CharField()
    resource = serializers.CharField()
    nominal_before = serializers.IntegerField()
    nominal = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Current usage by admitted workloads.")
    over = serializers.IntegerField(help_text="Usage above the own and borrowed quota. It shrinks as workloads end.")


class InactiveQueueSerializer(serializers.Serializer[Any]):
    """A ClusterQueue that would admit no more workloads."""

    name = serializers.CharField()
    message = serializers.CharField(allow_blank=True)


class EffectsSerializer(serializers.Serializer[Any]):
    """The immediate effects: a comparison of the next cycles with and without the change."""

    complete = serializers.BooleanField(
        help_text="False if the time was over before the cycles came to rest: more effects may follow."
    )
    starts = AffectedWorkloadsSerializer(help_text="Workloads that would get quota.")
    waits = AffectedWorkloadsSerializer(help_text="Workloads that would start without the change, but wait with it.")
    preempted = AffectedWorkloadsSerializer()
    stopped = AffectedWorkloadsSerializer(help_text="Workloads that would be evicted because their queue is drained.")
    quotas = QuotaEffectSerializer(many=True)
    inactive = InactiveQueueSerializer(many=True)


def effects_json(found: Effects, access: Access) -> dict[str, Any]:
    """Return the effects in the shape of `EffectsSerializer`. A caller who may change the queues may read their
    names."""
    return {
        "complete": found.complete,
        "starts": shown_workloads(found.starts, access),
        "waits": shown_workloads(found.waits, access),
        "preempted": shown_workloads(found.preempted, access),
        "stopped": shown_workloads(found.stopped, access),
        "quotas": [quota_json(change) for change in found.quotas],
        "inactive": [{"name": name, "message": why} for name, why in sorted(found.inactive.items())],
    }


def shown_workloads(found: Mapping[str, str] | Iterable[str], access: Access) -> dict[str, Any]:
    """Return how many workloads there are, and the first that the reader may see. They are keys, namespace/name, with
    their ClusterQueues where these are known."""
    queues = found if isinstance(found, Mapping) else dict.fromkeys(found, "")
    seen = [key for key in sorted(queues) if access.sees(key.partition("/")[0])]
    return {
        "count": len(queues),
        "workloads": [{"workload": key, "cluster_queue": queues[key]} for key in seen[:_MAX_NAMED]],
    }


def quota_json(change: LoadChange) -> dict[str, Any]:
    """Return the change of one quota in the shape of `QuotaEffectSerializer`."""
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
