"""Hatch's hook for the wheel: the wheel contains the built front end, so that its users need no Node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FrontendHook(BuildHookInterface[Any]):
    """Builds the front end, unless its sources have not changed since, and puts it beside the settings."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # the settings find the front end in the sources
            return
        root = Path(self.root)
        subprocess.run([sys.executable, root / "scripts" / "frontend.py", "build"], check=True)
        build_data["force_include"][str(root / "frontend" / "dist")] = "kueueweb/frontend_dist"
