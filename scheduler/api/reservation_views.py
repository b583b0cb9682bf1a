"""The calendar of reservations over REST, and the effects of a reservation before it is made."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.fields import Text
from accounts.api.scope import ClusterView, json_object
from queues.api.configuration_serializers import serializer_of
from queues.kinds import KINDS
from queues.models import Reservation
from queues.services.configuration import apply_json
from scheduler.store.reserved_windows import (
    MAX_WINDOWS,
    NodeUser,
    ShownWindow,
    holders_against,
    nodes_of,
    users_of,
    waiting_against,
    windows_between,
)
from scheduling.model.times import rfc3339
from scheduling.reservations.reservation import Admittance, BusyPolicy, Recurrence, Window, WindowState

KIND: Final = "Reservation"
MAX_DAYS: Final = 92
MAX_BUSY: Final = 20
MAX_HOLDERS: Final = 100
_LAST_YEAR: Final = 9000
"""Later windows could end beyond the last year of a date."""


class AdmittanceSerializer(serializers.Serializer[Any]):
    """The namespaces, queues and users whose workloads may use the nodes. One match suffices."""

    namespaces = serializers.ListField(child=serializers.CharField())
    local_queues = serializers.ListField(child=serializers.CharField(), help_text="As namespace/name.")
    cluster_queues = serializers.ListField(child=serializers.CharField())
    users = serializers.ListField(child=serializers.CharField())


class BusyWorkloadSerializer(serializers.Serializer[Any]):
    """A workload that uses reserved nodes and is not allowed there."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    node_count = serializers.IntegerField(help_text="The number of reserved nodes that it uses.")


class ReservationWindowSerializer(serializers.Serializer[Any]):
    """A window of a reservation."""

    reservation = serializers.CharField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    state = serializers.ChoiceField([state.value for state in WindowState])
    recurrence = serializers.ChoiceField([recurrence.value for recurrence in Recurrence])
    maintenance = serializers.BooleanField(help_text="Whether no workload may use the nodes.")
    if_busy = serializers.ChoiceField([policy.value for policy in BusyPolicy])
    comment = serializers.CharField(allow_blank=True)
    allowed = AdmittanceSerializer(allow_null=True, help_text="Null for readers who do not see all namespaces.")
    nodes = serializers.ListField(child=serializers.CharField(), help_text="The present nodes of the reservation.")
    busy = BusyWorkloadSerializer(
        many=True,
        help_text=f"At most {MAX_BUSY} workloads that the reader may see, for a window that is open now.",
    )
    busy_count = serializers.IntegerField(help_text="The number of all such workloads.")


class CalendarSerializer(serializers.Serializer[Any]):
    """The windows of a period, by their starts."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    truncated = serializers.BooleanField(help_text=f"Whether there are more than {MAX_WINDOWS:,} windows.")
    windows = ReservationWindowSerializer(many=True)


class CalendarQuery(serializers.Serializer[Any]):
    """The requested period."""

    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)


class ReservationCalendarView(ClusterView):
    """`reservation-calendar/`."""

    serializer_class = CalendarSerializer
    queryset = Reservation.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("since", {"type": "string", "format": "date-time"}, description="Now by default."),
            OpenApiParameter(
                "until",
                {"type": "string", "format": "date-time"},
                description=f"A week after `since` by default; at most {MAX_DAYS} days after it.",
            ),
        ],
        responses=CalendarSerializer,
    )
    def get(self, request: Request) -> Response:
        """List the windows in which nodes are reserved, with their states.

        Every user with a role may read it. It names the workloads of namespaces that the reader may see, and shows
        readers of all namespaces which workloads a reservation allows.
        """
        since, until = _period(request)
        shown, truncated = windows_between(self.cluster, since.timestamp(), until.timestamp(), time.time())
        return Response(
            {
                "since": rfc3339(since),
                "until": rfc3339(until),
                "truncated": truncated,
                "windows": [self._window(each) for each in shown],
            }
        )

    def _window(self, shown: ShownWindow) -> dict[str, Any]:
        rule = shown.rule
        busy = [user for user in shown.busy if self.access.sees(user.namespace)]
        return {
            "reservation": rule.name,
            **_times(shown.window),
            "state": shown.state.value,
            "recurrence": rule.recurrence.value,
            "maintenance": rule.allowed.is_maintenance,
            "if_busy": rule.if_busy.value,
            "comment": shown.comment,
            "allowed": _allowed(rule.allowed) if self.access.sees_everything else None,
            "nodes": list(shown.nodes),
            "busy": [
                {
                    "namespace": user.namespace,
                    "name": user.name,
                    "node_count": len(user.nodes.intersection(shown.nodes)),
                }
                for user in busy[:MAX_BUSY]
            ],
            "busy_count": len(shown.busy),
        }


class WindowTimesSerializer(serializers.Serializer[Any]):
    """The start and the end of a window."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class ReservationHolderSerializer(serializers.Serializer[Any]):
    """A workload on the nodes that would not be allowed there, and that may run into the window."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    cluster_queue = serializers.CharField(allow_blank=True)
    nodes = serializers.ListField(child=serializers.CharField(), help_text="The reserved nodes that it uses.")
    ends_at = serializers.DateTimeField(allow_null=True, help_text="By its time limit; null without one.")
    evicted = serializers.BooleanField(help_text="Whether it would be evicted at the start of the window.")


class ClosedOutSerializer(serializers.Serializer[Any]):
    """Numbers of waiting workloads that could not use the nodes if they started now."""

    without_limit = serializers.IntegerField()
    too_long = serializers.IntegerField(
        help_text="The number of workloads with a time limit that reaches into the window."
    )


class ReservationPreviewSerializer(serializers.Serializer[Any]):
    """The effects of a reservation, if it were made now."""

    window = WindowTimesSerializer(allow_null=True, help_text="The present or next window; null: all are over.")
    nodes = serializers.ListField(child=serializers.CharField())
    holders = ReservationHolderSerializer(many=True, help_text=f"At most {MAX_HOLDERS}.")
    holder_count = serializers.IntegerField(help_text="The number of all of them.")
    waiting = ClosedOutSerializer()


class ReservationRequest(serializers.Serializer[Any]):
    """The name of the reservation; the other fields are those of the kind."""

    name = Text(max_length=253)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Include the fields of the kind."""
        return {**serializer_of(KIND)().get_fields(), **super().get_fields()}


class ReservationPreviewView(ClusterView):
    """`reservation-calendar/preview/`."""

    serializer_class = ReservationPreviewSerializer
    queryset = Reservation.objects.none()

    @extend_schema(
        operation_id="reservation_calendar_preview",
        request=ReservationRequest,
        responses={200: ReservationPreviewSerializer},
    )
    def post(self, request: Request) -> Response:
        """Return the workloads that a reservation would evict or wait for; nothing is stored.

        It also counts the waiting workloads that could not use the nodes if they started now. If a reservation has the
        name, the effects are those of its replacement.
        """
        self.access.require("submit", KIND)
        body = json_object(request.data)
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise ValidationError({"name": "Required value: name the reservation."})
        with transaction.atomic():
            apply_json(self.cluster, KINDS[KIND], body, name=name, actor=self.access.username)
            row = Reservation.objects.get(cluster=self.cluster, name=name)
            transaction.set_rollback(True)
        # Without the lock of the configuration, for which the scheduler's batches wait.
        return Response(self._effects(row))

    def _effects(self, row: Reservation) -> dict[str, Any]:
        now = time.time()
        rule = KINDS[KIND].core_value(row)
        nodes = nodes_of(self.cluster, [rule])[rule.name]
        window = rule.window(now)
        holders: list[NodeUser] = []
        without_limit = too_long = 0
        if window is not None:
            start = datetime.fromtimestamp(window.starts_at, UTC)
            against = holders_against(rule, nodes, users_of(self.cluster, nodes))
            holders = [user for user in against if user.ends_at is None or user.ends_at > start]
            without_limit, too_long = waiting_against(self.cluster, rule, window, now)
        return {
            "window": None if window is None else _times(window),
            "nodes": list(nodes),
            "holders": list(_holders(holders[:MAX_HOLDERS], nodes, evicted=rule.if_busy is BusyPolicy.EVICT)),
            "holder_count": len(holders),
            "waiting": {"without_limit": without_limit, "too_long": too_long},
        }


def _holders(users: Iterable[NodeUser], nodes: Iterable[str], *, evicted: bool) -> Iterable[dict[str, Any]]:
    for user in users:
        yield {
            "namespace": user.namespace,
            "name": user.name,
            "cluster_queue": user.cluster_queue,
            "nodes": sorted(user.nodes.intersection(nodes)),
            "ends_at": None if user.ends_at is None else rfc3339(user.ends_at, whole_seconds=True),
            "evicted": evicted and not user.chosen.isdisjoint(nodes),
        }


def _period(request: Request) -> tuple[datetime, datetime]:
    query = CalendarQuery(data=request.query_params.dict())
    query.is_valid(raise_exception=True)
    for name, moment in query.validated_data.items():
        if moment.year >= _LAST_YEAR:
            raise ValidationError({name: f"Invalid value: must be before the year {_LAST_YEAR}."})
    since = query.validated_data.get("since") or timezone.now()
    until = query.validated_data.get("until") or since + timedelta(days=7)
    if until <= since:
        raise ValidationError({"until": "Invalid value: it must be later than since."})
    if until - since > timedelta(days=MAX_DAYS):
        raise ValidationError({"until": f"Invalid value: at most {MAX_DAYS} days after since."})
    return since, until


def _times(window: Window) -> dict[str, str]:
    return {"starts_at": rfc3339(window.starts_at), "ends_at": rfc3339(window.ends_at)}


def _allowed(allowed: Admittance) -> dict[str, list[str]]:
    return {
        "namespaces": sorted(allowed.namespaces),
        "local_queues": sorted(allowed.local_queues),
        "cluster_queues": sorted(allowed.cluster_queues),
        "users": sorted(allowed.users),
    }
