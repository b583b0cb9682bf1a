"""The moments of the past that can be shown, and the live figures of such a moment, over REST."""

from collections.abc import Mapping
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import AT, ClusterView, moment_in, past_headers
from foundation.exceptions import InvalidRequest
from foundation.shown_past import showing
from history.models import Checkpoint
from history.services.checkpoints.past_moments import Moment, cluster_at, find_moment, past_of, showing_moment
from history.services.checkpoints.past_rows import NoCheckpoint, devices_of
from queues.services.visibility import visibility_of
from scheduler.api.queue_status import NO_FIGURES
from scheduler.live.frames import Audience, redact
from scheduler.live.publisher import numbers
from scheduler.store.world_reading import read_whole_world

_PARTS: Final = ("totals", "cluster_queues", "cohorts")


class CheckpointsSerializer(serializers.Serializer[Any]):
    """The checkpoints of a cluster."""

    taken_at = serializers.ListField(
        child=serializers.DateTimeField(), help_text="The moments of the kept checkpoints, the earliest first."
    )


class CheckpointsView(ClusterView):
    """`checkpoints/`."""

    serializer_class = CheckpointsSerializer
    queryset = Checkpoint.objects.none()

    @extend_schema(responses=CheckpointsSerializer)
    def get(self, request: Request) -> Response:
        """List the moments of the checkpoints that are kept.

        `at` shows the last one at or before the moment that it names.
        """
        found = Checkpoint.objects.filter(cluster=self.cluster).order_by("taken_at")
        return Response({"taken_at": list(found.values_list("taken_at", flat=True))})


class FiguresView(ClusterView):
    """`checkpoints/figures/`."""

    queryset = Checkpoint.objects.none()
    looks_back = True
    reads_past_rows = False

    @extend_schema(responses={200: {"$ref": "#/components/schemas/LiveData"}})
    def get(self, request: Request) -> Response:
        """Return the figures that the live stream showed at a moment: queues, cohorts and devices with their slices.

        Requires `at`.
        """
        if AT not in request.query_params:
            raise InvalidRequest(f"{AT}: Required value: the present figures are in the live stream.")
        moment = find_moment(self.cluster, moment_in(request))
        past, whole = past_of(moment), _figures_of(moment)
        namespaces = self.access.visible_namespaces()
        with showing(past):  # cohorts are hidden that the reader may not see now
            visibility = visibility_of(self.access, self.cluster)
        audience = Audience(None if namespaces is None else frozenset(namespaces), visibility)
        return Response(_with_known_cohorts(redact(whole, whole, audience), audience), headers=past_headers(past))


def _figures_of(moment: Moment) -> Mapping[str, Any]:
    """Return the figures that are kept with the checkpoint, or those of a World of the moment's rows."""
    if moment.undone or moment.before is None:
        with showing_moment(moment) as settings:
            return numbers(*read_whole_world(cluster_at(moment, settings), moment.time.timestamp()))
    kept = moment.before.figures
    if kept["source"] == NO_FIGURES:
        raise NoCheckpoint(
            f"The checkpoint from {moment.time.isoformat()} has no figures: its rows were damaged. Name another "
            "moment; checkpoints/ lists them."
        )
    return {**{name: kept[name] for name in _PARTS}, "devices": devices_of(moment.before)}


def _with_known_cohorts(shown: dict[str, Any], audience: Audience) -> dict[str, Any]:
    """Names of cohorts that are not shown are taken from the queues and cohorts in them."""
    sees = audience.visibility.sees_cohort
    queues = {
        name: entry if sees(entry["cohort"]) else {**entry, "cohort": ""}
        for name, entry in shown["cluster_queues"].items()
    }
    cohorts = {
        name: entry if sees(entry["parent"]) else {**entry, "parent": ""} for name, entry in shown["cohorts"].items()
    }
    return {**shown, "cluster_queues": queues, "cohorts": cohorts}
