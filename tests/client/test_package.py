"""The client installs alone: it imports nothing of the product, and only what its own pyproject.toml names."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from scripts.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2] / "client"


def test_the_client_imports_only_its_own_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["mcp"], "anyio"]  # mcp's own ground
    modules = {"pyyaml": "yaml", "python-jsonpath": "jsonpath"}
    distributions = [re.split(r"[<>=\[ ]", name)[0].lower() for name in named]
    allowed = {modules.get(name, name) for name in distributions}
    allowed.add("kueueweb_client")
    for file in (ROOT / "kueueweb_client").rglob("*.py"):
        for node in ast.walk(syntax_tree(file)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                top = name.partition(".")[0]
                assert top in sys.stdlib_module_names or top in allowed, f"{file.name} imports {top}"
