"""The house keeps its shape: rooms stay small, and what the architecture names is there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from scripts.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "foundation",
    "kinds",
    "accounts",
    "clusters",
    "client",
    "gpus",
    "history",
    "kueueweb",
    "notifications",
    "queues",
    "scheduler",
    "scheduling",
    "simulation",
    "studio",
)
MAX_MODULES = 22
"""About twenty: a fuller folder wants rooms."""
DJANGO_MODULES = {
    "__init__.py",
    "admin.py",
    "apps.py",
    "models.py",
    "serializers.py",
    "tasks.py",
    "urls.py",
    "views.py",
}
"""Django, REST framework, Celery or their users look for these."""
MAX_REPEATED_NAMES = 160
"""Modules whose name another module has, too: this number may only fall."""
MAX_FILES = 22
"""In a folder of the front end, tests and styles included."""


def test_no_room_is_crowded() -> None:
    modules = Counter(
        path.parent.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py" and path.parent.name != "migrations"
    )
    assert modules
    assert {str(room): number for room, number in modules.items() if number > MAX_MODULES} == {}


def test_names_of_modules_repeat_less_and_less() -> None:
    """A file is found by its name: noun plus role."""
    names = Counter(
        path.name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name not in DJANGO_MODULES and "migrations" not in path.parts
    )
    assert sum(number - 1 for number in names.values()) <= MAX_REPEATED_NAMES


def test_each_member_of_the_vocabulary_is_explained() -> None:
    tree = syntax_tree(ROOT / "scheduling" / "model" / "vocabulary.py")
    unexplained = [
        f"{node.name}: {ast.unparse(member.targets[0])}"
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for member, after in zip(node.body, [*node.body[1:], None], strict=True)
        if isinstance(member, ast.Assign)
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]
    assert unexplained == []


def test_no_folder_of_the_front_end_is_crowded() -> None:
    files = Counter(path.parent for path in (ROOT / "frontend" / "src").rglob("*") if path.is_file())
    assert files
    assert {str(room.relative_to(ROOT)): number for room, number in files.items() if number > MAX_FILES} == {}


def test_the_architecture_names_rooms_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = text[text.index("## The tree") : text.index("## The rings")]
    top = re.findall(r"^    ([a-z]+)/ ", tree, re.MULTILINE)
    rules = re.findall(r"^      ([a-z]+)/ ", tree[: tree.index("    accounts/")], re.MULTILINE)
    assert {"scheduling", "accounts", "queues", "scheduler", "clusters", "kueueweb", "frontend"} <= set(top)
    assert [room for room in top if not (ROOT / room).is_dir()] == []
    assert [room for room in rules if not (ROOT / "scheduling" / room).is_dir()] == []
    inside = {path.name for path in (ROOT / "scheduling").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert inside == set(rules)


def test_the_table_of_places_names_files_and_names_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("## Where is it?") : text.index("## Why it is safe")]
    wrong = []
    for cell in (line.split(" | ")[1] for line in table.splitlines() if line.startswith("| ")):
        path = ROOT
        for name in re.findall(r"`([^`]+)`", cell):
            if "/" in name:
                path = ROOT / name
                if not path.exists():
                    wrong.append(name)
            elif "." not in name and not re.search(
                rf"^(?:class |def |){name}\b", path.read_text(encoding="utf-8"), re.MULTILINE
            ):
                wrong.append(f"{path.name}: {name}")
    assert wrong == []


def test_each_feature_names_tests_that_are_there() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "features.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| Feature")
    ]
    assert len(rows) == 61
    named = {path for row in rows for path in re.findall(r"tests/\S+\.py", row[2])}
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
    assert [row[0] for row in rows if row[1] == "there" and not row[2]] == []


def test_the_index_of_the_documents_names_each_of_them() -> None:
    docs = ROOT / "docs"
    named = set(re.findall(r"\]\(([\w./-]+)\)", (docs / "README.md").read_text(encoding="utf-8")))
    assert [name for name in sorted(named) if not (docs / name).exists()] == []
    assert {path.name for path in docs.glob("*.md")} - {"README.md"} <= named
