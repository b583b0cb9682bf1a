"""Clients that others wrote, against the web process: `make test-clients` builds them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.control_plane import PROGRAMS
from tests.kubernetes.test_kubectl import kubectl
from tests.users import cluster

__all__ = ["cluster", "kubectl"]

_SECONDS: Final = 120


@pytest.fixture
def program() -> Callable[[str], str]:
    """The path of a client."""

    def found(name: str) -> str:
        path = PROGRAMS / name
        assert path.exists(), "make test-clients builds the programs first"
        return str(path)

    return found


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a client: a home of its own, and kubectl on the path."""
    return {"PATH": f"{PROGRAMS}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(folder), "TERM": "xterm-256color"}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a client to its end."""
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=surroundings(folder), timeout=_SECONDS
    )
