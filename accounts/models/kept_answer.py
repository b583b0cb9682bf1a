"""Stored answers for clients that repeat a request."""

from django.conf import settings
from django.db import models


class KeptAnswer(models.Model):
    """The answer to a request with an Idempotency-Key, by user and key."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The user that sent the request.",
    )
    key = models.CharField(max_length=255, help_text="The request's Idempotency-Key.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, address and body.")
    status = models.PositiveSmallIntegerField(
        default=0, help_text="The HTTP status of the answer; 0 while the first request is under way."
    )
    data = models.JSONField(null=True, help_text="The body of the answer.")
    created_at = models.DateTimeField(help_text="When the first request came.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="kept_answer_unique")]
        indexes = [models.Index(fields=["created_at"], name="kept_answer_age")]

    def __str__(self) -> str:
        return f"{self.key}: {self.status}"
