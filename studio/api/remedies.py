"""Remedies of a waiting workload as JSON. Names of workloads obey the reader's rights; their numbers stay."""

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers

from accounts.services.access import Access
from scheduler.api.explanation_views import WAIT_STATES
from scheduling.studio.remedy import RemedyKind
from studio.api.effects import AffectedWorkloadsSerializer, shown_workloads

REMEDY_KINDS: Final = [kind.value for kind in RemedyKind]
_EFFECTS: Final = ("starts", "waits", "preempted", "stopped")


class AffectedSerializer(serializers.Serializer[Any]):
    """The workloads that a remedy affects, compared with the next cycles without it."""

    starts = AffectedWorkloadsSerializer(help_text="Workloads that would get quota, including the remedy's own.")
    waits = AffectedWorkloadsSerializer(help_text="They would start without the change, and would wait with it.")
    preempted = AffectedWorkloadsSerializer()
    stopped = AffectedWorkloadsSerializer(help_text="Their queue would be drained.")


class RemedySerializer(serializers.Serializer[Any]):
    """One change that would start the workload at once, tried with cycles; the next smaller change would not."""

    kind = serializers.ChoiceField(REMEDY_KINDS)
    field = serializers.CharField(help_text="The field that changes: count, requests, queueName, nominalQuota ...")
    subject = serializers.CharField(allow_blank=True, help_text="The object that changes, if it is a single one.")
    before = serializers.DictField(
        child=serializers.JSONField(),
        help_text=("The present value by resource; under an empty name if the field is not by resource."),
    )
    after = serializers.DictField(child=serializers.JSONField(), help_text="The same, with the change.")
    workloads = AffectedWorkloadsSerializer(help_text="The workloads that end or move.")
    at_least = serializers.IntegerField(help_text="The fewest workloads that would have to end; 0 for other kinds.")
    monotone = serializers.BooleanField(help_text="False if a larger amount may also start the workload.")
    effects = AffectedSerializer()


class RemediesSerializer(serializers.Serializer[Any]):
    """The changes that would start a waiting workload. An empty list with `complete`: no tried change starts it."""

    state = serializers.ChoiceField(WAIT_STATES)
    starts_now = serializers.BooleanField(help_text="The next cycles start it without any change.")
    complete = serializers.BooleanField(help_text="False if time ran out before everything was tried.")
    trials = serializers.IntegerField(help_text="How often cycles were tried.")
    remedies = RemedySerializer(many=True)


def shown_remedies(answer: Mapping[str, Any], access: Access) -> dict[str, Any]:
    """Return a stored answer as this reader may see it."""
    return {**answer, "remedies": [_shown(remedy, access) for remedy in answer["remedies"]]}


def _shown(remedy: Mapping[str, Any], access: Access) -> dict[str, Any]:
    return {
        **remedy,
        "workloads": shown_workloads(remedy["workloads"], access),
        "effects": {name: shown_workloads(remedy["effects"][name], access) for name in _EFFECTS},
    }
