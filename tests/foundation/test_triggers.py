"""The functions of our triggers."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.mark.django_db
def test_no_function_without_nested_loops_is_compiled() -> None:
    """Its estimated costs are those of disabled loops, so a session with `jit`, as behind a pooler that drops our
    options, would compile its queries for seconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT proname, proconfig FROM pg_proc WHERE 'enable_nestloop=off' = ANY(proconfig)")
        found = dict(cursor.fetchall())
    assert "kueueweb_count_steps" in found
    assert [name for name, options in found.items() if "jit=off" not in options] == []
