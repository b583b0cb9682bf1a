"""Details that Knox's tokens lack: a name, a scope, the last use, and an id that reveals nothing about the token."""

import uuid
from enum import StrEnum

from django.db import models


class TokenScope(StrEnum):
    """The scope of a token, within its user's rights. Each scope includes the one before it."""

    METRICS = "metrics"
    READ = "read"
    SUBMIT = "submit"
    ADMINISTER = "administer"


class TokenDetails(models.Model):
    """The details of a token that its owner sees. Knox keys tokens by their hash and stores their first characters."""

    id = models.UUIDField(
        primary_key=True,
        default=uuid.uuid4,
        editable=False,
        help_text="The identifier of the token, which reveals nothing about it.",
    )
    token = models.OneToOneField(
        "knox.AuthToken", on_delete=models.CASCADE, related_name="details", help_text="The token, as a hash."
    )
    name = models.CharField(max_length=100, blank=True, help_text="What the token is for, as its owner calls it.")
    scope = models.CharField(
        max_length=16,
        choices=[(scope.value, scope.value) for scope in TokenScope],
        default=TokenScope.ADMINISTER,
        db_default=TokenScope.ADMINISTER,
        help_text="The part of its user's rights that the token has: metrics, read, submit or administer.",
    )
    namespaces = models.JSONField(default=list, db_default=[], help_text="[namespace, ...]; empty: all of the user's.")
    clusters = models.JSONField(default=list, db_default=[], help_text="[cluster, ...]; empty: all of the user's.")
    last_used = models.DateTimeField(null=True, help_text="To the minute; null: it has never been used.")

    class Meta:
        verbose_name_plural = "token details"

    def __str__(self) -> str:
        return self.name or str(self.id)
