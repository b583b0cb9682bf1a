"""Service accounts."""

from django.conf import settings
from django.db import models


class ServiceAccount(models.Model):
    """Marks a user as a service account: it has no password, and cluster admins create its tokens."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="service_account",
        help_text="The user whose tokens act for the service.",
    )
    description = models.CharField(max_length=200, blank=True, help_text="The purpose of the account.")
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the account was created.")

    class Meta:
        ordering = ["user"]

    def __str__(self) -> str:
        return str(self.user)
