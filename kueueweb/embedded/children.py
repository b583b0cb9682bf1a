"""Child processes that never outlive this one, whatever ends it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from foundation.parent_death import to_die_with


def start(
    command: Sequence[str | Path],
    *,
    output: IO[bytes] | int,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    user: str | None = None,
    parent_death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a command in its own session, so that the terminal's Ctrl-C reaches only its supervisor.

    If the kernel offers it (Linux), the command gets `parent_death_signal` as soon as this process is gone, even after
    kill -9. With `user`, which only root may set, it runs as that user, without root's groups.
    """
    return subprocess.Popen(  # noqa: S603 (the commands are this project's own)
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=dict(environment) if environment is not None else None,
        cwd=directory,
        start_new_session=True,
        # Runs after the change of user, which would clear the request, and before exec, which keeps it.
        preexec_fn=to_die_with(os.getpid(), parent_death_signal),
        user=user,
        group=_primary_group(user) if user else None,
        extra_groups=[] if user else None,
    )


def stop(
    child: subprocess.Popen[bytes], *, wish: signal.Signals = signal.SIGTERM, patience_seconds: float = 10.0
) -> None:
    """Ask a child to end, wait, and kill its whole session if it does not end."""
    if child.poll() is None:
        child.send_signal(wish)
        try:
            child.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _primary_group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid
