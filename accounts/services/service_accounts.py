"""Accounts of machines: without a password, their tokens made by cluster admins."""

from django.contrib.auth.models import User
from django.db import transaction

from accounts.exceptions import AlreadyExists, NotFound
from accounts.models import ServiceAccount


def create_service_account(name: str, description: str = "") -> ServiceAccount:
    """A new account, without any role. Raises AlreadyExists, also where a person has the name."""
    with transaction.atomic():
        user, created = User.objects.get_or_create(username=name)
        if not created:
            raise AlreadyExists(f'The name "{name}" is taken.')
        user.set_unusable_password()
        user.save(update_fields=["password"])
        return ServiceAccount.objects.create(user=user, description=description)


def service_account(name: str) -> ServiceAccount:
    """The account of that name. Raises NotFound."""
    row = ServiceAccount.objects.select_related("user").filter(user__username=name).first()
    if row is None:
        raise NotFound(f'service account "{name}" not found')
    return row


def delete_service_account(name: str) -> None:
    """The account, its tokens and its roles are gone. Raises NotFound."""
    service_account(name).user.delete()
