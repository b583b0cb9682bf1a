"""`notifications/` and `notification-rules/`: the rules of each user, and the notifications that they caused."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from accounts.api.fields import Text, TrueOrFalse
from accounts.api.scope import ClusterView, json_object
from accounts.api.tokens import require_whole
from accounts.models import Cluster
from foundation.exceptions import LimitReached
from notifications.models import (
    CHANNELS,
    THRESHOLD_EVENTS,
    TIMED_EVENTS,
    Channel,
    Delivery,
    Event,
    Notification,
    NotificationRule,
    WebhookFormat,
)
from notifications.services.gathering import targets_of, tell
from notifications.services.occurrences import DEFAULT_MINUTES, Occurrence
from notifications.services.thresholds import DEFAULT_PERCENT

MAX_RULES_PER_USER: Final = 50
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_MAX_MINUTES: Final = 30 * 24 * 60
_QUEUE_EVENTS: Final = frozenset(
    {
        Event.QUOTA_USED,
        Event.SHARE_BELOW,
        Event.WORKLOAD_STARTED,
        Event.WORKLOAD_PREEMPTED,
        Event.WORKLOAD_FAILED,
        Event.WORKLOAD_WAITS,
        Event.QUEUE_STARVED,
    }
)
"""Events that a rule may limit to one ClusterQueue."""


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """The delivery state of a notification by webhook or mail."""

    channel = serializers.ChoiceField(CHANNELS)

    class Meta:
        model = Delivery
        fields = ["channel", "state", "attempts", "error"]


class NotificationSerializer(serializers.ModelSerializer[Notification]):
    """A notification that the user received."""

    cluster = serializers.SlugRelatedField[Cluster](slug_field="name", read_only=True)
    event = serializers.ChoiceField([event.value for event in Event])
    deliveries = DeliverySerializer(many=True)

    class Meta:
        model = Notification
        fields = ["id", "cluster", "event", "title", "message", "path", "at", "read_at", "ended_at", "deliveries"]


class NotificationStatusSerializer(serializers.Serializer[Any]):
    """The number of unread notifications, and the user's channels."""

    unread = serializers.IntegerField()
    mail_address = serializers.CharField(allow_blank=True, help_text="The mail address of the account; empty: none.")
    mail_is_configured = serializers.BooleanField(help_text="Whether this installation can send mail.")


class ReadSerializer(serializers.Serializer[Any]):
    """Notifications that the user has read."""

    ids = serializers.ListField(
        child=serializers.IntegerField(), default=list, max_length=1000, help_text="Empty: all notifications."
    )


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        name = (parts.hostname or "").encode("idna")
        return parts.scheme in {"http", "https"} and bool(name) and parts.port != 0 and not _SPACE.search(text)
    except ValueError:  # brackets without an IPv6 address, a port beyond 65535, a name that no DNS knows
        return False


class RuleSerializer(serializers.ModelSerializer[NotificationRule]):
    """A notification rule: the event, and the channels besides the page."""

    cluster = serializers.SlugRelatedField[Cluster](slug_field="name", read_only=True)
    event = serializers.ChoiceField([event.value for event in Event])
    minutes = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_MINUTES,
        allow_null=True,
        required=False,
        help_text="For events that last, such as WorkloadWaits and QuotaUsed: minutes before the event is sent.",
    )
    threshold = serializers.IntegerField(
        min_value=1,
        max_value=1000,
        allow_null=True,
        required=False,
        help_text=(
            "For DevicesIdle (busy below), QuotaUsed (used at least, of the nominal quota) and ShareBelow (used below, "
            "of the quota that the queue deserves, else of the nominal one, while workloads wait): a percentage."
        ),
    )
    webhook_format = serializers.ChoiceField(
        [form.value for form in WebhookFormat],
        required=False,
        help_text="The form of the webhook's body: json, or the form that a chat service reads.",
    )
    channels = serializers.ListField(child=serializers.ChoiceField(CHANNELS), default=list, max_length=2)
    cluster_queue = Text(
        max_length=253, required=False, allow_blank=True, help_text="Empty: every queue that the user may see."
    )
    webhook_url = Text(max_length=2048, required=False, allow_blank=True)
    enabled = TrueOrFalse(required=False)

    class Meta:
        model = NotificationRule
        fields = [
            "id", "cluster", "event", "minutes", "threshold", "cluster_queue", "channels", "webhook_url",
            "webhook_format", "enabled", "created_at",
        ]  # fmt: skip
        read_only_fields = ["created_at"]

    def validate_webhook_url(self, value: str) -> str:
        """Require an http or https URL with a host."""
        if value and not _is_web_address(value):
            raise ValidationError(f"Unsupported value {value!r}: an http or https URL is required.")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check fields that depend on each other, with their values after the change."""
        whole: dict[str, Any] = {str(name): getattr(self.instance, str(name), None) for name in self.fields} | attrs
        event = Event(whole["event"])
        self._check_channels(whole)
        if event not in TIMED_EVENTS and whole.get("minutes") is not None:
            raise ValidationError({"minutes": f"{event} is sent immediately. Leave it out."})
        if event not in THRESHOLD_EVENTS and whole.get("threshold") is not None:
            raise ValidationError({"threshold": f"{event} has no threshold. Leave it out."})
        if event not in _QUEUE_EVENTS and whole.get("cluster_queue"):
            raise ValidationError({"cluster_queue": f"{event} does not concern a queue. Leave it out."})
        if event in TIMED_EVENTS and whole.get("minutes") is None:
            attrs["minutes"] = DEFAULT_MINUTES[event]
        if event in THRESHOLD_EVENTS and whole.get("threshold") is None:
            attrs["threshold"] = DEFAULT_PERCENT[event]
        if self.instance is not None and {"event", "threshold"} & set(attrs):
            attrs["onsets"] = {}
        return attrs

    def _check_channels(self, whole: dict[str, Any]) -> None:
        channels = whole.get("channels") or []
        if Channel.WEBHOOK in channels and not whole.get("webhook_url"):
            raise ValidationError({"webhook_url": "Required value: the URL to call."})
        if Channel.MAIL in channels and not settings.EMAIL_HOST:
            raise ValidationError({"channels": "This installation cannot send mail: its operator must set EMAIL_HOST."})
        if Channel.MAIL in channels and not self.context["user"].email:
            raise ValidationError({"channels": "Your account has no mail address. A cluster admin can add one."})


class _OwnView(ClusterView):
    """Objects that belong to the caller, in the clusters that they name."""

    filter_backends: list[Any] = []
    spans_clusters = True
    writes_what_is_mirrored = False

    def user(self) -> User:
        user = self.request.user
        assert isinstance(user, User)  # Scoped has refused users without a role
        return user

    def notifications(self) -> QuerySet[Notification]:
        return Notification.objects.filter(self.reach.rows(), user=self.user())

    def rules(self) -> QuerySet[NotificationRule]:
        return NotificationRule.objects.filter(self.reach.rows(), user=self.user())

    def rule(self, rule_id: int) -> NotificationRule:
        found = self.rules().filter(pk=rule_id).first()
        if found is None:
            raise self.missing("NotificationRule", str(rule_id))
        return found

    def checked(self, data: Any, rule: NotificationRule | None = None) -> RuleSerializer:
        """Return the rule of the body; a limited token cannot. Raises ValidationError and NotPermitted."""
        require_whole(self.request)
        serializer = RuleSerializer(
            rule, data=json_object(data), partial=rule is not None, context={"user": self.user()}
        )
        serializer.is_valid(raise_exception=True)
        return serializer


class NotificationListView(_OwnView):
    """`notifications/`."""

    queryset = Notification.objects.none()
    serializer_class = NotificationSerializer
    keyset = ("-id",)

    @extend_schema(responses=NotificationSerializer(many=True), operation_id="notifications_list")
    def get(self, request: Request) -> Response:
        """List your notifications in these clusters, newest first."""
        page = self.paginate_queryset(self.notifications().select_related("cluster").prefetch_related("deliveries"))
        return self.get_paginated_response(NotificationSerializer(page, many=True).data)


class NotificationStatusView(_OwnView):
    """`notifications/status/`."""

    queryset = Notification.objects.none()
    serializer_class = NotificationStatusSerializer
    pagination_class = None

    @extend_schema(responses=NotificationStatusSerializer, operation_id="notifications_status")
    def get(self, request: Request) -> Response:
        """Return the number of unread notifications, and your channels."""
        return Response(
            {
                "unread": self.notifications().filter(read_at=None).count(),
                "mail_address": self.user().email,
                "mail_is_configured": bool(settings.EMAIL_HOST),
            }
        )


class ReadView(_OwnView):
    """`notifications/read/`."""

    queryset = Notification.objects.none()
    serializer_class = ReadSerializer

    @extend_schema(request=ReadSerializer, responses={204: None}, operation_id="notifications_read")
    def post(self, request: Request) -> Response:
        """Mark notifications as read."""
        serializer = ReadSerializer(data=json_object(request.data))
        serializer.is_valid(raise_exception=True)
        ids = serializer.validated_data["ids"]
        unread = self.notifications().filter(read_at=None)
        (unread.filter(pk__in=ids) if ids else unread).update(read_at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class RuleListView(_OwnView):
    """`notification-rules/`."""

    queryset = NotificationRule.objects.none()
    serializer_class = RuleSerializer

    @extend_schema(responses=RuleSerializer(many=True), operation_id="notification_rules_list")
    def get(self, request: Request) -> Response:
        """List your rules in these clusters."""
        page = self.paginate_queryset(self.rules().select_related("cluster"))
        return self.get_paginated_response(RuleSerializer(page, many=True).data)

    @extend_schema(request=RuleSerializer, responses={201: RuleSerializer}, operation_id="notification_rules_create")
    def post(self, request: Request) -> Response:
        """Add a notification rule. The page shows its events in any case."""
        serializer = self.checked(request.data)
        with transaction.atomic():
            # Serialise two requests at the same time, so that both are counted.
            User.objects.select_for_update().get(pk=self.user().pk)
            if NotificationRule.objects.filter(user=self.user()).count() >= MAX_RULES_PER_USER:
                raise LimitReached(f"You have {MAX_RULES_PER_USER} rules, the maximum. Delete one first.")
            rule = serializer.save(user=self.user(), cluster=self.cluster, created_at=timezone.now())
        return Response(serializer.data, status.HTTP_201_CREATED, headers={"Location": f"{request.path}{rule.pk}/"})


class RuleView(_OwnView):
    """`notification-rules/{rule_id}/`."""

    queryset = NotificationRule.objects.none()
    serializer_class = RuleSerializer

    @extend_schema(request=RuleSerializer, responses=RuleSerializer, operation_id="notification_rules_update")
    def patch(self, request: Request, rule_id: int) -> Response:
        """Change one of your rules."""
        serializer = self.checked(request.data, self.rule(rule_id))
        serializer.save()
        return Response(serializer.data)

    @extend_schema(responses={204: None}, operation_id="notification_rules_delete")
    def delete(self, request: Request, rule_id: int) -> Response:
        """Delete one of your rules. Its notifications are kept."""
        require_whole(request)
        self.rule(rule_id).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


class RuleTestThrottle(SimpleRateThrottle):
    """Limit a user to ten tests a minute: each sends a message."""

    scope = "rule-test"
    rate = "10/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"throttle-rule-test-{request.user.pk}"


class RuleTestView(_OwnView):
    """`notification-rules/{rule_id}/test/`."""

    throttle_classes = (RuleTestThrottle,)

    queryset = NotificationRule.objects.none()
    serializer_class = RuleSerializer

    @extend_schema(request=None, responses={202: None}, operation_id="notification_rules_test")
    def post(self, request: Request, rule_id: int) -> Response:
        """Send a test notification by the channels of a rule."""
        require_whole(request)
        rule = self.rule(rule_id)
        now = timezone.now()
        channels = " and ".join(targets_of(rule)) or "the page alone"
        message = f"Your rule about {rule.event} notifies you by {channels}."
        tell(rule, [Occurrence(f"test {now.isoformat()}", "This is a test", message, "/notifications")], now)
        return Response(status=status.HTTP_202_ACCEPTED)
