"""Roles and their bindings."""

import uuid
from enum import StrEnum

from django.db import models
from django.db.models import Q

from accounts.models.base import EditedObject, NamedObject


class Role(StrEnum):
    """A role. `accounts.services.access` lists its permissions."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    ADMIN = "admin"
    QUEUE_ADMIN = "queue-admin"
    AUDITOR = "auditor"


def _name() -> str:
    return f"binding-{uuid.uuid4().hex[:12]}"


class RoleBinding(EditedObject, NamedObject):
    """Grants a role to a user or a group: in one cluster or all, in one namespace or all, or below a cohort.

    An admin of all namespaces is a cluster admin. Users and groups are names, as in Kubernetes. Deleting a user deletes
    their bindings.
    """

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty: in every cluster.",
    )
    name = models.CharField(max_length=253, default=_name, help_text="The name of the binding.")
    username = models.CharField(max_length=150, blank=True)
    group = models.CharField(max_length=150, blank=True)
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    namespace = models.CharField(max_length=63, blank=True)
    cohort = models.CharField(max_length=253, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the role was granted.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="role_binding_name", nulls_distinct=False),
            models.CheckConstraint(
                condition=(Q(username="") & ~Q(group="")) | (~Q(username="") & Q(group="")),
                name="role_binding_has_one_subject",
            ),
            models.CheckConstraint(
                condition=(Q(role="queue-admin") & ~Q(cohort="")) | (~Q(role="queue-admin") & Q(cohort="")),
                name="role_binding_cohort_of_queue_admin",
            ),
        ]
        indexes = [models.Index(fields=["username"], name="role_binding_username")]

    @property
    def every_cluster(self) -> bool:
        return self.cluster_id is None

    def __str__(self) -> str:
        return f"{self.username or self.group}: {self.role} in {self.namespace or 'all namespaces'}"
