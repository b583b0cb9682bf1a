"""Keep PostgreSQL from compiling the queries of triggers.

Without nested loops their estimated costs are far above the limit from which PostgreSQL compiles, and compiling takes seconds for
each update of a workload. The sessions of kueueweb turn that off, but a connection pooler may drop their options.
"""

from django.db import migrations

FUNCTIONS = ("kueueweb_count_steps", "kueueweb_audit_workload_updates")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0024_out_of_turn")]

    operations = [
        migrations.RunSQL([f"ALTER FUNCTION {name}() SET jit = off" for name in FUNCTIONS], migrations.RunSQL.noop)
    ]
