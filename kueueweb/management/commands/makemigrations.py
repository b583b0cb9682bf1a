"""Django's makemigrations, for which a changed help text is no change.

Help texts are in no table. Without this, each better wording would be a migration, and those of kinds, which models get
from the declarations, would stand in migrations a second time.
"""

from typing import Any

from django.core.management.commands import makemigrations
from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector


class WithoutHelp(MigrationAutodetector):
    """Compares fields without their help texts."""

    def deep_deconstruct(self, obj: Any) -> Any:
        """Deconstruct as Django does, without the help of a field."""
        found = super().deep_deconstruct(obj)
        if isinstance(obj, models.Field):
            found[2].pop("help_text", None)
        return found


class Command(makemigrations.Command):
    """Django's, without help texts."""

    autodetector = WithoutHelp
