"""The hours after a plan as JSON. ClusterQueues obey the reader's rights; the figures of all of them stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers

from scheduling.estimates.snapshot import Unknown
from studio.services.looking_ahead import MAX_SHOWN_QUEUES
from studio.services.visible_names import VisibleNames

UNKNOWN_HOURS: Final = [
    each.value for each in (Unknown.NO_RUN_ENDED, Unknown.BEYOND_REACH, Unknown.NO_MEMORY, Unknown.ERROR)
]


def _by_hour(text: str, *, allow_null: bool = False) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=allow_null), help_text=text)


class HourFiguresSerializer(serializers.Serializer[Any]):
    """Figures by hour: one value for each of the hours."""

    started = _by_hour("The mean number of starts.")
    ended = _by_hour("The mean number of jobs that end.")
    waiting = _by_hour("The mean number of workloads that wait at the end of the hour.")
    device_hours = _by_hour("Hours times the devices, or shares of devices, that are held.")
    wait_p50 = _by_hour(
        "Of the workloads that start in the hour: half have waited no longer, in seconds; null: none starts.",
        allow_null=True,
    )
    wait_p90 = _by_hour("The same of nine tenths of them.", allow_null=True)
    all_waits_p50 = serializers.FloatField(
        allow_null=True,
        help_text="Half of the workloads that start in these hours, or still wait at their end, wait no longer, in "
        "seconds; null: they wait longer than these hours, or none waits.",
    )
    all_waits_p90 = serializers.FloatField(allow_null=True, help_text="The same of nine tenths of them.")


class QueueHoursSerializer(serializers.Serializer[Any]):
    """The hours ahead of one ClusterQueue, or of all, without and with the plan."""

    name = serializers.CharField(allow_blank=True, help_text="Empty: of all ClusterQueues together.")
    workloads = serializers.IntegerField(help_text="Workloads that wait or hold quota.")
    with_run_times = serializers.IntegerField(
        help_text="Those whose run time is declared, or of whose like at least five runs have ended."
    )
    before = HourFiguresSerializer(allow_null=True, help_text="Null: run times are known of fewer than half of them.")
    after = HourFiguresSerializer(allow_null=True)


class HoursAheadSerializer(serializers.Serializer[Any]):
    """The hours after a plan, by forward runs of the scheduler's cycles with run times of like workloads.

    Both futures have the same run times. Later arrivals are not simulated.
    """

    unknown = serializers.ChoiceField(
        UNKNOWN_HOURS,
        allow_blank=True,
        help_text="Why there are no figures: too few runs have ended, the runs reached no whole hour in their time, "
        "needed too much memory, or ended with an error.",
    )
    asked_hours = serializers.IntegerField()
    hours = serializers.IntegerField(help_text="The whole hours that the runs reached in their time.")
    runs = serializers.IntegerField(help_text="Forward runs of each future.")
    ended_runs = serializers.IntegerField(help_text="Ended runs from which run times are drawn.")
    total = QueueHoursSerializer()
    queues = QueueHoursSerializer(
        many=True,
        help_text="Of the ClusterQueues that the user may see, the largest changes first, in device hours and then in "
        f"waiting workloads; at most {MAX_SHOWN_QUEUES}.",
    )
    further_queues = serializers.IntegerField(
        help_text="The number of ClusterQueues that the user may see and that are not listed."
    )


def shown_hours(found: Mapping[str, Any], names: VisibleNames) -> dict[str, Any]:
    """Return stored hours as this reader may see them."""
    seen = [each for each in found["queues"] if names.sees_queue(each["name"])]
    return {**found, "queues": seen[:MAX_SHOWN_QUEUES], "further_queues": len(seen[MAX_SHOWN_QUEUES:])}
