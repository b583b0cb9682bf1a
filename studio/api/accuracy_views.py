"""`studio/accuracy/`: how true the estimates of starts were."""

from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from studio.models import KeptEstimate
from studio.services.accuracy import accuracy_json
from studio.services.visible_names import VisibleNames

_HOURS: Final = "hours"
_MAX_HOURS: Final = 30 * 24
_DEFAULT_HOURS: Final = 24


class AccuracySerializer(serializers.Serializer[Any]):
    """The accuracy of estimates whose workloads have started. A figure is null without data."""

    count = serializers.IntegerField()
    unknown = serializers.IntegerField(
        help_text="The number of these whose start could not be estimated. They count as not covered."
    )
    coverage = serializers.FloatField(
        allow_null=True, help_text="The share of starts between p10 and p90; 0.8 for correct estimates."
    )
    coverage_by_fifth = serializers.ListField(
        child=serializers.FloatField(), help_text="The same for each fifth of the known estimates, the shortest first."
    )
    median_error_seconds = serializers.FloatField(
        allow_null=True, help_text="The median of the absolute difference between p50 and the start."
    )
    bias_seconds = serializers.FloatField(
        allow_null=True, help_text="The median of p50 minus the start; negative: workloads start later than estimated."
    )
    mean_width_seconds = serializers.FloatField(allow_null=True, help_text="The mean of p90 - p10.")


class StageAccuracySerializer(AccuracySerializer):
    """The accuracy of estimates that were made after this waiting time."""

    stage_seconds = serializers.IntegerField(help_text="0: at submission.")


class QueueAccuracySerializer(AccuracySerializer):
    """The accuracy in one ClusterQueue, at submission."""

    cluster_queue = serializers.CharField()


class EstimateAccuracySerializer(serializers.Serializer[Any]):
    """The accuracy of the estimates of starts, in the ClusterQueues that you may see."""

    since = serializers.DateTimeField(help_text="Workloads count that started since then.")
    renewed_at = serializers.DateTimeField(allow_null=True, help_text="When a studio last renewed the estimates.")
    stages = StageAccuracySerializer(many=True)
    cluster_queues = QueueAccuracySerializer(many=True)


class AccuracyView(ClusterView):
    """`studio/accuracy/`."""

    serializer_class = EstimateAccuracySerializer
    queryset = KeptEstimate.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter(
                _HOURS, int, default=_DEFAULT_HOURS, description=f"The number of hours to cover, at most {_MAX_HOURS}."
            )
        ],
        responses=EstimateAccuracySerializer,
    )
    def get(self, request: Request) -> Response:
        """Return the accuracy of the estimates of starts: by the age of waiting, and by ClusterQueue.

        Estimates at submission and after 5, 15 and 60 minutes of waiting are kept for 30 days, and judged when the
        workload starts.
        """
        since = timezone.now() - timedelta(hours=_hours(request))
        visible = VisibleNames(self.access, self.cluster)
        return Response(accuracy_json(self.cluster, since, visible.cluster_queues))


def _hours(request: Request) -> int:
    text = request.query_params.get(_HOURS, "") or str(_DEFAULT_HOURS)
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_HOURS):
        raise ValidationError({_HOURS: f"Invalid value: {text!r}: must be a number from 1 to {_MAX_HOURS}."})
    return int(text)
