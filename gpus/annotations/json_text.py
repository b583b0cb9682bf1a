"""JSON in annotations, which anyone may have written."""

from __future__ import annotations

import json
from typing import Any

from gpus.annotations.errors import AnnotationError


def load_json(text: str) -> Any:
    """What the text says. Raises AnnotationError, also for what nests too deep and for numbers that are too long."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnnotationError(f"not JSON: {error}") from error
