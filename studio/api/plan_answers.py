"""Answers to "what if" as JSON. Names obey the reader's rights; numbers stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers

from studio.api.effects import EffectsSerializer, shown_effects
from studio.api.hour_answers import HoursAheadSerializer, shown_hours
from studio.services.visible_names import VisibleNames

_MAX_LISTED: Final = 200
_HIDDEN: Final = "Empty if the user may not see it."


class EvictionSerializer(serializers.Serializer[Any]):
    """A workload that loses its quota."""

    workload = serializers.CharField(allow_blank=True, help_text=f"namespace/name. {_HIDDEN}")
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    reason = serializers.CharField(
        help_text=(
            "The reason of the preemption or eviction: InClusterQueue, InCohortReclamation, NodeFailures ...; Ended: "
            "the plan itself ends it."
        )
    )
    preemptor = serializers.CharField(allow_blank=True, help_text="The workload that takes its place, if one does.")
    preemptor_cluster_queue = serializers.CharField(allow_blank=True)
    ran_seconds = serializers.IntegerField(help_text="How long it was admitted; lost without a checkpoint.")
    devices = serializers.IntegerField(help_text="How many devices, or shares of devices, it holds.")
    starts_again = serializers.BooleanField(
        help_text="Whether it starts again in the cycles that follow, in the same place or elsewhere."
    )


class EvictionsSerializer(serializers.Serializer[Any]):
    """The workloads that lose their quota."""

    count = serializers.IntegerField()
    device_seconds = serializers.IntegerField(help_text="The sum over all of seconds times devices.")
    workloads = EvictionSerializer(many=True, help_text="The first of them that the user may see.")


class FirstAnswerSerializer(serializers.Serializer[Any]):
    """The effects of the first cycles."""

    effects = EffectsSerializer()
    evictions = EvictionsSerializer()


class NewWaitSerializer(serializers.Serializer[Any]):
    """A workload that would wait because of the plan, or for another reason than without it."""

    workload = serializers.CharField()
    cluster_queue = serializers.CharField(allow_blank=True, help_text=_HIDDEN)
    reason = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    reason_before = serializers.CharField(allow_blank=True, help_text="Empty if it would not wait without the plan.")


class NewWaitsSerializer(serializers.Serializer[Any]):
    """Workloads that would wait because of the plan, or for another reason than without it."""

    count = serializers.IntegerField()
    workloads = NewWaitSerializer(many=True, help_text="The first of them that the user may see.")


class UsageChangeSerializer(serializers.Serializer[Any]):
    """The quota and usage of a resource, in base units."""

    flavor = serializers.CharField()
    resource = serializers.CharField()
    nominal_before = serializers.IntegerField()
    nominal = serializers.IntegerField()
    used_before = serializers.IntegerField()
    used = serializers.IntegerField()


class QueueChangeSerializer(serializers.Serializer[Any]):
    """A ClusterQueue whose figures would differ, without and with the plan."""

    name = serializers.CharField()
    pending_before = serializers.IntegerField()
    pending = serializers.IntegerField()
    reserving_before = serializers.IntegerField(help_text="Workloads that hold quota.")
    reserving = serializers.IntegerField()
    share_before = serializers.FloatField(allow_null=True, help_text="The weighted share; null: infinite.")
    share = serializers.FloatField(allow_null=True)
    usage = UsageChangeSerializer(many=True)


class DeviceFiguresSerializer(serializers.Serializer[Any]):
    """All devices of the cluster."""

    count = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Devices that hold a slice or more.")
    fragmented = serializers.FloatField(
        allow_null=True, help_text="The idle part that no typical pod can use, in devices; null: no typical pods known."
    )


class WholeAnswerSerializer(FirstAnswerSerializer):
    """The effects until the cycles are idle."""

    cycles = serializers.IntegerField()
    waiting = NewWaitsSerializer()
    queues = QueueChangeSerializer(many=True, help_text="Of the ClusterQueues that the user may see.")
    devices_before = DeviceFiguresSerializer()
    devices = DeviceFiguresSerializer()


class WhatIfSerializer(serializers.Serializer[Any]):
    """The answer to a plan, compared with no change."""

    first = FirstAnswerSerializer(help_text="After the first cycles.")
    whole = WholeAnswerSerializer(allow_null=True, help_text="Null until the cycles are idle.")
    hours = HoursAheadSerializer(
        allow_null=True, help_text="Null unless it was asked for, and until the forward runs have ended."
    )


def shown_what_if(answer: Mapping[str, Any], names: VisibleNames) -> dict[str, Any]:
    """Return a stored answer as this reader may see it."""
    whole = answer["whole"]
    return {
        "first": _part(answer["first"], names),
        "whole": None if whole is None else _whole(whole, names),
        "hours": shown_hours(answer["hours"], names) if answer.get("hours") else None,
    }


def _part(found: Mapping[str, Any], names: VisibleNames) -> dict[str, Any]:
    evictions = found["evictions"]
    seen = [each for each in evictions if names.workload(each["workload"])]
    return {
        "effects": shown_effects(found["effects"], names),
        "evictions": {
            "count": len(evictions),
            "device_seconds": sum(each["ran_seconds"] * each["devices"] for each in evictions),
            "workloads": [_eviction(each, names) for each in seen[:_MAX_LISTED]],
        },
    }


def _eviction(found: Mapping[str, Any], names: VisibleNames) -> dict[str, Any]:
    return {
        **found,
        "cluster_queue": names.cluster_queue(found["cluster_queue"]),
        "preemptor": names.workload(found["preemptor"]) if found["preemptor"] else "",
        "preemptor_cluster_queue": names.cluster_queue(found["preemptor_cluster_queue"]),
    }


def _whole(found: Mapping[str, Any], names: VisibleNames) -> dict[str, Any]:
    waits = found["waiting"]
    seen = [each for each in waits if names.workload(each["workload"])]
    return _part(found, names) | {
        "cycles": found["cycles"],
        "waiting": {
            "count": len(waits),
            "workloads": [
                {
                    **each,
                    "cluster_queue": names.cluster_queue(each["cluster_queue"]),
                    "message": names.message(each["message"]),
                }
                for each in seen[:_MAX_LISTED]
            ],
        },
        "queues": [each for each in found["queues"] if names.sees_queue(each["name"])],
        "devices_before": found["devices_before"],
        "devices": found["devices"],
    }
