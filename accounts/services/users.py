"""Creates local users, deactivates users and sets their groups, for admins."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from foundation.exceptions import AlreadyExists, InvalidRequest, NotFound, NotPermitted
from scheduling.manifest import LocatedError, MistakeReason


def users() -> QuerySet[User]:
    """Return all users, service accounts included, with the fields of `users/`."""
    return User.objects.prefetch_related("groups", "external_identities").select_related("service_account")


def user_named(name: str) -> User:
    """Return the user with the name. Raises NotFound."""
    found = users().filter(username=name).first()
    if found is None:
        raise NotFound(f'user "{name}" not found')
    return found


def create_user(name: str, password: str, email: str = "") -> User:
    """Create a local user without roles. Raises AlreadyExists, and InvalidRequest for an invalid name or password."""
    user = User(username=User.normalize_username(name), email=email)
    try:
        User._meta.get_field("username").clean(user.username, user)
    except ValidationError as error:
        raise _invalid("username", user.username, error, "Use letters, digits and @ . + - _") from error
    _set_password(user, password)
    try:
        with transaction.atomic():
            if User.objects.filter(username__iexact=user.username).exists():
                raise AlreadyExists(f'The name "{user.username}" is taken.')
            user.save()
    except IntegrityError as error:
        raise AlreadyExists(f'The name "{user.username}" is taken.') from error
    return user


@transaction.atomic
def change_user(actor: User, name: str, changes: dict[str, Any]) -> User:
    """Activate or deactivate a user, set a new password, or replace the user's groups.

    Only superusers change superusers, and users cannot deactivate themselves. Raises NotFound, NotPermitted and
    InvalidRequest.
    """
    user = User.objects.select_for_update().filter(username=name).first()
    if user is None:
        raise NotFound(f'user "{name}" not found')
    if (user.is_superuser or user.is_staff) and not actor.is_superuser:
        raise NotPermitted(f"{name} can use the admin site: only a superuser may change this account.")
    if "is_active" in changes:
        _switch(actor, user, active=changes["is_active"])
    if "password" in changes:
        if hasattr(user, "service_account"):
            raise _not_local("password", "Service accounts have tokens instead.")
        _refuse_provided(user, "password", "The account logs in with the provider.")
        _set_password(user, changes["password"])
        user.save(update_fields=["password"])
    if "groups" in changes:
        _refuse_provided(user, "groups", "The provider sets them at each login: change them there.")
        user.groups.set([Group.objects.get_or_create(name=group)[0] for group in _group_names(changes["groups"])])
    return user_named(name)


def _switch(actor: User, user: User, *, active: bool) -> None:
    if user.pk == actor.pk and not active:
        raise NotPermitted("You can't disable your own account. Ask another admin.")
    if user.is_active != active:
        user.is_active = active
        user.save(update_fields=["is_active"])


def _refuse_provided(user: User, field: str, remedy: str) -> None:
    if user.external_identities.exists():
        raise _not_local(field, remedy)


def _not_local(field: str, remedy: str) -> InvalidRequest:
    rule = "Forbidden: it is set here for local accounts only"
    return InvalidRequest(f"{field}: {rule}", [_mistake(field, None, rule, remedy)])


def _group_names(names: Iterable[str]) -> list[str]:
    return sorted({name.strip() for name in names if name.strip()})


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise _invalid("password", None, error, "Choose a longer or less common one.") from error
    user.set_password(password)


def _invalid(field: str, value: str | None, error: ValidationError, remedy: str) -> InvalidRequest:
    rule = " ".join(error.messages)
    return InvalidRequest(f"{field}: {rule}", [_mistake(field, value, rule, remedy)])


def _mistake(field: str, value: str | None, rule: str, remedy: str) -> LocatedError:
    return LocatedError(0, field, value, rule, remedy, MistakeReason.INVALID)
