"""Who may do what, and where."""

from enum import StrEnum

from django.conf import settings
from django.db import models


class Role(StrEnum):
    """What a user may do, each including the one before."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    ADMIN = "admin"


class RoleBinding(models.Model):
    """Gives a user a role in one namespace, or in all of them (an empty namespace); admin in all is a cluster admin."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="role_bindings")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    namespace = models.CharField(max_length=63, blank=True, help_text="Empty: all namespaces.")

    class Meta:
        ordering = ["user", "namespace"]
        constraints = [models.UniqueConstraint(fields=["user", "namespace"], name="role_binding_unique")]

    def __str__(self) -> str:
        return f"{self.user}: {self.role} in {self.namespace or 'all namespaces'}"
