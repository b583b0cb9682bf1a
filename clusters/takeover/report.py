"""The report of a takeover or a handover: the affected objects, and the reasons for a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field


class Refused(Exception):
    """The cluster stays with the scheduler that it has. `reasons` name each object in the way."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons


@dataclass(slots=True)
class Report:
    """One line for each object, grouped by its change."""

    lease: list[str] = field(default_factory=list)
    webhooks: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    """Jobs that hold quota and stay unchanged."""
    waiting: list[str] = field(default_factory=list)
    changed: list[str] | None = None
    """Jobs and pods that have changed since the start, by any client; None: nothing was touched yet."""

    def lines(self) -> list[str]:
        """Return the report as text, section by section."""
        sections = (
            ("Lease", self.lease), ("Webhooks", self.webhooks), ("Objects", self.objects),
            ("Running jobs, not touched", self.running), ("Waiting jobs, decided again", self.waiting),
            ("Jobs and pods that have changed since", self.changed),
        )  # fmt: skip
        found = []
        for title, entries in sections:
            if entries is None:
                continue
            found += [f"{title}: {len(entries)}", *(f"  {entry}" for entry in entries)]
        return found
