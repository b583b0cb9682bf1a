"""Every placement that HAMi's own scheduler was recorded to make."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.management.commands.place import placements

FAMILIES = sorted(Path(__file__).parent.glob("hami/*.json.gz"))


def comparable(entry: dict[str, Any]) -> tuple[Any, ...]:
    """One placement, the devices of all containers as one set."""
    devices = sorted(
        (device["uuid"], device["memoryMiB"], device["cores"])
        for container in entry.get("containers") or []
        for device in container
    )
    return entry["pod"], entry.get("node"), devices, entry.get("refused") or {}


def test_the_recordings_are_there() -> None:
    assert len(FAMILIES) == 8


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_family(path: Path) -> None:
    cases = json.loads(gzip.decompress(path.read_bytes()))
    assert cases
    for case in cases:
        made = [comparable(entry) for entry in placements(case["scenario"])]
        assert made == [comparable(entry) for entry in case["expect"]], case["name"]
