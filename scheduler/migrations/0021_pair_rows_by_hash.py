"""Pair the rows of a statement, before and after, by hash.

PostgreSQL keeps the plan of a trigger's query from the first statement of the session. If that changed one row, it paired all later
ones by a nested loop: 62,500 comparisons for 250 rows.
"""

from django.db import migrations

FUNCTIONS = ("kueueweb_count_steps", "kueueweb_audit_workload_updates")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0020_lines_of_changes")]

    operations = [
        migrations.RunSQL(
            [f"ALTER FUNCTION {name}() SET enable_nestloop = off" for name in FUNCTIONS], migrations.RunSQL.noop
        )
    ]
