"""Gives the tests their PostgreSQL and Valkey: addresses before the settings load, servers when a test needs them.

pytest loads it by `-p`, before pytest-django reads the settings. DATABASE_URL and REDIS_URL, where set, are used as
they are; otherwise each test process gets servers of its own on unix sockets in a temporary folder, and ends them.
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.valkey import Valkey
from tests.migrated_database import start_migrated
from tests.quick_garbage import collect_nothing_yet, collect_seldom


@contextlib.contextmanager
def short_temporary_folder() -> Iterator[Path]:
    """A folder whose path is short enough for unix sockets and which other users can pass, unlike pytest's tmp_path."""
    root = "/tmp" if len(tempfile.gettempdir()) > 40 else None
    with tempfile.TemporaryDirectory(prefix="kueueweb-test-", dir=root, ignore_cleanup_errors=True) as path:
        Path(path).chmod(0o711)  # as root, the database's server is another user
        yield Path(path)


class Services:
    """The servers of this test process. `start` is idempotent; a second, and ten after a migration changed."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._postgres: Postgres | None = None
        self._valkey: Valkey | None = None
        self._started = False
        self._cleanup = contextlib.ExitStack()

    def set_environment(self) -> None:
        """Put the servers' addresses where the settings read them, before any of them runs."""
        _keep_bytecode()
        os.environ.setdefault("SECRET_KEY", "for-tests-only-and-never-outside-them-0123456789")
        os.environ.setdefault("ADMISSION_CHECK_SIGNING_KEY", "what-receivers-of-the-tests-know-0123456789")
        os.environ.setdefault("SERVE_UNCOLLECTED_STATIC", "true")
        outside = os.environ.get("KUEUEWEB_TEST_SERVICES") != "ours"  # a parent test process has set them to its own
        if not (outside and "DATABASE_URL" in os.environ):
            self._postgres = Postgres(self._folder() / "postgres")
            os.environ["DATABASE_URL"] = self._postgres.url()
        if not (outside and "REDIS_URL" in os.environ):
            self._valkey = Valkey(self._folder() / "valkey")
            os.environ["REDIS_URL"] = self._valkey.url()
        elif worker := re.fullmatch(r"gw(\d+)", os.environ.get("PYTEST_XDIST_WORKER", "")):
            os.environ["REDIS_URL"] = _with_redis_database(os.environ["REDIS_URL"], 1 + int(worker[1]))
        if self._directory:
            os.environ["KUEUEWEB_TEST_SERVICES"] = "ours"

    def start(self) -> None:
        """Start those servers that were not given."""
        if self._started:
            return
        self._started = True
        if self._postgres:
            start_migrated(self._postgres)
        if self._valkey:
            self._valkey.start()

    @property
    def template(self) -> str | None:
        """The database from which test databases are copied, with all tables in it; None on a server that was given."""
        return "kueueweb" if self._postgres else None

    def stop(self) -> None:
        """End them and remove what they wrote."""
        if self._valkey:
            self._valkey.stop()
        if self._postgres:
            self._postgres.stop(gracefully=False)
        self._cleanup.close()

    def _folder(self) -> Path:
        if self._directory is None:
            self._directory = self._cleanup.enter_context(short_temporary_folder())
        return self._directory


def _keep_bytecode() -> None:
    """Some machines forbid bytecode; then each test run, and each process that a test starts, compiles all modules."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def _with_redis_database(url: str, database: int) -> str:
    """Each parallel test process gets a database of its own on a server that was given."""
    if url.startswith("unix:"):
        return re.sub(r"([?&]db=)\d+|$", lambda found: f"{found[1]}{database}" if found[1] else "", url, count=1)
    return re.sub(r"(//[^/]+)(/\d*)?", rf"\g<1>/{database}", url, count=1)


services = Services()
services.set_environment()
collect_nothing_yet()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Run when all tests are loaded."""
    collect_seldom()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """The last thing a test process does."""
    services.stop()
