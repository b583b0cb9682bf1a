"""docs/development.md: its edits fit the sources. `tests/acceptance/test_recipes.py` carries them out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.recipes import ROOT, recipes

SUBJECTS = {
    "Add a job kind",
    "Add a vendor of devices",
    "Add a field of a kind",
    "Add a scheduling rule",
    "Add a metric",
    "Add an endpoint",
    "Add a page",
}


def test_each_recipe_has_edits_that_fit_the_sources_and_a_test(tmp_path: Path) -> None:
    found = recipes()
    assert {recipe.name for recipe in found} == SUBJECTS
    for recipe in found:
        assert any("test" in edit.path for edit in recipe.edits) or any(
            "pytest" in command for command in recipe.commands
        )
        for edit in recipe.edits:
            if not edit.new and not (tmp_path / edit.path).exists():
                (tmp_path / edit.path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / edit.path, tmp_path / edit.path)
            assert not (edit.new and (ROOT / edit.path).exists()), edit.path
            edit.apply(tmp_path)


def test_the_way_in_is_linked_where_strangers_begin() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "docs/README.md"):
        assert re.search(r"\]\((docs/)?development\.md\)", (ROOT / name).read_text(encoding="utf-8")), name


def test_each_command_of_make_that_the_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "docs" / "development.md").read_text(encoding="utf-8")))
    assert {"test-quick", "lint", "schema"} <= named <= targets


def test_test_runs_keep_their_bytecode_on_machines_that_forbid_it() -> None:
    command = [sys.executable, "-c", "import sys, tests.services_plugin; print(sys.dont_write_bytecode)"]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
