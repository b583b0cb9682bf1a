"""The header in which an answer warns: of values that are accepted, but do not have the wanted effect."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MAX_WARNINGS = 20
"""The most that one answer names: servers and proxies limit the length of a header."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def warning_header(texts: Iterable[str]) -> dict[str, str]:
    """Return the header `Warning` (code 299, as Kubernetes writes it) with these texts; empty without a text."""
    found = list(texts)
    told = found[:MAX_WARNINGS] + ([f"{len(found) - MAX_WARNINGS} more warnings"] if len(found) > MAX_WARNINGS else [])
    return {"Warning": ", ".join(f'299 - "{_quoted(text)}"' for text in told)} if told else {}


def _quoted(text: str) -> str:
    """Return the text as a quoted-string in ASCII (RFC 9110), in which control characters are spaces."""
    return _CONTROL.sub(" ", text).encode("ascii", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
