"""Changes of rows since a checkpoint, from which each moment between two checkpoints is read."""

from django.db import models


class RowChange(models.Model):
    """A change of rows that checkpoints keep, as its undoing needs it. Triggers write it (`history/migrations/0012`)
    while recording is on; the next checkpoint takes it over."""

    at = models.DateTimeField(help_text="When the first change of its transaction was made.")
    table_name = models.CharField(max_length=63, help_text="The table of the row.")
    operation = models.CharField(max_length=1, help_text="I: inserted, U: updated, D: deleted, B: recording began.")
    row_id = models.BigIntegerField(null=True, help_text="The key of the updated or deleted row.")
    row_ids = models.JSONField(null=True, help_text="The keys of the rows that one statement inserted.")
    old = models.TextField(null=True, help_text="hstore: the columns that the change replaced; deleted: all columns.")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.operation} {self.table_name} {self.row_id or self.row_ids}"
