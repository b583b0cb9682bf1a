"""PostgreSQL's data with all migrations applied: made once, and copied for each test process.

To apply them takes ten seconds, to copy their result takes none. It is made again when a migration, Django or
PostgreSQL changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import django

from kueueweb.embedded.postgres import Postgres, find_binaries

_ROOT = Path(__file__).resolve().parent.parent
_CACHE = _ROOT / ".run" / "migrated-databases"


def start_migrated(server: Postgres) -> None:
    """Start a new server whose own database, the one of its `url()`, has all tables."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    original = _CACHE / _fingerprint()
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not original.exists():
            for older in _CACHE.glob("data-*"):
                shutil.rmtree(older)
            _make(server, original)
    if not server.data.exists():
        server.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy(original, server.data)
    server.start()


def _make(server: Postgres, original: Path) -> None:
    server.start()
    try:
        subprocess.run(
            [sys.executable, _ROOT / "manage.py", "migrate", "--verbosity", "0"],
            env=os.environ | {"DATABASE_URL": server.url()},
            check=True,
        )
    finally:
        server.stop()  # in order, so that what is copied is complete
    unfinished = original.with_name("data-unfinished")
    _copy(server.data, unfinished)
    unfinished.rename(original)


def _copy(source: Path, target: Path) -> None:
    """With its owner: the server refuses data of somebody else."""
    subprocess.run(["cp", "-a", source, target], check=True)


def _fingerprint() -> str:
    known = hashlib.sha256(f"{django.VERSION} {find_binaries()}".encode())
    for path in sorted(_ROOT.glob("*/migrations/*.py")):
        known.update(path.read_bytes())
    return f"data-{known.hexdigest()[:16]}"
