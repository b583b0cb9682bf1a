"""An upgrade stops nothing: processes of the release before still write to tables that have new columns by then."""

from __future__ import annotations

import pytest
from django.db.migrations import AddField
from django.db.migrations.loader import MigrationLoader

APPS = ("queues", "gpus", "scheduler")
BEFORE_ANY_RELEASE = {
    ("gpus", "0001_initial"),
    ("gpus", "0002_telemetry_and_drain"),
    ("queues", "0002_telemetry_urls"),
}

ADDED = [
    pytest.param(operation, id=f"{app}.{operation.model_name}.{operation.name}")
    for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items())
    if app in APPS and (app, name) not in BEFORE_ANY_RELEASE
    for operation in migration.operations
    if isinstance(operation, AddField)
]


@pytest.mark.parametrize("added", ADDED)
def test_who_does_not_know_a_new_column_can_still_insert(added: AddField) -> None:
    assert added.field.null or added.field.has_db_default()
