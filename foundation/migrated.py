"""Waiting for `manage.py migrate`: a process of a new release that starts before the migrations have run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from foundation.heartbeat import touch_file
from foundation.outages import patiently

_PAUSE_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


def missing_migrations() -> list[str]:
    """Return the migrations of this release that the database lacks."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def wait_until_migrated(sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until the database has the tables of this release, and log the missing migrations meanwhile."""

    def pause(seconds: float) -> None:
        touch_file()
        sleep(seconds)

    while missing := patiently(missing_migrations, pause):
        _log.error(
            "The database lacks %d migrations of this release, the first is %s: waiting for manage.py migrate.",
            len(missing), missing[0],
        )  # fmt: skip
        connection.close()
        pause(_PAUSE_SECONDS)
