"""Every placement that HAMi's own scheduler was recorded to make, and the annotations that it wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.management.commands.place import placements

FAMILIES = sorted(Path(__file__).parent.glob("hami*/*.json.gz"))


def comparable(entry: dict[str, Any]) -> tuple[Any, ...]:
    """One placement, the devices of all containers as one set."""
    devices = sorted(
        (device["uuid"], device["memoryMiB"], device["cores"])
        for container in entry.get("containers") or []
        for device in container
    )
    return entry["pod"], entry.get("node"), devices, entry.get("refused") or {}


def written(entry: dict[str, Any]) -> tuple[Any, ...]:
    """What was written on a placed pod, by the scheduler and by the webhook."""
    return entry["pod"], entry.get("annotations"), entry.get("mutatedAnnotations")


def test_the_recordings_are_there() -> None:
    assert len(FAMILIES) == 8 + 21


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_family(path: Path) -> None:
    cases = json.loads(gzip.decompress(path.read_bytes()))
    assert cases
    for case in cases:
        made = placements(case["scenario"])
        assert list(map(comparable, made)) == list(map(comparable, case["expect"])), case["name"]
        # The older recordings have no annotations.
        recorded = [
            (theirs, ours) for theirs, ours in zip(case["expect"], made, strict=True) if "annotations" in theirs
        ]
        assert [written(ours) for _, ours in recorded] == [written(theirs) for theirs, _ in recorded], case["name"]
