"""The recipes of docs/development.md: the edits that each makes, and the commands that it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_RECIPE: Final = re.compile(r"^## (Add .+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FENCED: Final = re.compile(r"```(?P<language>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
_EDIT: Final = re.compile(
    r"^`(?P<path>[\w./-]+)`(?P<new> \(new\))?.*:\n\n(?P<blocks>(?:```\w+\n(?:.*\n)*?```\n)+)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Edit:
    """A new file, or a change of a file: the lines of a diff without numbers."""

    path: str
    new: bool
    text: str

    def apply(self, root: Path) -> None:
        """Make the edit below a folder. The lines that a diff shows must be there exactly once."""
        path = root / self.path
        if self.new:
            assert not path.exists(), f"{self.path} exists already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text, encoding="utf-8")
            return
        lines = self.text.splitlines(keepends=True)
        assert all(line[0] in " +-\n" for line in lines), f"a line of the diff of {self.path} has no sign"
        before = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
        after = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
        found = path.read_text(encoding="utf-8")
        assert found.count(before) == 1, f"{self.path} has the lines {found.count(before)} times:\n{before}"
        path.write_text(found.replace(before, after), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Recipe:
    name: str
    edits: tuple[Edit, ...]
    commands: tuple[tuple[str, ...], ...]


def recipes() -> list[Recipe]:
    """All recipes, in the order of the page: a later one may build on an earlier one."""
    text = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    return [Recipe(name, tuple(_edits(body)), tuple(_commands(body))) for name, body in _RECIPE.findall(text)]


def _edits(body: str) -> Iterator[Edit]:
    for found in _EDIT.finditer(body):
        for block in _FENCED.finditer(found["blocks"]):
            assert bool(found["new"]) != (block["language"] == "diff"), f"{found['path']}: a new file is no diff"
            yield Edit(found["path"], bool(found["new"]), block["text"])


def _commands(body: str) -> Iterator[tuple[str, ...]]:
    for block in _FENCED.finditer(body):
        if block["language"] == "sh":
            yield from (tuple(line.split()) for line in block["text"].splitlines())
