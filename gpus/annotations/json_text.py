"""JSON in annotations from untrusted authors."""

from __future__ import annotations

import json
from typing import Any

from gpus.annotations.errors import AnnotationError


def load_json(text: str) -> Any:
    """Return the parsed text. Raises AnnotationError, also for JSON that is nested too deeply or has numbers that are
    too long."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"not JSON: {error}") from error
