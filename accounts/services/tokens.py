"""Creates, lists and revokes users' tokens. They end when the account is deactivated or its password changes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from knox.models import AuthToken
from knox.settings import knox_settings

from accounts.models import TokenDetails, TokenScope
from accounts.services.token_scope import WHOLE, Scope
from foundation.exceptions import LimitReached, NotFound

_USE_IS_NOTED_EVERY: Final = timedelta(minutes=1)


def create_token(
    user: AbstractBaseUser,
    name: str = "",
    *,
    scope: str = TokenScope.ADMINISTER,
    namespaces: Sequence[str] = (),
    clusters: Sequence[str] = (),
    lifetime: timedelta | None = None,
) -> tuple[str, TokenDetails]:
    """Create a token, which is shown only once; returns it and what is stored of it. Raises LimitReached.

    It expires after TOKEN_DAYS or earlier. It never permits more than its user may do.
    """
    with transaction.atomic():
        _check_limit(user)
        row, token = AuthToken.objects.create(
            user, expiry=min(lifetime or knox_settings.TOKEN_TTL, knox_settings.TOKEN_TTL)
        )
        details = TokenDetails.objects.create(
            token=row, name=name, scope=scope, namespaces=list(namespaces), clusters=list(clusters)
        )
        return token, details


def scope_of_token(token: AuthToken) -> Scope:
    """Return the scope of the token."""
    row = TokenDetails.objects.filter(token_id=token.pk).values("scope", "namespaces", "clusters").first()
    if row is None:
        return WHOLE
    return Scope(row["scope"], frozenset(row["namespaces"]), frozenset(row["clusters"]))


def _check_limit(user: AbstractBaseUser) -> None:
    limit = settings.MAX_TOKENS_PER_USER
    if not limit:
        return
    # Serialise two requests at the same time, so that both are counted.
    get_user_model().objects.select_for_update().get(pk=user.pk)
    there = _good_tokens(user, timezone.now()).count()
    if there >= limit:
        raise LimitReached(
            f"User {user.get_username()} has {there:,} tokens and may have {limit:,}. No token was created. "
            "Revoke unused ones: GET /api/v1/auth/tokens/ shows when each was last used. An operator of "
            "kueueweb can raise MAX_TOKENS_PER_USER."
        )


def _good_tokens(user: AbstractBaseUser, now: datetime) -> QuerySet[TokenDetails]:
    return TokenDetails.objects.filter(Q(token__expiry=None) | Q(token__expiry__gt=now), token__user_id=user.pk)


def note_use(token: AuthToken, now: datetime) -> None:
    """Record the use of the token, at most once a minute, so that a busy tool causes few writes."""
    unnoted = Q(last_used=None) | Q(last_used__lte=now - _USE_IS_NOTED_EVERY)
    TokenDetails.objects.filter(unnoted, token_id=token.pk).update(last_used=now)


def tokens_of(user: AbstractBaseUser, now: datetime) -> QuerySet[TokenDetails, Any]:
    """Return the user's valid tokens: id, name, creation, expiry and last use."""
    found = _good_tokens(user, now)
    return found.values(
        "id",
        "name",
        "scope",
        "namespaces",
        "clusters",
        created_at=F("token__created"),
        expires_at=F("token__expiry"),
        last_used_at=F("last_used"),
    )


def token_name(token: AuthToken) -> str:
    """Return the token's name, or its id if it has none."""
    details = TokenDetails.objects.filter(token=token).first()
    return str(details) if details else ""


def revoke_token(user: AbstractBaseUser, token_id: UUID) -> None:
    """Revoke a token of the user. Raises NotFound if it does not exist or belongs to another user."""
    deleted, _ = AuthToken.objects.filter(user_id=user.pk, details__id=token_id).delete()
    if not deleted:
        raise NotFound(f'token "{token_id}" not found')


def revoke_tokens(user: AbstractBaseUser) -> None:
    """Revoke all tokens of the user."""
    AuthToken.objects.filter(user_id=user.pk).delete()


class RevokeTokens:
    """Revokes tokens when a password changes. It is a password validator because Django calls these at every change."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Accept any password."""

    def password_changed(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Revoke all tokens, because an attacker who knew the old password may have created some."""
        if user is not None and user.pk is not None:
            revoke_tokens(user)

    def get_help_text(self) -> str:
        return "Changing the password revokes all tokens."


def revoke_of_inactive(sender: Any, instance: AbstractBaseUser, **_: Any) -> None:
    """Receiver of post_save of users: a deactivated user loses all tokens, also for a later reactivation."""
    if not instance.is_active:
        revoke_tokens(instance)
