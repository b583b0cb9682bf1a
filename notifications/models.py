"""Rules of users, their notifications, and the deliveries that are under way."""

from enum import StrEnum

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


class Event(StrEnum):
    """The event of a rule."""

    WORKLOAD_STARTED = "WorkloadStarted"
    WORKLOAD_PREEMPTED = "WorkloadPreempted"
    WORKLOAD_FAILED = "WorkloadFailed"
    WORKLOAD_WAITS = "WorkloadWaits"
    QUEUE_STARVED = "QueueStarved"
    DEVICE_FAILED = "DeviceFailed"
    SCHEDULER_SILENT = "SchedulerSilent"
    DEVICES_IDLE = "DevicesIdle"
    QUOTA_USED = "QuotaUsed"
    SHARE_BELOW = "ShareBelow"


THRESHOLD_EVENTS = frozenset({Event.DEVICES_IDLE, Event.QUOTA_USED, Event.SHARE_BELOW})
"""Events of figures that cross the percentage of the rule."""
TIMED_EVENTS = frozenset({Event.WORKLOAD_WAITS, Event.QUEUE_STARVED, Event.SCHEDULER_SILENT, *THRESHOLD_EVENTS})
"""Events that are reported once they have lasted for the minutes of the rule."""


class Channel(StrEnum):
    """How a user is notified in addition to the page, which shows everything."""

    WEBHOOK = "webhook"
    MAIL = "mail"


CHANNELS = tuple(channel.value for channel in Channel)


class WebhookFormat(StrEnum):
    """The form of a webhook's body."""

    JSON = "json"
    SLACK = "slack"
    TEAMS = "teams"
    FEISHU = "feishu"
    DINGTALK = "dingtalk"


_FORMATS = [(form.value, form.value) for form in WebhookFormat]


class NotificationRule(models.Model):
    """An event in a cluster of which a user wants to be notified."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", help_text="The user to notify."
    )
    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The cluster whose events count."
    )
    event = models.CharField(
        max_length=32,
        choices=[(event.value, event.value) for event in Event],
        help_text="The event, such as WorkloadPreempted.",
    )
    minutes = models.PositiveIntegerField(null=True, blank=True, help_text="How long it lasts before it is told.")
    threshold = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="The percentage that the figure of the event crosses, such as 90 of QuotaUsed."
    )
    onsets = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="By key, since when a figure is beyond the threshold.",
    )
    cluster_queue = models.CharField(max_length=253, blank=True, help_text="Empty: every queue that the user sees.")
    channels = ArrayField(
        models.CharField(max_length=8, choices=[(channel, channel) for channel in CHANNELS]),
        default=list,
        blank=True,
        help_text="[webhook, mail]: the ways of notification besides the page.",
    )
    webhook_url = models.CharField(
        max_length=2048, blank=True, help_text="The address that a webhook notification is sent to."
    )
    webhook_format = models.CharField(
        max_length=8,
        choices=_FORMATS,
        default=WebhookFormat.JSON.value,
        db_default=WebhookFormat.JSON.value,
        help_text="The form of the webhook's body: json, slack, teams, feishu or dingtalk.",
    )
    enabled = models.BooleanField(
        default=True, help_text="Whether the rule notifies; a rule that is off keeps its settings."
    )
    created_at = models.DateTimeField(help_text="When the rule was made; earlier events are not reported.")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["cluster", "event"], name="notification_rule_event")]

    def __str__(self) -> str:
        return f"{self.user}: {self.event}"


class Notification(models.Model):
    """A notification of a user. `key` identifies its event: while that lasts (`ended_at` is empty) a rule reports it
    once."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", help_text="The user to notify."
    )
    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The cluster of the event."
    )
    rule = models.ForeignKey(
        NotificationRule,
        on_delete=models.SET_NULL,
        null=True,
        related_name="notifications",
        help_text="The rule that reported the event; empty after the rule was deleted.",
    )
    event = models.CharField(max_length=32, help_text="The event, such as WorkloadPreempted.")
    key = models.CharField(max_length=700, help_text="The identity of the event within its rule.")
    title = models.CharField(max_length=700, help_text="The event in one line.")
    message = models.TextField(blank=True, help_text="The event in full.")
    path = models.CharField(max_length=1024, help_text="The path of the page that shows it.")
    at = models.DateTimeField(help_text="When the event happened.")
    read_at = models.DateTimeField(
        null=True, blank=True, help_text="When the user read the notification; empty until then."
    )
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When a reported state ended.")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["rule", "key"], condition=Q(ended_at=None), name="notification_told_once")
        ]
        indexes = [
            models.Index(fields=["user", "cluster", "-id"], name="notification_newest"),
            models.Index(fields=["user", "cluster"], condition=Q(read_at=None), name="notification_unread"),
        ]

    def __str__(self) -> str:
        return self.title


class DeliveryState(StrEnum):
    """How far a delivery is."""

    PENDING = "Pending"
    SENDING = "Sending"
    SENT = "Sent"
    FAILED = "Failed"


class Delivery(models.Model):
    """The delivery of a notification by webhook or mail.

    It is committed as Sending before it is sent. If the process ends in between it stays so and is not sent again: a
    user receives no notification twice.
    """

    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="deliveries", help_text="The notification to deliver."
    )
    channel = models.CharField(max_length=8, help_text="webhook or mail.")
    target = models.CharField(max_length=2048, help_text="The URL or the address, as it was when it was told.")
    webhook_format = models.CharField(
        max_length=8,
        choices=_FORMATS,
        default=WebhookFormat.JSON.value,
        db_default=WebhookFormat.JSON.value,
        help_text="The form of the body, as it was when it was told.",
    )
    state = models.CharField(
        max_length=8, default=DeliveryState.PENDING.value, help_text="Pending, Sending, Sent or Failed."
    )
    attempts = models.PositiveSmallIntegerField(default=0, help_text="The number of attempts so far.")
    next_at = models.DateTimeField(help_text="When the next attempt is due.")
    error = models.TextField(blank=True, help_text="The error of the last attempt.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["notification", "channel"], name="delivery_once_per_channel")]
        indexes = [models.Index(fields=["next_at"], condition=Q(state="Pending"), name="delivery_due")]

    def __str__(self) -> str:
        return f"{self.channel}: {self.notification}"


class Scan(models.Model):
    """Until when the events of a cluster were looked through."""

    cluster = models.OneToOneField(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The cluster whose events are scanned.",
    )
    until = models.DateTimeField(help_text="The time up to which events have been scanned.")

    def __str__(self) -> str:
        return f"{self.cluster}: {self.until}"
