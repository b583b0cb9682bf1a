"""An upgrade stops nothing: processes of the release before still write to tables that have new columns by then."""

from __future__ import annotations

import pytest
from django.db.migrations import AddField
from django.db.migrations.loader import MigrationLoader
from django.db.models import GeneratedField

# Its `user` became `username` in the migration that added the others: the release before could not write one anyway.
REPLACED = ("rolebinding",)
APPS = ("accounts", "queues", "gpus", "scheduler", "history", "notifications")
ADDED = [
    pytest.param(operation, id=f"{app}.{operation.model_name}.{operation.name}")
    for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items())
    if app in APPS and name != "0001_initial"
    for operation in migration.operations
    if isinstance(operation, AddField) and operation.model_name not in REPLACED
]


@pytest.mark.parametrize("added", ADDED)
def test_an_older_process_can_still_insert_after_a_new_column(added: AddField) -> None:
    assert added.field.null or added.field.has_db_default() or isinstance(added.field, GeneratedField)
