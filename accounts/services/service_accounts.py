"""Service accounts: they have no password, and cluster admins create their tokens."""

from django.contrib.auth.models import User
from django.db import transaction

from accounts.models import ServiceAccount
from foundation.exceptions import AlreadyExists, NotFound


def create_service_account(name: str, description: str = "") -> ServiceAccount:
    """Create a service account without roles. Raises AlreadyExists, also if a user has the name."""
    with transaction.atomic():
        user, created = User.objects.get_or_create(username=name)
        if not created:
            raise AlreadyExists(f'The name "{name}" is taken.')
        user.set_unusable_password()
        user.save(update_fields=["password"])
        return ServiceAccount.objects.create(user=user, description=description)


def service_account(name: str) -> ServiceAccount:
    """Return the service account with the name. Raises NotFound."""
    row = ServiceAccount.objects.select_related("user").filter(user__username=name).first()
    if row is None:
        raise NotFound(f'service account "{name}" not found')
    return row


def delete_service_account(name: str) -> None:
    """Delete the service account, its tokens and its roles. Raises NotFound."""
    service_account(name).user.delete()
