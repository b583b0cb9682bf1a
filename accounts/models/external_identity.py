"""Users' accounts at the OpenID Connect provider."""

from django.conf import settings
from django.db import models


class ExternalIdentity(models.Model):
    """Links a user to an account of a provider. The pair (issuer, subject) never changes and is never reused. Names
    and mail addresses can be reused, so they do not identify a user."""

    issuer = models.CharField(max_length=512, help_text="The provider's URL, as in its ID tokens.")
    subject = models.CharField(max_length=255, help_text="The claim `sub` of its ID tokens.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="external_identities",
        help_text="The user that logs in by this account.",
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the account first logged in.")

    class Meta:
        ordering = ["user_id", "issuer", "subject"]
        verbose_name_plural = "external identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="external_identity_of_one_user")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
