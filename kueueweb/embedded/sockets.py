"""Addresses of servers: folders for unix sockets, whose paths the kernel limits, and free ports."""

import hashlib
import os
import socket
import stat
import tempfile
from pathlib import Path

from kueueweb.embedded.errors import ServerUnavailable

_MAX_SOCKET_PATH = 103  # bytes; macOS has 104 with the closing zero, Linux 108


def check_length(path: Path) -> None:
    """Raises ServerUnavailable for a path that no unix socket can have."""
    length = len(os.fsencode(path))
    if length > _MAX_SOCKET_PATH:
        raise ServerUnavailable(
            "The server",
            "DATABASE_URL and REDIS_URL",
            f"the socket's path {path} has {length} bytes, {_MAX_SOCKET_PATH} at most.",
        )


def state_directory(project: Path) -> Path:
    """Return a short folder that belongs to this user and this copy of the project, always the same one, and create it
    if it is missing. It is in the system's temporary folder rather than in the project, because a path there is short
    enough for sockets, and because other users, as whom servers run if we are root, can reach it."""
    name = f"kueueweb-{os.geteuid()}-{hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:8]}"
    root = Path(tempfile.gettempdir())
    if len(os.fsencode(root)) > 50:
        root = Path("/tmp")  # noqa: S108 (the ownership of what is there is checked below)
    directory = root / name
    directory.mkdir(mode=0o711, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"{directory} belongs to another user; remove it, or set TMPDIR to another folder.")
    directory.chmod(0o711)
    return directory


def free_port() -> int:
    """Return a free TCP port of the loopback interface."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        port: int = candidate.getsockname()[1]
        return port
