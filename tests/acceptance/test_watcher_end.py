"""The watcher as a process: told to end, it ends, also while its database is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from accounts.models import Cluster
from gpus.models import Node
from tests.acceptance.processes import Processes, database_url, wait_for
from tests.factories import make_cluster
from tests.services_plugin import short_temporary_folder
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watcher() -> Iterator[Processes]:
    with short_temporary_folder() as folder, Processes(folder) as processes, ServerThread(make_simulated()) as server:
        make_cluster(server_url=server.url)
        processes.start("watcher", "manage.py", "watch_cluster", "--relist-seconds", "1")
        wait_for("the first list", lambda: Node.objects.count() == 2)
        yield processes


@contextmanager
def database_away() -> Iterator[None]:
    """Nobody gets in, and who was in is thrown out; in the end all is well again."""
    name = connection.settings_dict["NAME"]
    connection.close()
    administration = database_url().replace(f"///{name}?", "///postgres?")
    with psycopg.connect(administration, autocommit=True) as elsewhere:
        elsewhere.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        elsewhere.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            elsewhere.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def test_it_ends_when_told_to(watcher: Processes) -> None:
    assert watcher.terminate("watcher") == 0


def test_it_ends_when_told_to_while_the_database_is_away(watcher: Processes) -> None:
    with database_away():
        wait_for("its trouble", lambda: "could not be stored" in watcher.log("watcher"))
        wait_for("a failed try", lambda: "stored yet" in watcher.log("watcher"))
        assert watcher.terminate("watcher") == 0


def test_it_goes_on_when_the_database_is_back(watcher: Processes) -> None:
    with database_away():
        wait_for("its trouble", lambda: "could not be stored" in watcher.log("watcher"))
    Node.objects.all().delete()
    wait_for("what was lost", lambda: Node.objects.count() == 2)
    assert Cluster.objects.count() == 1
    assert watcher.terminate("watcher") == 0
