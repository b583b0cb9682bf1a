"""Finds the events that users' rules name, and records each once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts.models import Cluster
from accounts.services.access import access_of
from notifications.models import (
    THRESHOLD_EVENTS,
    Channel,
    Delivery,
    Event,
    Notification,
    NotificationRule,
    Scan,
)
from notifications.services.occurrences import HAPPENS, HOLDS, Look, Occurrence
from notifications.services.thresholds import crossed_thresholds

_OVERLAP: Final = timedelta(minutes=2)
"""A transaction may become visible later than its times. An event that is seen twice has the same key."""
_MAX_BACK: Final = timedelta(days=1)
"""After a longer pause, earlier events are not reported any more."""


def gather(cluster: Cluster, now: datetime) -> int:
    """Record the events that the cluster's rules name; return the number of new ones. One process does this at a time;
    others skip it meanwhile."""
    with transaction.atomic():
        Scan.objects.get_or_create(cluster=cluster, defaults={"until": now})
        scan = Scan.objects.select_for_update(skip_locked=True).filter(cluster=cluster).first()
        if scan is None:
            return 0
        since = max(scan.until - _OVERLAP, now - _MAX_BACK)
        told = 0
        for rule in NotificationRule.objects.filter(cluster=cluster, enabled=True).select_related("user"):
            access = access_of(rule.user, cluster)
            if access.has_any_role:
                told += _tell_about(Look(cluster, rule, access, max(since, rule.created_at), now))
        Scan.objects.filter(pk=scan.pk).update(until=now)
        return told


def _tell_about(look: Look) -> int:
    event = Event(look.rule.event)
    if event in HAPPENS:
        return tell(look.rule, tuple(HAPPENS[event](look)), look.now)
    if event in THRESHOLD_EVENTS:
        crossed = crossed_thresholds(look)
        if crossed is None:
            return 0
        found = tuple(crossed)
    else:
        found = tuple(HOLDS[event](look))
    gone = look.rule.notifications.filter(ended_at=None).exclude(key__in=[each.key for each in found])
    gone.update(ended_at=look.now)
    return tell(look.rule, found, look.now)


def tell(rule: NotificationRule, occurrences: Sequence[Occurrence], now: datetime) -> int:
    """Record the occurrences that the rule has not reported yet, with their deliveries; return their number."""
    known = set(
        Notification.objects.filter(rule=rule, ended_at=None, key__in=[each.key for each in occurrences]).values_list(
            "key", flat=True
        )
    )
    news = [each for each in occurrences if each.key not in known]
    rows = Notification.objects.bulk_create(
        Notification(
            user_id=rule.user_id,
            cluster_id=rule.cluster_id,
            rule=rule,
            event=rule.event,
            key=each.key,
            title=each.title,
            message=each.message,
            path=each.path,
            at=now,
        )
        for each in news
    )
    targets = targets_of(rule)
    Delivery.objects.bulk_create(
        Delivery(notification=row, channel=channel, target=target, webhook_format=rule.webhook_format, next_at=now)
        for row in rows
        for channel, target in targets.items()
    )
    return len(rows)


def targets_of(rule: NotificationRule) -> dict[Channel, str]:
    """Return the targets of a rule by channel. A channel without an address is omitted."""
    addresses = {
        Channel.WEBHOOK: rule.webhook_url,
        Channel.MAIL: rule.user.email if settings.EMAIL_HOST else "",
    }
    return {channel: address for channel, address in addresses.items() if channel in rule.channels and address}


def forget_notifications(before: datetime) -> None:
    """Delete notifications from before this time. A notification about a state that still holds is kept; otherwise the
    state would be reported again."""
    holds = Q(event__in=[*HOLDS, *THRESHOLD_EVENTS], ended_at=None)
    Notification.objects.filter(~holds, at__lt=before).delete()
