"""Time series over REST, bounded, and limited to objects that the user may see."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView
from history.models import Scope, WorkloadSample
from history.services.series_reading import (
    DEVICE_METRICS,
    MAX_POINTS,
    METRICS,
    Line,
    Reader,
    Selection,
    TooFine,
    TooMany,
    Window,
    unit_of,
    window,
)
from queues.services.visibility import visibility_of
from scheduler.api.queue_status import read_numbers

_MAX_NAMES = 50
_MAX_DAYS = 400


class LineSerializer(serializers.Serializer[Any]):
    """One series: a value for each of `times`; null is a gap or not measured, never 0."""

    metric = serializers.ChoiceField(METRICS)
    name = serializers.CharField(help_text="The name of the queue, cohort or namespace; empty for the cluster.")
    flavor = serializers.CharField(help_text="The flavor of a quota series; otherwise empty.")
    resource = serializers.CharField(help_text="The resource of a quota series; otherwise empty.")
    reason = serializers.CharField(help_text="The reason of a pending_by_reason series; empty: not evaluated yet.")
    unit = serializers.CharField()
    values = serializers.ListField(child=serializers.FloatField(allow_null=True))


class HistorySerializer(serializers.Serializer[Any]):
    """Time series with common steps."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step = serializers.IntegerField(help_text="The length of a step in seconds.")
    times = serializers.ListField(
        child=serializers.IntegerField(), help_text="The starts of the steps, in seconds since the epoch."
    )
    series = LineSerializer(many=True)


def _one_name(name: str) -> str:
    if "," in name:
        raise serializers.ValidationError("must be one name: no name contains a comma")
    return name


class HistoryQuery(serializers.Serializer[Any]):
    """The requested series, their period and their step."""

    scope = serializers.ChoiceField([scope.value for scope in Scope], default=Scope.CLUSTER.value)
    flavor = serializers.CharField(default="", allow_blank=True, max_length=253)
    resource = serializers.CharField(default="", allow_blank=True, max_length=317)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    step = serializers.IntegerField(required=False, min_value=15, max_value=7 * 86_400)

    def validate_flavor(self, name: str) -> str:
        """Return the name. Lines of several flavors have no sum that means something."""
        return _one_name(name)

    def validate_resource(self, name: str) -> str:
        """Return the name. Amounts of several resources have no sum."""
        return _one_name(name)

    def validate_step(self, step: int) -> int:
        """Return a multiple of the shortest step."""
        if step % 15:
            raise serializers.ValidationError(f"{step} is not a multiple of 15 seconds, the shortest step.")
        return step


class HistoryView(ClusterView):
    """`history/`."""

    serializer_class = HistorySerializer
    queryset = WorkloadSample.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("metric", enum=list(METRICS), many=True, required=True),
            OpenApiParameter("scope", enum=[scope.value for scope in Scope], default=Scope.CLUSTER.value),
            OpenApiParameter(
                "name",
                str,
                many=True,
                description="The name of the queue, cohort, namespace or user; all of them by default.",
            ),
            OpenApiParameter("flavor", str, description="Only quota and devices of this flavor."),
            OpenApiParameter("resource", str, description="Only quota of this resource."),
            OpenApiParameter(
                "since", {"type": "string", "format": "date-time"}, description="One hour ago by default."
            ),
            OpenApiParameter("until", {"type": "string", "format": "date-time"}, description="Now by default."),
            OpenApiParameter("step", int, description="Seconds; by default, the step yields some hundreds of points."),
        ],
        responses=HistorySerializer,
    )
    def get(self, request: Request) -> Response:
        """Return time series of workloads, quota and devices.

        Tenants see their own namespaces, users and LocalQueues, and the ClusterQueues and cohorts above these. Of the
        cluster they see all devices, and otherwise the sums of their own namespaces.
        """
        query = HistoryQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        found = query.validated_data
        metrics = _listed(request, "metric", METRICS)
        grid = _window(found.get("since"), found.get("until"), found.get("step"))
        reader = Reader(self.cluster.pk, grid)
        lines: list[Line] = []
        try:
            for selection in self._selections(Scope(found["scope"]), request.query_params.getlist("name"), metrics):
                lines += reader.lines(
                    Selection(
                        selection.scope, selection.names, selection.metrics, found["flavor"], found["resource"],
                        selection.together,
                    )
                )  # fmt: skip
        except TooMany as error:
            raise ValidationError(
                {"metric": f"{error}: select one queue, flavor or resource, or use a longer step."}
            ) from error
        return Response(_answer(grid, lines))

    def _selections(self, scope: Scope, names: list[str], metrics: Collection[str]) -> list[Selection]:
        if len(names) > _MAX_NAMES:
            raise ValidationError({"name": f"{len(names)} names: at most {_MAX_NAMES}."})
        if scope is not Scope.CLUSTER:
            return [Selection(scope, self._seen(scope, names), metrics)]
        mine = self.access.visible_namespaces()
        if mine is None:
            return [Selection(scope, None, metrics)]
        whole = [metric for metric in metrics if metric in DEVICE_METRICS]
        own = [metric for metric in metrics if metric not in DEVICE_METRICS]
        selections = [Selection(scope, None, whole)] if whole else []
        return [*selections, *([Selection(Scope.NAMESPACE, sorted(mine), own, together=True)] if own else [])]

    def _seen(self, scope: Scope, names: list[str]) -> Collection[str] | None:
        """Return the names that the user may see, among the given names or among all; None means all."""
        visible = self._visible(scope, names)
        if visible is None:
            return names or None
        return [name for name in names if name in visible] if names else visible

    def _visible(self, scope: Scope, names: list[str]) -> Collection[str] | None:
        mine = self.access.visible_namespaces()
        if mine is None:
            return None
        if scope is Scope.NAMESPACE:
            return sorted(mine)
        if scope in {Scope.LOCAL_QUEUE, Scope.USER}:
            if not names:
                raise ValidationError({"name": "Required value: give it as namespace/name."})
            return [name for name in names if name.partition("/")[0] in mine]
        visibility = visibility_of(self.access, self.cluster)
        if scope is Scope.CLUSTER_QUEUE:
            return visibility.cluster_queues
        numbers = read_numbers(self.cluster)
        return visibility.cohorts(numbers.cluster_queues, numbers.cohorts)


def _listed(request: Request, name: str, known: Collection[str]) -> list[str]:
    given = list(dict.fromkeys(request.query_params.getlist(name)))
    if not given:
        raise ValidationError({name: f"Required value: one or more of {', '.join(known)}."})
    unknown = [value for value in given if value not in known]
    if unknown:
        raise ValidationError({name: f"Unsupported value {unknown[0]!r}: supported values are {', '.join(known)}."})
    return given


def _window(since: Any, until: Any, step: int | None) -> Window:
    now = timezone.now()
    until = min(until or now, now)
    since = since or until - timedelta(hours=1)
    if since >= until:
        raise ValidationError({"since": f"{since.isoformat()} is not before {until.isoformat()}."})
    if now - since > timedelta(days=_MAX_DAYS):
        raise ValidationError({"since": f"{since.isoformat()} is more than {_MAX_DAYS} days ago."})
    try:
        return window(since, until, step, now)
    except TooFine as error:
        raise ValidationError({"step": f"{step} s is too fine: {error}. Request {error.smallest} or more."}) from error
    except TooMany as error:
        raise ValidationError({"step": f"{step} s makes {error}. Request at most {MAX_POINTS} of them."}) from error


def _answer(grid: Window, lines: list[Line]) -> dict[str, Any]:
    return {
        "since": grid.since,
        "until": grid.until,
        "step": grid.step,
        "times": grid.times,
        "series": [
            {
                "metric": line.metric,
                "name": line.name,
                "flavor": line.flavor,
                "resource": line.resource,
                "reason": line.detail,
                "unit": unit_of(line.metric),
                "values": [None if value is None else round(value, 4) for value in line.values],
            }
            for line in lines
        ],
    }
