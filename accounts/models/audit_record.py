"""Audit records: the user, the action, the time and the origin."""

from enum import StrEnum
from typing import Self

from django.db import models
from django.db.models import Q


class AuditVerb(StrEnum):
    """The action of an audit record."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    LOGIN = "login"
    LOGOUT = "logout"
    FAILED_LOGIN = "failed-login"
    REFUSED = "refused"


class AuditRecordQuerySet(models.QuerySet["AuditRecord"]):
    """Queries for the records of an object."""

    def about(self, *names: str) -> Self:
        """Return records about the objects of these names, including entries that list several names."""
        listed = Q()
        for name in names:
            listed |= Q(name="", after__names__contains=[name])
        return self.filter(Q(name__in=names) | listed)

    def with_part(self, text: str) -> Self:
        """Records about objects whose names contain the text."""
        return self.filter(Q(name__icontains=text) | Q(name="", after__names__icontains=text))


class AuditRecord(models.Model):
    """An audit entry. Triggers write it (`scheduler/migrations/0006`), and another trigger refuses changes.

    What one statement creates by the thousand, workloads and jobs, is one entry for each namespace. It has no `name`;
    `after` has the `count`, the `names`, and the fields that all share.

    The columns about the user have defaults in the database: the user of the request (`accounts.services.actor`),
    otherwise the process.
    """

    id = models.BigAutoField(primary_key=True, help_text="The number of the record; later records have higher numbers.")
    at = models.DateTimeField(help_text="When the change was made.")
    username = models.CharField(max_length=150, help_text="Empty: nobody is logged in, or a process acts by itself.")
    credential = models.CharField(max_length=150, help_text="session, password, oidc, or token and its name.")
    process = models.CharField(max_length=128, help_text="The process, and the account of the database.")
    address = models.CharField(max_length=64, help_text="The client's address, as the trusted proxies report it.")
    user_agent = models.CharField(max_length=256, help_text="The User-Agent header of the request.")
    request_id = models.CharField(max_length=64, help_text="The identifier of the request, as in the process's log.")
    request = models.TextField(help_text="Method and path.")
    verb = models.CharField(
        max_length=16,
        choices=[(verb.value, verb.value) for verb in AuditVerb],
        help_text="The action.",
    )
    kind = models.CharField(max_length=63, help_text="The kind of the object.")
    cluster_name = models.CharField(
        max_length=63, help_text="The cluster of the object; empty for an object of no cluster."
    )
    namespace = models.CharField(max_length=63, help_text="The namespace of the object; empty if it has none.")
    name = models.CharField(max_length=512, help_text="The name of the object; empty for a record about many objects.")
    before = models.JSONField(null=True, help_text="What changed, as it was; null for what was created.")
    after = models.JSONField(null=True, help_text="What changed, as it is; null for what was deleted.")
    reason = models.TextField(help_text="Why, as the user says.")
    message = models.TextField(help_text="Why it was refused.")

    objects = AuditRecordQuerySet.as_manager()

    class Meta:
        managed = False  # its table is made by a migration; `manage.py flush` must not be able to empty it
        db_table = "accounts_auditrecord"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.username} {self.verb} {self.kind} {self.name}"
