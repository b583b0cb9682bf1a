"""Saves, changes and deletes named objects that belong to one user and are visible to that user only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from accounts.models import ManifestTemplate, SavedView
from accounts.services.precondition import Precondition
from foundation.exceptions import AlreadyExists, LimitReached, NotFound

Row = TypeVar("Row", SavedView, ManifestTemplate)


@dataclass(frozen=True, slots=True)
class OwnObjects(Generic[Row]):
    """The objects of one model. Its rows have the columns `user`, `name` and `generation`."""

    model: type[Row]
    noun: str
    """The word for one object in messages."""
    maximum: int
    """The number that a user may have."""
    within: tuple[str, ...] = ()
    """The columns within whose values a user's names are unique."""

    def of(self, user: User) -> QuerySet[Row]:
        """Return the user's own objects."""
        return self.model._default_manager.filter(user=user)

    def one(self, user: User, pk: int) -> Row:
        """Return one of the user's own objects. Raises NotFound, also for another user's object."""
        found = self.of(user).filter(pk=pk).first()
        if found is None:
            raise NotFound(f"You have no {self.noun} {pk}.")
        return found

    def save(self, user: User, values: Mapping[str, Any]) -> Row:
        """Save an object under a new name. Raises AlreadyExists and LimitReached."""
        with transaction.atomic():
            self._lock(user)  # serialise two requests at the same time, so that both are counted
            self._check_name(user, values)
            if self.of(user).count() >= self.maximum:
                raise LimitReached(f"You have {self.maximum} {self.noun}s, the maximum. Delete one first.")
            return self.model._default_manager.create(user=user, **values)

    def change(self, user: User, pk: int, changes: Mapping[str, Any], precondition: Precondition | None) -> Row:
        """Change the name or the content of an object. Raises NotFound, AlreadyExists and PreconditionFailed."""
        with transaction.atomic():
            row = self._locked(user, pk, precondition)
            present = {field: getattr(row, field) for field in ("name", *self.within)}
            if changes.get("name", row.name) != row.name:
                self._check_name(user, {**present, **changes})
            for field, value in changes.items():
                setattr(row, field, value)
            row.generation += 1  # under the lock
            row.save()
            return row

    def delete(self, user: User, pk: int, precondition: Precondition | None) -> None:
        """Delete an object. Raises NotFound and PreconditionFailed."""
        with transaction.atomic():
            self._locked(user, pk, precondition).delete()

    def _locked(self, user: User, pk: int, precondition: Precondition | None) -> Row:
        self._lock(user)
        row = self.one(user, pk)
        if precondition is not None:
            precondition.check(self.model.__name__, row.name, row.generation)
        return row

    @staticmethod
    def _lock(user: User) -> None:
        User.objects.select_for_update().get(pk=user.pk)

    def _check_name(self, user: User, values: Mapping[str, Any]) -> None:
        key = {field: values[field] for field in ("name", *self.within)}
        if self.of(user).filter(**key).exists():
            raise AlreadyExists(f'You already have a {self.noun} "{key["name"]}". Change it, or use another name.')


SAVED_VIEWS: Final = OwnObjects(SavedView, "saved view", maximum=200, within=("page",))
MANIFEST_TEMPLATES: Final = OwnObjects(ManifestTemplate, "manifest template", maximum=100)
