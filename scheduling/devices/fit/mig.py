"""NVIDIA MIG: which instance a request gets on a card that already holds others (HAMi's choice)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduling.model.device import MigInstance, MigPlacement, MigProfile

_HIGHEST_START_FIRST = ("1g.", "3g.")


def choose_mig_instance(
    profiles: Iterable[MigProfile], in_use: Sequence[MigInstance], memory_mib: int
) -> tuple[MigProfile, MigPlacement] | None:
    """The smallest profile with that much memory that still has a free place, and the place; None if there is none.

    Profiles are tried by memory, then slice count. `1g` and `3g` instances go to the highest free start, so that the
    low starts stay open for the profiles that need them; all others to the lowest.
    """
    for profile in sorted(profiles, key=lambda profile: (profile.memory_mib, profile.slice_count)):
        if profile.memory_mib < memory_mib:
            continue
        downwards = profile.name.startswith(_HIGHEST_START_FIRST)
        for placement in sorted(profile.placements, key=lambda place: place.start, reverse=downwards):
            if not any(placement.overlaps(instance.placement) for instance in in_use):
                return profile, placement
    return None
