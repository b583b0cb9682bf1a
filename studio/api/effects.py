"""Effects of a change as JSON: workloads that it would admit or evict, and exceeded quotas. Names obey the reader's
rights; numbers stay."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rest_framework import serializers

from accounts.services.access import Access
from scheduling.outlook import NodeKind
from studio.services.visible_names import VisibleNames

_MAX_NAMED: Final = 20
QUOTA_HOLDERS: Final = [kind.value for kind in NodeKind]


class AffectedWorkloadSerializer(serializers.Serializer[Any]):
    """A workload that the change affects."""

    workload = serializers.CharField(help_text="namespace/name.")
    cluster_queue = serializers.CharField(allow_blank=True, help_text="Empty if it holds no quota of a ClusterQueue.")


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
    over = serializers.IntegerField(
        help_text="Usage beyond the queue's own and borrowed quota. It shrinks as workloads end."
    )


class InactiveQueueSerializer(serializers.Serializer[Any]):
    """A ClusterQueue that would admit no more workloads."""

    name = serializers.CharField()
    message = serializers.CharField(allow_blank=True)


class EffectsSerializer(serializers.Serializer[Any]):
    """The immediate effects: a comparison of the next cycles with and without the change."""

    complete = serializers.BooleanField(
        help_text="False if time ran out before the cycles were idle: there may be more effects."
    )
    starts = AffectedWorkloadsSerializer(help_text="Workloads that would get quota.")
    waits = AffectedWorkloadsSerializer(help_text="Workloads that would start without the change, but wait with it.")
    preempted = AffectedWorkloadsSerializer()
    stopped = AffectedWorkloadsSerializer(help_text="Workloads that would be evicted because their queue is drained.")
    quotas = QuotaEffectSerializer(
        many=True,
        help_text=("Changes and excesses of the quotas of the ClusterQueues and cohorts that the user may see."),
    )
    inactive = InactiveQueueSerializer(many=True, help_text="Of the ClusterQueues that the user may see.")


def shown_effects(found: Mapping[str, Any], names: VisibleNames) -> dict[str, Any]:
    """Return stored effects (`scheduling.studio.plan_effects_json`) in the shape of `EffectsSerializer`."""
    access = names.access
    return {
        "complete": found["complete"],
        **{name: shown_workloads(found[name], access) for name in ("starts", "waits", "preempted", "stopped")},
        "quotas": [each for each in found["quotas"] if names.sees_holder(each["kind"], each["name"])],
        "inactive": [each for each in found["inactive"] if names.sees_queue(each["name"])],
    }


def shown_workloads(found: Mapping[str, str] | Iterable[str], access: Access) -> dict[str, Any]:
    """Return the number of workloads, and the first ones that the reader may see, as keys (namespace/name) with their
    ClusterQueues if these are known."""
    queues = found if isinstance(found, Mapping) else dict.fromkeys(found, "")
    seen = [key for key in sorted(queues) if access.sees(key.partition("/")[0])]
    return {
        "count": len(queues),
        "workloads": [{"workload": key, "cluster_queue": queues[key]} for key in seen[:_MAX_NAMED]],
    }
