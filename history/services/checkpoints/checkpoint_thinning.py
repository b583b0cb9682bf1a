"""Deletes checkpoints: each is kept for two days, then one an hour, until CHECKPOINT_RETENTION_DAYS."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection

WHOLE: Final = timedelta(days=2)
"""Younger checkpoints are all kept."""

_THIN: Final = """
DELETE FROM history_checkpoint WHERE taken_at < %(oldest)s OR id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY cluster_id, date_trunc('hour', taken_at) ORDER BY taken_at) AS place
        FROM history_checkpoint WHERE taken_at < %(whole)s
    ) AS numbered WHERE place > 1
)
"""


def thin_checkpoints(now: datetime) -> int:
    """Delete the checkpoints that are not kept any more; return their number."""
    oldest = now - timedelta(days=settings.CHECKPOINT_RETENTION_DAYS)
    with connection.cursor() as cursor:
        cursor.execute(_THIN, {"oldest": oldest, "whole": now - WHOLE})
        return int(cursor.rowcount)
