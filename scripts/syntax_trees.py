"""Syntax trees of source files."""

from __future__ import annotations

import ast
import gc
from pathlib import Path


def syntax_tree(path: Path) -> ast.Module:
    """Parse a source file.

    No garbage is collected meanwhile: in Python 3.11, code that a collection runs makes `ast.parse` raise SystemError
    (python/cpython#106905).
    """
    text = path.read_text(encoding="utf-8")
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()
