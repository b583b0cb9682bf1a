"""Files of scenarios, for the commands that run recordings through the product's rules."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError


def read_scenarios(path: Path) -> list[dict[str, Any]]:
    """Read a JSON list of objects, unpacked if the name ends in .gz. Raises CommandError, which names the fault."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        scenarios = json.loads(raw)
    except OSError as error:
        raise CommandError(f"{path}: {error}") from error
    except ValueError as error:
        raise CommandError(f"{path}: must be a JSON list of scenarios: {error}") from error
    if not isinstance(scenarios, list) or not all(isinstance(each, dict) for each in scenarios):
        raise CommandError(f"{path}: must be a JSON list of scenarios")
    return scenarios
