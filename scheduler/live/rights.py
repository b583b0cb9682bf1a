"""Notifies live streams at once when their user's permissions may have ended: on logout, revocation and deactivation.

The message only names the users whose permissions must be read again, so a lost or needless one does no harm: each
stream reads its permissions from the database every few seconds anyway.
"""

import asyncio
import logging
from collections.abc import Collection
from functools import partial
from typing import Any, Final

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.utils import timezone
from knox.models import AuthToken
from redis import RedisError

_TIMEOUT_SECONDS: Final = 0.5
_log = logging.getLogger(__name__)


def user_group(user_id: int | str) -> str:
    """Return the channel-layer group of a user's live streams."""
    return f"live-of-user.{user_id}"


def connect_signals() -> None:
    """Connect the signals that announce changes of a user's rights."""
    post_delete.connect(_token_deleted, sender=AuthToken, dispatch_uid="live-token-deleted")
    post_delete.connect(_session_deleted, sender=Session, dispatch_uid="live-session-deleted")
    post_save.connect(_user_saved, sender=get_user_model(), dispatch_uid="live-user-saved")


def _token_deleted(sender: Any, instance: AuthToken, **_: Any) -> None:
    _tell_after_commit(instance.user_id)


def _session_deleted(sender: Any, instance: Session, **_: Any) -> None:
    if instance.expire_date < timezone.now():
        return  # its streams have ended, and thousands may expire at once
    user_id = instance.get_decoded().get(SESSION_KEY)
    if user_id is not None:
        _tell_after_commit(user_id)


def _user_saved(
    sender: Any, instance: Any, created: bool, update_fields: Collection[str] | None = None, **_: Any
) -> None:
    if not created and (update_fields is None or set(update_fields) != {"last_login"}):
        _tell_after_commit(instance.pk)


def _tell_after_commit(user_id: int | str) -> None:
    transaction.on_commit(partial(_tell, user_id))


def _tell(user_id: int | str) -> None:
    """Send the message. Without Redis, streams notice at their next regular check."""
    try:
        async_to_sync(_send)(user_id)
    except (RedisError, OSError) as error:
        _log.warning("The live streams of user %s could not be notified of changed permissions: %s", user_id, error)


async def _send(user_id: int | str) -> None:
    message = {"type": "rights.changed"}
    await asyncio.wait_for(get_channel_layer().group_send(user_group(user_id), message), _TIMEOUT_SECONDS)
