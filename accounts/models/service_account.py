"""Service accounts."""

from django.conf import settings
from django.db import models


class ServiceAccount(models.Model):
    """Marks a user as a service account: it has no password, and cluster admins create its tokens."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="service_account")
    description = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user"]

    def __str__(self) -> str:
        return str(self.user)
