"""What all tests share: the servers, started by the first test that needs them, and how long properties are tried."""

from collections.abc import Iterator

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings
from whitenoise.middleware import WhiteNoiseMiddleware

from foundation import redis_client
from tests.patience import PATIENCE_SECONDS
from tests.quick_flush import delete_rows, keep_connections
from tests.quick_servers import look_often
from tests.quick_static_files import add_files_once
from tests.services_plugin import services

# `pytest --hypothesis-profile=long`, as in `make fuzz`, tries each property on 2,000 examples. With CI set, Hypothesis
# takes its own profile: here as many examples as at home, but the same each time.
settings.register_profile("normal", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("normal"), max_examples=2_000)
settings.register_profile("ci", settings.get_profile("ci"), max_examples=40)
if settings.get_current_profile_name() in ("default", "ci"):
    settings.load_profile("ci" if settings.get_current_profile_name() == "ci" else "normal")


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> None:
    """Most tests make users, and none of them is about how long a password takes to guess."""
    django_settings.PASSWORD_HASHERS = ["tests.quick_passwords.QuickHasher"]


@pytest.fixture(scope="session", autouse=True)
def quick_static_files() -> Iterator[None]:
    """Each test's client starts the middleware anew; the static files stay the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add_files_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_servers() -> Iterator[None]:
    """A test does not wait for its servers to look whether they should end."""
    with pytest.MonkeyPatch.context() as patch:
        look_often(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_requests() -> None:
    """The clients of the processes, by which most tests work, wait for no other request to a simulated cluster."""
    django_settings.KUBERNETES_REQUESTS_PER_SECOND = django_settings.KUBERNETES_REQUEST_BURST = 10_000.0


@pytest.fixture(scope="session", autouse=True)
def slow_machine() -> Iterator[None]:
    """Redis may answer after half a second without being away, and an engine decides all it can in each run."""
    from tests.engines import take_their_time

    with pytest.MonkeyPatch.context() as patch:
        take_their_time(patch)
        for name in ("socket_timeout", "socket_connect_timeout"):
            patch.setitem(redis_client._OPTIONS, name, PATIENCE_SECONDS)
        patch.setattr("scheduler.live.rights._TIMEOUT_SECONDS", PATIENCE_SECONDS)
        patch.setattr("studio.services.live_answers._TIMEOUT_SECONDS", PATIENCE_SECONDS)
        yield


@pytest.fixture(scope="session")
def live_services() -> None:
    """PostgreSQL and Valkey run. Tests that use the database get them without asking."""
    services.start()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, live_services: None
) -> Iterator[None]:
    """pytest-django's hook before it makes the test database: the place to start the server that holds it."""
    connection.settings_dict["TEST"] |= {"TEMPLATE": services.template, "MIGRATE": services.template is None}
    with pytest.MonkeyPatch.context() as patch:
        if services.template:
            patch.setattr(TransactionTestCase, "_fixture_teardown", delete_rows)
            patch.setattr(TransactionTestCase, "_should_reload_connections", keep_connections)
        yield
