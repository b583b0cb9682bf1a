"""Databases of a test's own, on the server of the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from kueueweb.embedded.postgres import find_binaries


def postgres_tool(name: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs on the server of the tests."""
    server = connection.settings_dict
    environment = {
        **os.environ,
        "PGHOST": str(server["HOST"] or ""),
        "PGPORT": str(server["PORT"] or ""),
        "PGUSER": str(server["USER"] or ""),
        "PGPASSWORD": str(server["PASSWORD"] or ""),
    }
    environment = {key: value for key, value in environment.items() if value}
    done = subprocess.run([find_binaries() / name, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def new_database(purpose: str, like: str = "") -> Iterator[str]:
    """A database, which everybody uses until the block ends; it bears the name of the test's and a purpose.

    It is empty, or a copy of another database, which nobody uses meanwhile.
    """
    with kept_database(purpose, like) as name, database_in_use(name):
        yield name


@contextmanager
def kept_database(purpose: str, like: str = "") -> Iterator[str]:
    """The same, which nobody uses yet."""
    name = f"{connection.settings_dict['NAME']}_{purpose}"
    postgres_tool("createdb", *(["--template", like] if like else []), name)
    try:
        yield name
    finally:
        postgres_tool("dropdb", "--force", name)


@contextmanager
def database_in_use(name: str) -> Iterator[None]:
    """Everybody uses this database until the block ends."""
    before = connection.settings_dict["NAME"]
    try:
        connection.close()
        connection.settings_dict["NAME"] = name
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
