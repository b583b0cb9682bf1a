"""Users who come from an OpenID Connect provider: created at their first login, in the provider's groups at each."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts.models import ExternalIdentity

MAX_GROUPS: Final = 1000
_MAX_GROUP_NAME: Final = 150

_log = logging.getLogger(__name__)


class Refusal(StrEnum):
    """Why a login by the provider failed; the login page has a sentence for each."""

    CANCELLED = "Cancelled"
    DEACTIVATED = "Deactivated"
    INVALID_ANSWER = "InvalidAnswer"
    INVALID_NAME = "InvalidName"
    NAME_TAKEN = "NameTaken"
    THROTTLED = "Throttled"
    UNREACHABLE = "Unreachable"


class LoginRefused(Exception):
    """A refused login by the provider. `who` is the name in the audit, `message` is for operators."""

    def __init__(self, reason: Refusal, message: str, who: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.who = who


@dataclass(frozen=True, slots=True)
class Claims:
    """A provider's claims about a user."""

    issuer: str
    subject: str
    username: str
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    groups: Sequence[str] = ()

    @property
    def who(self) -> str:
        return self.username or self.subject


def user_of(claims: Claims) -> User:
    """Return the user with this identity, in exactly the groups of the claims; create it if it is new. Raises
    LoginRefused.

    A local account of the same name is never taken over: a user who can choose their name at the provider would get its
    roles.
    """
    try:
        return _user_of(claims)
    except IntegrityError:  # another login has created the user at the same time
        return _user_of(claims)


@transaction.atomic
def _user_of(claims: Claims) -> User:
    found = ExternalIdentity.objects.select_related("user").filter(issuer=claims.issuer, subject=claims.subject)
    identity = found.first()
    user = identity.user if identity else _create(claims)
    if not user.is_active:
        raise LoginRefused(Refusal.DEACTIVATED, f"user {user.username} is disabled", user.username)
    _update(user, claims)
    return user


def _create(claims: Claims) -> User:
    if not claims.username:
        raise LoginRefused(Refusal.INVALID_NAME, "the provider sent no user name", claims.who)
    name = User.normalize_username(claims.username)
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as error:
        message = f"{name!r} is not a valid user name: {' '.join(error.messages)}"
        raise LoginRefused(Refusal.INVALID_NAME, message, claims.who) from error
    if User.objects.filter(username__iexact=name).exists():
        message = (
            f"the name {name} belongs to another account; to link the two, add an external identity with "
            f"issuer {claims.issuer} and subject {claims.subject} to it on the admin site"
        )
        raise LoginRefused(Refusal.NAME_TAKEN, message, claims.who)
    user = User.objects.create_user(name)  # without a password
    ExternalIdentity.objects.create(issuer=claims.issuer, subject=claims.subject, user=user)
    return user


def _update(user: User, claims: Claims) -> None:
    """Update the user from the provider's claims. Unchanged rows are not written."""
    said = {
        "email": claims.email[:254],
        "first_name": claims.first_name[:150],
        "last_name": claims.last_name[:150],
    }
    changed = [name for name, value in said.items() if getattr(user, name) != value]
    for name in changed:
        setattr(user, name, said[name])
    if changed:
        user.save(update_fields=changed)
    names = _usable_groups(claims)
    known = {group.name: group for group in Group.objects.filter(name__in=names)}
    for name in names - set(known):
        known[name] = Group.objects.get_or_create(name=name)[0]
    user.groups.set(known.values())


def _usable_groups(claims: Claims) -> set[str]:
    names = {name for name in claims.groups if name and len(name) <= _MAX_GROUP_NAME and "\0" not in name}
    if len(names) < len(set(claims.groups)):
        _log.warning("%s: groups with empty or overlong names are ignored", claims.who)
    if len(names) > MAX_GROUPS:
        _log.warning("%s is in %d groups; only the first %d are used", claims.who, len(names), MAX_GROUPS)
        names = set(sorted(names)[:MAX_GROUPS])
    return names
