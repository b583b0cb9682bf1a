"""Every decision that Kueue's own scheduler was recorded to make, family by family."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduling.model.quantity import parse_quantity
from scheduling.simulator.simulator import simulate

FAMILIES = sorted(Path(__file__).parent.glob("kueue/*.json.gz"))


def comparable_cycle(cycle: dict[str, Any]) -> dict[str, Any]:
    """One cycle: who was admitted with what, and who was preempted why, regardless of order."""
    return {
        "at": cycle["atSeconds"],
        "admitted": {
            admitted["workload"]: (
                admitted["clusterQueue"],
                sorted(
                    (ps["name"], ps["count"], sorted((ps.get("flavors") or {}).items()), comparable_domains(ps))
                    for ps in admitted["podSets"]
                ),
            )
            for admitted in cycle.get("admitted") or []
        },
        "preempted": sorted((p["workload"], p["reason"]) for p in cycle.get("preempted") or []),
    }


def comparable_domains(pod_set: dict[str, Any]) -> list[tuple[list[str], int]]:
    """The topology domains of a pod set."""
    return sorted((domain["values"], domain["count"]) for domain in pod_set.get("topologyAssignment") or [])


def comparable_amounts(flavors: dict[str, dict[str, str]] | None) -> dict[tuple[str, str], int]:
    """Amounts per (flavor, resource), zeros left out."""
    amounts = {
        (flavor, resource): parse_quantity(text)
        for flavor, resources in (flavors or {}).items()
        for resource, text in resources.items()
    }
    return {key: amount for key, amount in amounts.items() if amount}


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """All of a result that Kueue decides."""
    left: dict[str, set[str]] = {}
    for key in ("pending", "inadmissible"):
        for queue, names in (result.get(key) or {}).items():
            left.setdefault(queue, set()).update(names)
    return {
        "cycles": [comparable_cycle(cycle) for cycle in result.get("cycles") or []],
        "finished": result.get("finishedAtSeconds") or {},
        "left": {queue: names for queue, names in left.items() if names},
        "queues": {
            name: (
                comparable_amounts(queue.get("flavorsReservation")),
                comparable_amounts(queue.get("borrowed")),
                None if queue.get("weightedShare") is None else round(float(queue["weightedShare"]), 3),
            )
            for name, queue in (result.get("clusterQueues") or {}).items()
        },
    }


def test_the_recordings_are_there() -> None:
    assert len(FAMILIES) == 19


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_family(path: Path) -> None:
    cases = json.loads(gzip.decompress(path.read_bytes()))
    assert cases
    for case in cases:
        assert comparable(simulate(case["scenario"])) == comparable(case["expect"]), case["name"]
