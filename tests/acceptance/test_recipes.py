"""The recipes of docs/development.md, carried out on a copy of the sources: each adds a toy, lints it and tests it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes import ROOT, recipes

_LEFT_OUT = (
    ".git",
    ".venv",
    ".run",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    "__pycache__",
    "node_modules",
    "dist",
)
_OF_THE_PARENT = ("DATABASE_URL", "REDIS_URL", "KUEUEWEB_TEST_SERVICES", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the sources. Its tests start servers of their own: a recipe adds a migration."""
    copy = tmp_path / "sources"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    return copy


def run(sources: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_PARENT}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=sources, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"


def named_tests(commands: Iterator[tuple[str, ...]]) -> list[str]:
    return [name for command in commands if command[0] == "pytest" for name in command[1:]]


def test_the_recipes_work_as_they_are_written(sources: Path) -> None:
    found = recipes()
    for recipe in found:
        for edit in recipe.edits:
            edit.apply(sources)
        for command in recipe.commands:
            assert command[0] in ("python", "pytest", "make"), command
            if command[0] == "python":
                run(sources, "-W", "ignore::RuntimeWarning", *command[1:])
    changed = {edit.path for recipe in found for edit in recipe.edits if edit.path.endswith(".py")}
    run(sources, "-m", "ruff", "check", "--no-cache", *sorted(changed))
    run(sources, "-m", "ruff", "format", "--no-cache", "--check", *sorted(changed))
    # One process for all: most of the time is that of its start, and of the servers'.
    commands = (command for recipe in found for command in recipe.commands)
    run(sources, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *named_tests(commands))
