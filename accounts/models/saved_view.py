"""Users' saved views of lists."""

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """The filters, groups, order and columns of a list, saved for one user in all their browsers."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", help_text="The user that saved the view."
    )
    page = models.CharField(max_length=32, help_text="Of which list.")
    name = models.CharField(max_length=60, help_text="The name of the view, unique on its page.")
    search = models.JSONField(help_text="{name: text}: the query of the page's address.")
    generation = models.BigIntegerField(default=1, help_text="Increases with each change.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the view was last saved.")

    class Meta:
        ordering = ["page", "name", "id"]
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="saved_view_unique")]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"
