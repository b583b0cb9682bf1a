"""Lists the test files of the modules that differ from a commit, as `make test-quick` runs them.

First the changed tests, then the tests of a changed module's own name, then those that import it, then those of its
room. Not all that could break: at most `MAX_FILES`, so that a run takes a minute and a half. Omitted files are named on
stderr.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parent.parent
MAX_FILES = 12
HOUSE_RULES = ("tests/test_house.py", "tests/test_words.py", "tests/test_development.py")
# Folders with tests of whole processes, browsers and clusters, which take minutes each.
SLOW = (
    "tests/acceptance/",
    "tests/benchmarks/",
    "tests/containers/",
    "tests/e2e/",
    "tests/helm/",
    "tests/kubernetes/",
    "tests/load/",
)


def changed_files(base: str) -> list[str]:
    """Return the files that differ from the commit where this branch left `base`, uncommitted ones included."""
    start = _git("merge-base", base, "HEAD").strip()
    names = _git("diff", "--name-only", start) + _git("ls-files", "--others", "--exclude-standard")
    return sorted(set(names.splitlines()))


def quick_tests(changed: Iterable[str], imports: dict[str, set[str]]) -> list[str]:
    """Return the test files to run, the most informative first. `imports`: for each test file, the modules that it
    imports."""
    files = [name for name in changed if name.endswith(".py")]
    sources = [name for name in files if not name.startswith("tests/")]
    helpers = {_module(name) for name in files if name.startswith("tests/") and name not in imports}
    modules = {_module(name) for name in sources} | helpers
    ranked: Iterable[str] = (
        *(name for name in files if name in imports),
        *(test for name in sources for test in _of_its_name(name, imports)),
        *(test for test, named in imports.items() if named & modules),
        *(test for name in sources for test in imports if test.startswith(f"tests/{Path(name).parent}/")),
    )
    return [test for test in dict.fromkeys(ranked) if not test.startswith(SLOW)]


def _of_its_name(source: str, tests: Iterable[str]) -> Iterator[str]:
    """Yield the tests of `a/b/name.py`: `tests/a/.../test_name.py` and `test_name_*.py`."""
    path = Path(source)
    for test in tests:
        stem = Path(test).stem
        if test.startswith(f"tests/{path.parts[0]}/") and f"{stem}_".startswith(f"test_{path.stem}_"):
            yield test


def imports_of_tests() -> dict[str, set[str]]:
    """Return the modules and the names in modules that each test file imports."""
    return {str(path.relative_to(ROOT)): set(_imported(path)) for path in sorted((ROOT / "tests").rglob("test_*.py"))}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S607


def main() -> None:
    """Write the names to stdout, one a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="main", help="the commit to compare with")
    found = quick_tests(changed_files(parser.parse_args().base), imports_of_tests())
    if found[MAX_FILES:]:
        print(f"{len(found) - MAX_FILES} more test files are near the change: make test runs all.", file=sys.stderr)
    for name in dict.fromkeys((*found[:MAX_FILES], *HOUSE_RULES)):
        print(name)


if __name__ == "__main__":
    main()
