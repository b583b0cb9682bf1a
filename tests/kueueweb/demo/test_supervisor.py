"""The supervisor on small processes: it restarts, gives up, stops all, and nothing outlives it."""

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from kueueweb.demo.processes import Process
from kueueweb.demo.supervisor import ProcessBroken, Supervisor
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.valkey import Valkey
from tests.patience import PATIENCE_SECONDS
from tests.services_plugin import short_temporary_folder

STAYS = "import sys, time; print('up', flush=True); time.sleep(60)"


def python(name: str, code: str) -> Process:
    return Process(name, (sys.executable, "-c", code))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Supervisor:
    return Supervisor(tmp_path, os.environ, tmp_path / "logs", said.append)


def test_it_stops_in_reverse_order(supervisor: Supervisor, tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        "    with open('ended', 'a') as file: file.write(sys.argv[1])\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        "time.sleep(60)\n"
    )
    for name in "abc":
        supervisor.start(Process(name, (sys.executable, "-c", code, name)))
    waiting = threading.Event()
    while not all((tmp_path / name).exists() for name in "abc"):
        waiting.wait(0.01)
    supervisor.stop()
    assert (tmp_path / "ended").read_text() == "cba"


def test_what_ends_is_started_again_and_said(supervisor: Supervisor, said: list[str]) -> None:
    once = python(
        "once", "import os, sys, time\nif os.path.exists('ran'): time.sleep(60)\nopen('ran', 'w'); sys.exit(3)"
    )
    with supervisor:
        supervisor.start(once)
        while not said:
            supervisor.revive()
        assert "once ended with 3 and is restarted" in said[0]


def test_a_process_that_keeps_ending_is_given_up_with_its_output(supervisor: Supervisor, said: list[str]) -> None:
    def revive_for_long() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            supervisor.revive_until(failures=3)
            time.sleep(0.01)

    with supervisor:
        supervisor.start(python("stays", STAYS))
        supervisor.start(python("broken", "import sys; sys.exit('no cheese')"))
        with pytest.raises(ProcessBroken, match=r"broken is not running(.*\n)+no cheese\nno cheese\nno cheese$"):
            revive_for_long()
    assert len(said) == 3


def test_a_failing_process_is_restarted_with_growing_delays_and_stops_no_other(
    supervisor: Supervisor, said: list[str]
) -> None:
    """The fifth end within a minute shut the whole demo down."""
    with supervisor:
        supervisor.start(python("stays", STAYS))
        supervisor.start(python("broken", "import sys; sys.exit('no cheese')"))
        waiting = threading.Event()
        while len(said) < 4:
            supervisor.revive()
            waiting.wait(0.01)
        when = [line.partition("restarted ")[2].partition(" (")[0] for line in said]
        assert when == ["now", "in 1 s", "in 2 s", "in 4 s"]
        assert next(iter(supervisor._running.values())).poll() is None


def test_servers_that_are_killed_serve_again(supervisor: Supervisor, said: list[str]) -> None:
    with short_temporary_folder() as folder, ExitStack() as stack:
        postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
        stack.callback(postgres.stop, gracefully=False)
        stack.callback(valkey.stop)
        for name, server in (("postgres", postgres), ("valkey", valkey)):
            server.start()
            supervisor.keep(name, server)
            assert server.pid is not None
            psutil.Process(server.pid).kill()
            waiting = threading.Event()
            while server.running:
                waiting.wait(0.01)
        supervisor.revive()
        while not (postgres.running and valkey.running):
            supervisor.revive()
        assert [line.split()[0] for line in said][:2] == ["postgres", "valkey"]
        with psycopg.connect(postgres.url()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with redis.Redis.from_url(valkey.url()) as client:
            assert client.ping()


def test_a_failed_step_is_reported(supervisor: Supervisor) -> None:
    with pytest.raises(ProcessBroken, match="no table"):
        supervisor.run(python("seed", "import sys; sys.exit('no table')"))


def test_nothing_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\nfrom pathlib import Path\nimport django\ndjango.setup()\n"
        "from kueueweb.demo.processes import Process\nfrom kueueweb.demo.supervisor import Supervisor\n"
        "supervisor = Supervisor(Path.cwd(), os.environ, Path(sys.argv[1]), print)\n"
        f"supervisor.start(Process('a', (sys.executable, '-c', {STAYS!r})))\n"
        "print(*(child.pid for child in supervisor._running.values()), flush=True)\ntime.sleep(60)\n"
    )
    command: list[str | Path] = [sys.executable, "-c", script, tmp_path / "logs"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    child.wait(timeout=PATIENCE_SECONDS)
