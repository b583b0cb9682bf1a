"""Users' own templates of manifests."""

from typing import Final

from django.conf import settings
from django.db import models

MAX_MANIFEST: Final = 65536
"""Characters of a template's manifest."""


class ManifestTemplate(models.Model):
    """A manifest that a user saved to submit it again, in all their browsers."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The user that saved the template.",
    )
    name = models.CharField(max_length=60, help_text="The name of the template.")
    manifest = models.TextField(max_length=MAX_MANIFEST, help_text="YAML or JSON, as the user wrote it.")
    generation = models.BigIntegerField(default=1, help_text="Increases with each change.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the template was last saved.")

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="manifest_template_unique")]

    def __str__(self) -> str:
        return self.name
