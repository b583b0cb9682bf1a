"""Reserves Idempotency-Keys, and deletes stored answers after a day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.utils import timezone

from accounts.models import KeptAnswer

KEPT: Final = timedelta(days=1)

_RESERVE: Final = """
    INSERT INTO accounts_keptanswer (user_id, key, fingerprint, status, created_at) VALUES (%s, %s, %s, 0, %s)
    ON CONFLICT (user_id, key) DO NOTHING
"""


def reserve(user_id: int, key: str, fingerprint: str) -> bool:
    """Reserve the key; return whether it is new. Waits for a request in progress with the same key."""
    now = timezone.now()
    KeptAnswer.objects.filter(user_id=user_id, key=key, created_at__lt=now - KEPT).delete()
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, [user_id, key, fingerprint, now])
        return bool(cursor.rowcount)


def forget_answers(now: datetime) -> None:
    """Delete expired answers."""
    KeptAnswer.objects.filter(created_at__lt=now - KEPT).delete()
