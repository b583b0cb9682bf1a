"""Indexes of large tables that migrations build beside all other work."""

from __future__ import annotations

from django.apps.registry import Apps
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class BuildIndex(AddIndexConcurrently):
    """Builds an index, unless an earlier attempt has: its migration is no transaction, and can end between its steps.

    An index that is not valid is not taken as built: `migrate` drops one that an attempt left, and another process may
    still be building it.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if schema_editor.collect_sql or not self._is_built(schema_editor, to_state.apps, app_label):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def _is_built(self, schema_editor: BaseDatabaseSchemaEditor, apps: Apps, app_label: str) -> bool:
        table = apps.get_model(app_label, self.model_name)._meta.db_table
        names = [schema_editor.quote_name(self.index.name), schema_editor.quote_name(table)]
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indrelid = to_regclass(%s) AND indisvalid",
                names,
            )
            return cursor.fetchone() is not None
