"""Faults on purpose: watch events that arrive late, twice or never."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random
from typing import Any

from simulation.api.errors import bad_request


@dataclass(slots=True)
class Chaos:
    """Rates are probabilities per watch event, delays seconds on the wall.

    * disconnect_rate: the probability, per event, that the watch's connection breaks instead.
    """

    delay_seconds: float = 0.0
    repeat_rate: float = 0.0
    drop_rate: float = 0.0
    disconnect_rate: float = 0.0

    def change(self, values: dict[str, Any]) -> None:
        """Set the named values, all or none. Raises ApiError (400) for an unknown name or a value out of range."""
        known = {field.name for field in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise bad_request(f"unknown chaos option {name!r}; there are {', '.join(sorted(known))}")
            largest = 3600.0 if name.endswith("seconds") else 1.0
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= largest:
                raise bad_request(f"{name} must be a number between 0 and {largest:g}, not {value!r}")
        for name, value in values.items():
            setattr(self, name, float(value))

    def copies(self, random: Random) -> int:
        """Return how often the next event is sent: 0, 1 or 2 times."""
        if self.drop_rate and random.random() < self.drop_rate:
            return 0
        return 2 if self.repeat_rate and random.random() < self.repeat_rate else 1

    def disconnects(self, random: Random) -> bool:
        """Return whether the connection breaks here."""
        return bool(self.disconnect_rate) and random.random() < self.disconnect_rate
