"""Tokens end with the password that they were made with, and with the account."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from knox.models import get_token_model


def revoke_tokens(user: AbstractBaseUser) -> None:
    """All tokens of the user are void."""
    get_token_model().objects.filter(user=user).delete()


class RevokeTokens:
    """Among the password validators, as Django tells these of every change of a password, wherever it is made."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Any password will do."""

    def password_changed(self, password: str, user: AbstractBaseUser | None = None) -> None:
        """Whoever knew the old password may have made tokens with it."""
        if user is not None and user.pk is not None:
            revoke_tokens(user)

    def get_help_text(self) -> str:
        """Shown beside the form."""
        return "Changing the password revokes all tokens."


def revoke_of_inactive(sender: Any, instance: AbstractBaseUser, **_: Any) -> None:
    """Receiver of post_save of users: who is switched off, and on again later, begins without tokens."""
    if not instance.is_active:
        revoke_tokens(instance)
