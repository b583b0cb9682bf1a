"""The tree of quota as nested JSON."""

from collections import defaultdict
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from queues.services.visibility import Visibility
from scheduler.api.queue_status import Numbers

Shape = serializers.Serializer[Any]

SOURCES: Final = ["live", "rows", "none"]


class ShareField(serializers.JSONField):
    """Kueue's dominant resource share: a number, or "Infinity" for one that borrows with weight 0."""


extend_schema_field({"oneOf": [{"type": "number"}, {"type": "string", "enum": ["Infinity"]}]})(ShareField)


class CellSerializer(Shape):
    """Quota and usage of a resource in a flavor of a ClusterQueue, as integers in base units (cpu in milli)."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    nominal = serializers.IntegerField()
    deserved = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The quota that it deserves by its cohort's sharing policy; null without a policy, or while no "
            "scheduler leads."
        ),
    )
    borrowing_limit = serializers.IntegerField(allow_null=True)
    lending_limit = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    borrowed = serializers.IntegerField()


class CohortCellSerializer(Shape):
    """The quota of a cohort and everything below it, and the usage above its members' own guarantees."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    deserved = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The quota that it deserves by its own or an ancestor's sharing policy; null without a policy, or "
            "while no scheduler leads."
        ),
    )
    subtree_quota = serializers.IntegerField()
    used = serializers.IntegerField()


class TreeQueueSerializer(Shape):
    """A ClusterQueue in the tree."""

    name = serializers.CharField()
    cohort = serializers.CharField(allow_blank=True)
    active = serializers.BooleanField()
    reason = serializers.CharField()
    message = serializers.CharField()
    pending = serializers.IntegerField(help_text="Workloads that one of the next cycles considers.")
    inadmissible = serializers.IntegerField(
        help_text=("Workloads that were evaluated without success and wait for a change.")
    )
    reserving = serializers.IntegerField()
    admitted = serializers.IntegerField()
    weighted_share = ShareField()
    usage = CellSerializer(many=True)


class TreeCohortSerializer(Shape):
    """A cohort in the tree."""

    name = serializers.CharField()
    weighted_share = ShareField()
    usage = CohortCellSerializer(many=True)
    cohorts = serializers.SerializerMethodField()
    cluster_queues = TreeQueueSerializer(many=True)

    @extend_schema_field({"type": "array", "items": {"$ref": "#/components/schemas/TreeCohort"}})
    def get_cohorts(self, cohort: Any) -> OpenApiTypes:  # pragma: no cover (it stands for the schema only)
        """Return the cohorts in this cohort."""
        raise NotImplementedError


class CohortTreeSerializer(Shape):
    """The quota tree."""

    source = serializers.ChoiceField(  # type: ignore[assignment]  # a field of that name, as DRF allows
        SOURCES,
        help_text=(
            "`live`: the scheduler's numbers. `rows`: computed from the database, because no scheduler leads or, "
            "for a past moment, because a decision had just been made."
        ),
    )
    time = serializers.DateTimeField()
    cohorts = TreeCohortSerializer(many=True, help_text="Cohorts without a parent.")
    cluster_queues = TreeQueueSerializer(many=True, help_text="ClusterQueues without a cohort.")


def cohort_tree(numbers: Numbers, visibility: Visibility) -> dict[str, Any]:
    """Return the part of the tree that the user may see. The core shows cohorts in a cycle without parents."""
    shown = visibility.cohorts(numbers.cluster_queues, numbers.cohorts)
    cohorts = {name: entry for name, entry in numbers.cohorts.items() if shown is None or name in shown}
    queues: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, entry in sorted(numbers.cluster_queues.items()):
        if visibility.sees_queue(name):
            cohort = entry["cohort"] if visibility.sees_cohort(entry["cohort"]) else ""
            queues[cohort].append({"name": name, **entry, "cohort": cohort})
    children: dict[str, list[str]] = defaultdict(list)
    for name, entry in sorted(cohorts.items()):
        children[entry["parent"] if entry["parent"] in cohorts else ""].append(name)

    def node(name: str) -> dict[str, Any]:
        entry = cohorts[name]
        return {
            "name": name,
            "weighted_share": entry["weighted_share"],
            "usage": entry["usage"],
            "cohorts": [node(child) for child in children[name]],
            "cluster_queues": queues[name],
        }

    roots = [node(name) for name in children[""]]
    return {"source": numbers.source, "time": numbers.time, "cohorts": roots, "cluster_queues": queues[""]}
