"""Times as Kubernetes writes them (RFC 3339, UTC with Z), and as the scheduler computes with them (seconds since
1970)."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(moment: datetime | float, *, whole_seconds: bool = False) -> str:
    """`2026-01-31T12:00:00Z`, with the fraction of the second if there is one and `whole_seconds` is off."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    text = moment.astimezone(UTC).isoformat(timespec="seconds" if whole_seconds else "auto")
    return text.replace("+00:00", "Z")


def parse_rfc3339(text: str) -> float:
    """The moment of an RFC 3339 text. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()
