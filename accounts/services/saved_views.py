"""Saves, changes and deletes views of lists. Each view is visible to its owner only."""

from collections.abc import Mapping
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from accounts.models import SavedView
from accounts.services.precondition import Precondition
from foundation.exceptions import AlreadyExists, LimitReached, NotFound

MAX_VIEWS_PER_USER: Final = 200


def views_of(user: User) -> QuerySet[SavedView]:
    """Return the user's own views."""
    return SavedView.objects.filter(user=user)


def view_of(user: User, view_id: int) -> SavedView:
    """Return one of the user's own views. Raises NotFound, also for another user's view."""
    found = views_of(user).filter(pk=view_id).first()
    if found is None:
        raise NotFound(f"You have no saved view {view_id}.")
    return found


def save_view(user: User, page: str, name: str, search: Mapping[str, str]) -> SavedView:
    """Save a view under a new name. Raises AlreadyExists and LimitReached."""
    with transaction.atomic():
        _lock(user)  # serialise two requests at the same time, so that both are counted
        _check_name(user, page, name)
        if views_of(user).count() >= MAX_VIEWS_PER_USER:
            raise LimitReached(f"You have {MAX_VIEWS_PER_USER} saved views, the maximum. Delete one first.")
        return SavedView.objects.create(user=user, page=page, name=name, search=dict(search))


def change_view(
    user: User, view_id: int, changes: Mapping[str, object], precondition: Precondition | None
) -> SavedView:
    """Change a view's name or query. Raises NotFound, AlreadyExists and PreconditionFailed."""
    with transaction.atomic():
        _lock(user)
        row = view_of(user, view_id)
        if precondition is not None:
            precondition.check("SavedView", row.name, row.generation)
        name = str(changes.get("name", row.name))
        if name != row.name:
            _check_name(user, row.page, name)
        for field, value in changes.items():
            setattr(row, field, value)
        row.generation += 1  # under the lock
        row.save()
        return row


def delete_view(user: User, view_id: int, precondition: Precondition | None) -> None:
    """Delete a view. Raises NotFound and PreconditionFailed."""
    with transaction.atomic():
        _lock(user)
        row = view_of(user, view_id)
        if precondition is not None:
            precondition.check("SavedView", row.name, row.generation)
        row.delete()


def _lock(user: User) -> None:
    User.objects.select_for_update().get(pk=user.pk)


def _check_name(user: User, page: str, name: str) -> None:
    if views_of(user).filter(page=page, name=name).exists():
        raise AlreadyExists(
            f'You already have a saved view "{name}" of the page {page}. Change it, or use another name.'
        )
