"""Sends due deliveries by webhook and mail."""

from __future__ import annotations

import logging
import smtplib
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

from foundation.advisory_locks import LockedWork, try_lock
from foundation.outgoing import open_public_url, plain_words
from notifications.models import Channel, Delivery, DeliveryState, WebhookFormat
from notifications.services.webhook_formats import TELLING_FORMATS, Content, body_of, check_answer
from scheduling.model.times import rfc3339

MAX_ATTEMPTS: Final = 6
MAX_AT_ONCE: Final = 50
MAX_OF_ONE_USER: Final = 10
"""The deliveries to one user in a pass, so that no user waits for all deliveries of another."""
_PATIENCE_SECONDS: Final = 2.0
"""The time after which a user's further deliveries wait for the next pass."""
_TIMEOUT_SECONDS: Final = 5.0
_MAX_ANSWER_BYTES: Final = 65_536
_FIRST_PAUSE: Final = timedelta(seconds=10)

_log = logging.getLogger(__name__)


def deliver(now: datetime) -> int:
    """Send at most `MAX_AT_ONCE` due deliveries; return how many were sent.

    One process does this at a time. A delivery that is known not to have arrived is retried with growing pauses.
    Receivers are chosen by users and may be slow: they block one thread of the push worker, and delay other users by
    one answer each.
    """
    with try_lock(LockedWork.DELIVERIES) as mine:
        return _deliver(now) if mine else 0


def _deliver(now: datetime) -> int:
    sent = 0
    turns, seconds = Counter[int](), defaultdict[int, float](float)
    waiting: set[int] = set()
    for _ in range(MAX_AT_ONCE):
        delivery = _claim(now, waiting)
        if delivery is None:
            break
        user = delivery.notification.user_id
        began = time.monotonic()
        sent += _send(delivery, now)
        turns[user] += 1
        seconds[user] += time.monotonic() - began
        if turns[user] >= MAX_OF_ONE_USER or seconds[user] >= _PATIENCE_SECONDS:
            waiting.add(user)
    return sent


def _claim(now: datetime, waiting: Collection[int]) -> Delivery | None:
    """Return the next one that is due, committed as Sending before anything is sent; no waiting user."""
    with transaction.atomic():
        due = Delivery.objects.filter(state=DeliveryState.PENDING, next_at__lte=now).order_by("next_at", "id")
        found = (
            due.exclude(notification__user__in=waiting)
            .select_for_update(skip_locked=True, of=("self",))
            .select_related("notification__cluster", "notification__user")
            .first()
        )
        if found is not None:
            found.state = DeliveryState.SENDING
            found.attempts += 1
            found.save(update_fields=["state", "attempts"])
        return found


def _send(delivery: Delivery, now: datetime) -> bool:
    try:
        {Channel.WEBHOOK: _post, Channel.MAIL: _mail}[Channel(delivery.channel)](delivery)
    except (OSError, HTTPException, smtplib.SMTPException, ValueError) as error:
        last = delivery.attempts >= MAX_ATTEMPTS
        delivery.state = DeliveryState.FAILED if last else DeliveryState.PENDING
        delivery.next_at = now + _FIRST_PAUSE * 2 ** (delivery.attempts - 1)
        delivery.error = why = plain_words(error)
        _log.warning("Notification %s by %s, attempt %d: %s", delivery.pk, delivery.channel, delivery.attempts, why)
    else:
        delivery.state, delivery.error = DeliveryState.SENT, ""
    delivery.save(update_fields=["state", "next_at", "error"])
    return delivery.state == DeliveryState.SENT


def _post(delivery: Delivery) -> None:
    if urlsplit(delivery.target).scheme not in {"http", "https"}:
        raise ValueError(f"Unsupported value {delivery.target!r}: a webhook is an http or https URL")
    headers = {"Content-Type": "application/json", "X-Kueueweb-Delivery": str(delivery.pk)}
    form = WebhookFormat(delivery.webhook_format)
    request = urllib.request.Request(  # noqa: S310 (the scheme is checked above)
        delivery.target, orjson.dumps(body_of(form, content_of(delivery))), headers, method="POST"
    )
    with open_public_url(request, _TIMEOUT_SECONDS) as answer:
        if form in TELLING_FORMATS:
            check_answer(form, answer.read1(_MAX_ANSWER_BYTES))


def content_of(delivery: Delivery) -> Content:
    """Return the content of a webhook."""
    told = delivery.notification
    at = rfc3339(told.at.timestamp())
    return Content(told.event, told.cluster.name, told.title, told.message, _link(told.path), at)


def _mail(delivery: Delivery) -> None:
    told = delivery.notification
    body = "\n\n".join(filter(None, (told.message, _link(told.path), f"Cluster: {told.cluster.name}")))
    subject = " ".join(told.title.split())
    headers = {"Message-ID": f"<kueueweb-{delivery.pk}@{settings.EMAIL_DOMAIN}>"}
    EmailMessage(subject, body, to=[delivery.target], headers=headers).send()


def _link(path: str) -> str:
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else path
