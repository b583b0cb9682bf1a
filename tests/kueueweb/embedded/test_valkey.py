"""The launcher of Valkey."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis

from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.embedded.valkey import Valkey
from tests.patience import PATIENCE_SECONDS
from tests.services_plugin import short_temporary_folder


def test_it_serves_several_databases_and_leaves_nothing() -> None:
    with short_temporary_folder() as folder:
        server = Valkey(folder / "valkey")
        server.start()
        pid = server.pid
        assert pid is not None
        with redis.Redis.from_url(server.url(0)) as first, redis.Redis.from_url(server.url(1)) as second:
            first.set("key", "value")
            assert second.get("key") is None
            assert first.get("key") == b"value"
        server.stop()
        assert not psutil.pid_exists(pid)
        assert not server.socket.exists()


def test_it_dies_with_its_parent() -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom kueueweb.embedded.valkey import Valkey\n"
        "server = Valkey(Path(sys.argv[1]))\nserver.start()\nprint(server.pid, flush=True)\ntime.sleep(60)\n"
    )
    with short_temporary_folder() as folder:
        command: list[str | Path] = [sys.executable, "-c", script, folder / "valkey"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            server = psutil.Process(int(parent.stdout.readline()))
            parent.kill()
        server.wait(timeout=PATIENCE_SECONDS)


def test_a_path_too_long_for_a_socket_is_reported() -> None:
    with pytest.raises(ServerUnavailable, match="REDIS_URL"):
        Valkey(Path("/tmp") / ("long" * 30)).start()
