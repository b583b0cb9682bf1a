"""Rules of docs/style.md that a machine can hold: first words of docstrings, pronouns, codes, commit subjects."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from scripts.syntax_trees import syntax_tree

ROOT: Final = Path(__file__).resolve().parent.parent
PRODUCT: Final = (
    "accounts", "client", "clusters", "foundation", "gpus", "history", "kinds", "kueueweb", "notifications", "queues",
    "scheduler", "scheduling", "scripts", "simulation", "studio",
)  # fmt: skip
MAX_SUBJECT: Final = 72
SINCE: Final = "2026-11-26T04:00:00Z"
"""Subjects of earlier commits are as they are."""
_FIRST_WORD: Final = re.compile(r"(?:What|That|Those|These|Whose|Which|Where|Has|So|As|Of|Who)\b")
_ANSWER: Final = re.compile(r"(?:The|A|An|Whether|Why|How many|How) ")
"""First words of a docstring that names an answer and lacks its verb."""
_NO_FUNCTION: Final = {"property", "cached_property", "contextmanager", "asynccontextmanager", "setter"}
"""Decorators of functions that are used as a value or as a block: a noun describes these."""
_FRONT_END_COMMENT: Final = re.compile(r"\s*/\*\* (.*)")
_IDIOM: Final = re.compile(
    r"\bours to\b|\btells? (?:\w+ )*apart\b|\bh[eo]lds? up\b|\blets? go\b|\blooks? after\b|Celery doors"
    r"|\bas (?:it|they) should be\b",
    re.IGNORECASE,
)
"""Idioms whose verb says nothing: docs/style.md has the plain words for them."""
_PRONOUN: Final = re.compile(r"\b(?:somebody|nobody|whoever|someone|anybody)\b", re.IGNORECASE)
_USER: Final = re.compile(r"[\"`]nobody[\"`]|postgres or nobody")
"""The account of that name on most machines."""
_CODE: Final = re.compile(r"(?:\(|, | and |\"\"\")[ADJKLS]\d{1,2}(?:\)|, | and |: |\.\"\"\")|\b[Ii]ssue \d")
# A code in brackets, or at the beginning.
_SUBJECT_CODE: Final = re.compile(r"\b(?!(?:A10|A16|A2|A30|A40|K80|L20|L4|L40|M60|P4|P40|T4)\b)[A-Z]\d{1,2}\b|issue \d")
# Some devices have such names.


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a file, those of attributes included, with their lines."""
    for node in ast.walk(syntax_tree(path)):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                    yield line, text.strip()


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for path in sources(*PRODUCT)
        for line, text in docstrings(path)
        if _FIRST_WORD.match(text)
    ]
    assert found == []


def answers(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of functions that return a value and are called as functions, with their lines."""
    for node in ast.walk(syntax_tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = {name.id if isinstance(name, ast.Name) else name.attr for name in _names(node.decorator_list)}
        returns = ast.unparse(node.returns) if node.returns is not None else "None"
        text = ast.get_docstring(node)
        if text and returns not in {"None", "NoReturn"} and not decorators & _NO_FUNCTION:
            yield node.lineno, text


def _names(decorators: list[ast.expr]) -> Iterator[ast.Name | ast.Attribute]:
    for decorator in decorators:
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(name, ast.Name | ast.Attribute):
            yield name


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for path in sources(*PRODUCT)
        for line, text in answers(path)
        if _ANSWER.match(text)
    ]
    assert found == []


def front_end() -> Iterator[tuple[str, str]]:
    """Each line of the front end's sources, with its place. The schema has the server's words."""
    for folder in ("src", "dev"):
        for path in sorted((ROOT / "frontend" / folder).rglob("*.ts*")):
            if path.name != "schema.gen.ts":
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    yield f"{path.relative_to(ROOT)}:{number}", line


def test_comments_of_the_front_end_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{place}: {line.strip()[:60]}"
        for place, line in front_end()
        if (comment := _FRONT_END_COMMENT.match(line)) and _FIRST_WORD.match(comment[1])
    ]
    assert found == []


def test_the_front_end_names_users() -> None:
    assert [f"{place}: {line.strip()[:60]}" for place, line in front_end() if _PRONOUN.search(line)] == []


def test_docstrings_have_plain_verbs() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match.group()}"
        for path in sources(*PRODUCT)
        for line, text in docstrings(path)
        if (match := _IDIOM.search(" ".join(text.split())))
    ]
    assert found == []


def test_each_decision_has_its_context_choice_and_consequences() -> None:
    parts = ("**Context.** ", "**Decision.** ", "**Consequences.** ")
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert decisions
    wrong = [
        path.name
        for path in decisions
        if [part for part in parts if f"\n{part.strip()}" in path.read_text(encoding="utf-8")] != list(parts)
    ]
    assert wrong == []
    numbers = [path.name[:4] for path in decisions]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Objects that are ours to serve.", True),
        ("The columns that tell rows of a table apart.", True),
        ("A slow reader holds up no other.", True),
        ("Keep the row as it should be.", True),
        ("Start no job while its pods are held.", False),
        ("Tell the user to look.", False),
    ],
)
def test_an_idiom_is_told_from_its_words(text: str, wrong: bool) -> None:
    assert bool(_IDIOM.search(text)) is wrong


def test_users_and_clients_are_named() -> None:
    """A help text of a model is exempt: it changes with a migration."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources(*PRODUCT)
        if "models" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _PRONOUN.search(line) and not _USER.search(line)
    ]
    assert found == []


def test_documents_name_users_and_clients() -> None:
    documents = [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CHANGELOG.md"))]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line[:80]}"
        for path in documents
        if path.name != "style.md"  # quotes the words that are out
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _PRONOUN.search(line)
    ]
    assert found == []


def test_docstrings_have_no_codes_of_a_tracker() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for path in sources(*PRODUCT, "tests")
        for line, text in docstrings(path)
        if path != Path(__file__) and _CODE.search(f'"""{text}"""')
    ]
    assert found == []


def test_subjects_of_commits_are_short_and_without_codes() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("the sources are not a clone")
    log = subprocess.run(
        # The tests may run as another user than the owner of the clone.
        [git, "-c", "safe.directory=*", "log", "--no-merges", f"--since={SINCE}", "--format=%s"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert [subject for subject in log if len(subject) > MAX_SUBJECT or _SUBJECT_CODE.search(subject)] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("(S12)", True),
        ("J2: pods wait.", True),
        ("A19.", True),
        ("A page (issue 13).", True),
        ("The A100 and T27 of the table.", False),
    ],
)
def test_a_code_is_told_from_a_device(text: str, wrong: bool) -> None:
    assert bool(_CODE.search(f'"""{text}"""')) is wrong


@pytest.mark.parametrize(
    ("subject", "wrong"),
    [
        ("Mend Q19", True),
        ("Close issue 24", True),
        ("Cut an A10 and an L4 into slices", False),
        ("Read v1 Jobs", False),
    ],
)
def test_a_subject_names_devices_and_no_findings(subject: str, wrong: bool) -> None:
    assert bool(_SUBJECT_CODE.search(subject)) is wrong
