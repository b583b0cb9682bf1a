"""The audit: records about logins and refusals, the log of all records, and their deletion after the retention.
Triggers write the records of changes."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import orjson
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction
from django.http import HttpRequest

from accounts.models import AuditRecord, AuditVerb
from accounts.services.actor import act_as, credential, tell_actor

MAX_LINES_AT_ONCE: Final = 1000
_INSERT: Final = """
INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, message) VALUES (%s, %s, %s, %s, %s, %s)
"""
LEFT_BEHIND_SECONDS: Final = 900
"""No request takes longer than this."""
_LEFT_BEHIND: Final = """
SELECT together FROM accounts_auditpart GROUP BY together HAVING max(at) < now() - make_interval(secs => %s)
"""
_TAKE_UNSENT: Final = """
DELETE FROM accounts_auditunsent WHERE record_id IN
    (SELECT record_id FROM accounts_auditunsent ORDER BY record_id LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING record_id
"""

_log = logging.getLogger("kueueweb.audit")


def record(
    verb: AuditVerb, kind: str, *, cluster: str = "", namespace: str = "", name: str = "", message: str = ""
) -> None:
    """Write one audit entry. The database adds the user and origin."""
    tell_actor()
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [verb, kind, cluster, namespace, name, message])


@contextmanager
def one_line() -> Iterator[None]:
    """Join the changes of a request, over all its transactions, into one audit line per kind and namespace."""
    together = uuid4().hex
    _change_together(together)
    try:
        yield
    finally:
        if not connection.needs_rollback:
            _change_together("")
            _join(together)


def _change_together(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kueueweb.audit_together', %s, false)", [name])


def _join(together: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT kueueweb_join_audit(%s)", [together])


def join_left_behind() -> None:
    """Write the lines of requests whose process died before they did."""
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_BEHIND, [LEFT_BEHIND_SECONDS])
        left = [row[0] for row in cursor.fetchall()]
    for together in left:
        _join(together)


def forget_audit(days: int) -> int:
    """Delete older records. Returns their number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT kueueweb_forget_audit(%s)", [days])
        return int(cursor.fetchone()[0])


def write_unsent() -> int:
    """Log committed records that were not logged yet, at most MAX_LINES_AT_ONCE. Returns their number.

    A crash in between repeats lines but loses none.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_TAKE_UNSENT, [MAX_LINES_AT_ONCE])
            ids = [row[0] for row in cursor.fetchall()]
        for row in AuditRecord.objects.filter(id__in=ids).order_by("id").values():
            _log.info("%s", orjson.dumps(line(row), option=orjson.OPT_UTC_Z).decode())
    return len(ids)


def line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as the log and the export write it, without empty fields."""
    return {"cluster" if key == "cluster_name" else key: value for key, value in row.items() if value not in ("", None)}


def record_login(sender: Any, request: HttpRequest | None, user: AbstractBaseUser, **_: Any) -> None:
    """Receiver of `user_logged_in`."""
    act_as(user.get_username(), credential() or "password")
    record(AuditVerb.LOGIN, "Session", name=user.get_username())


def record_logout(sender: Any, request: HttpRequest | None, user: AbstractBaseUser | None, **_: Any) -> None:
    """Receiver of `user_logged_out`."""
    if user is not None:
        record(AuditVerb.LOGOUT, "Session", name=user.get_username())


def record_failed_login(sender: Any, credentials: dict[str, Any], **_: Any) -> None:
    """Receiver of `user_login_failed`."""
    record(AuditVerb.FAILED_LOGIN, "Session", name=str(credentials.get("username", ""))[:150])
