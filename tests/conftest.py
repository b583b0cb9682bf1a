"""What all tests share: the servers, started by the first test that needs them."""

import pytest

from tests.services_plugin import services


@pytest.fixture(scope="session")
def live_services() -> None:
    """PostgreSQL and Valkey run. Tests that use the database get them without asking."""
    services.start()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None, live_services: None) -> None:
    """pytest-django's hook before it makes the test database: the place to start the server that holds it."""
