"""The header in which an answer warns: of values that are accepted, but do not have the wanted effect."""

from __future__ import annotations

from collections.abc import Iterable

MAX_WARNINGS = 20
"""The most that one answer names: servers and proxies limit the length of a header."""


def warning_header(texts: Iterable[str]) -> dict[str, str]:
    """Return the header `Warning` (code 299, as Kubernetes writes it) with these texts; empty without a text."""
    found = list(texts)
    told = found[:MAX_WARNINGS] + ([f"{len(found) - MAX_WARNINGS} more warnings"] if len(found) > MAX_WARNINGS else [])
    return {"Warning": ", ".join(f'299 - "{_quoted(text)}"' for text in told)} if told else {}


def _quoted(text: str) -> str:
    """The text as a quoted-string in ASCII (RFC 9110)."""
    return text.encode("ascii", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
