"""A write to a server that follows a primary is an outage, and works once the server is promoted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from rest_framework import status

from foundation.outages import is_database_away, patiently
from foundation.postgresql.base import DatabaseWrapper
from kueueweb.api.errors import error_response
from kueueweb.embedded.postgres import Postgres
from kueueweb.logs import is_outage
from tests.services_plugin import short_temporary_folder

pytestmark = pytest.mark.django_db(transaction=True)

WRITE = "CREATE TABLE written ()"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with short_temporary_folder() as folder:
        found = Postgres(Path(folder) / "postgres")
        found.start()
        found.stop()
        (found.data / "standby.signal").touch()
        found.start()
        yield found
        found.stop(gracefully=False)


@pytest.fixture
def session(server: Postgres) -> Iterator[DatabaseWrapper]:
    address = {"HOST": str(server.directory), "NAME": "kueueweb", "USER": "kueueweb", "PORT": ""}
    found = DatabaseWrapper({**connections["default"].settings_dict, **address})
    yield found
    found.close()


def write(session: DatabaseWrapper) -> None:
    session.close_if_unusable_or_obsolete()
    with session.cursor() as cursor:
        cursor.execute(WRITE)


def test_a_refused_write_is_an_outage_until_the_replica_is_promoted(session: DatabaseWrapper) -> None:
    with pytest.raises(OperationalError, match="read-only") as refused:
        write(session)
    assert is_database_away(refused.value)
    assert is_outage(refused.value)
    answer = error_response(refused.value, {})
    assert answer is not None
    assert answer.status_code == status.HTTP_503_SERVICE_UNAVAILABLE

    def promote(_: float) -> None:
        with session.cursor() as cursor:
            cursor.execute("SELECT pg_promote()")

    patiently(lambda: write(session), promote)
    assert not session.is_replica()


def test_a_write_in_a_transaction_that_only_reads_is_a_bug() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(DatabaseError, match="read-only") as refused:
            cursor.execute(WRITE)
        transaction.set_rollback(True)
    assert not is_database_away(refused.value)
    assert not isinstance(refused.value, OperationalError)
