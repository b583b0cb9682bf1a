"""PostgreSQL as `manage.py doctor` sees it, each fault made for real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from kueueweb.checkup.database_checks import database_checks
from kueueweb.checkup.finding import Finding

pytestmark = pytest.mark.django_db


def checks(*, before_migrate: bool = False) -> dict[str, Finding]:
    return {each.check: each for each in database_checks(before_migrate=before_migrate)}


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def restricted() -> Iterator[None]:
    """The session continues as a user without rights of its own."""
    execute("CREATE ROLE checkup_restricted")
    execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO checkup_restricted")
    execute("SET ROLE checkup_restricted")
    yield
    execute("RESET ROLE")


def test_a_database_of_this_release_is_well() -> None:
    found = checks()
    assert found["database"].message.startswith("PostgreSQL 1")
    assert {name for name, each in found.items() if each.status == "fail"} == set()
    assert found["database-migrations"].message == "none is missing"
    assert found["database-clock"].status == "ok"


def test_a_server_that_may_forget_what_it_answered_is_told_of() -> None:
    """That of the tests does not sync to disk."""
    finding = checks()["database-durability"]
    assert (finding.status, finding.remedy) == ("warn", "Set fsync to on.")


def test_a_missing_migration_is_a_fault_unless_it_is_still_to_come() -> None:
    execute("DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations WHERE app = 'history')")
    finding = checks()["database-migrations"]
    assert finding.status == "fail"
    assert "missing migrations: 1, the first is history." in finding.message
    assert "migrate" in finding.remedy
    assert checks(before_migrate=True)["database-migrations"].status == "ok"


def test_a_database_of_a_newer_release_is_refused() -> None:
    execute("INSERT INTO django_migrations (app, name, applied) VALUES ('queues', '9999_later', now())")
    for before in (True, False):
        finding = checks(before_migrate=before)["database-migrations"]
        assert (finding.status, "queues.9999_later" in finding.message) == ("fail", True)


def test_a_history_that_cannot_be_upgraded_is_refused() -> None:
    execute("DELETE FROM django_migrations WHERE app = 'accounts' AND name LIKE '0001%'")
    assert checks(before_migrate=True)["database-migrations"].status == "fail"


@pytest.mark.usefixtures("restricted")
def test_missing_rights_name_the_statement_that_grants_them() -> None:
    found = checks()
    assert found["database-rights"].remedy.startswith("GRANT CREATE ON SCHEMA")


def test_a_server_that_does_not_answer_is_the_only_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", "1")
        [finding] = database_checks(before_migrate=False)
        connection.close()
    assert (finding.check, finding.status) == ("database", "fail")
    assert "DATABASE_URL" in finding.remedy
