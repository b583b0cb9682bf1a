"""Single cycles: the cases of Kueue's own table tests, replacements of a failed node, and the findings (K1 to K8).

`tables.json.gz` and `replacement.json.gz` hold what Kueue decided in one cycle; in the findings the reasons for which
workloads wait count too.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from scheduling.simulator.simulator import simulate

HERE = Path(__file__).parent / "tables"
RECORDINGS = sorted(HERE.glob("*.json.gz"))
FINDINGS = sorted(HERE.glob("finding-*.json"))


def domains(topology: Iterable[dict[str, Any]] | None) -> list[tuple[list[str], int]]:
    """Topology domains with their pods, in one order."""
    return sorted((domain["values"], domain["count"]) for domain in topology or ())


def comparable(cycle: dict[str, Any]) -> dict[str, Any]:
    """All that a cycle decided, regardless of order."""
    admitted = {
        each["workload"]: (
            each["clusterQueue"],
            sorted(
                (
                    ps["name"],
                    ps["count"],
                    sorted((ps.get("flavors") or {}).items()),
                    domains(ps.get("topologyAssignment")),
                )
                for ps in each["podSets"]
            ),
        )
        for each in cycle["admitted"]
    }
    replaced = {
        each["workload"]: {name: domains(topology) for name, topology in each["topologyAssignment"].items()}
        for each in cycle["replaced"]
    }
    stopped = {
        key: sorted((each["workload"], each["reason"]) for each in cycle[key]) for key in ("preempted", "evicted")
    }
    return {"admitted": admitted, "replaced": replaced, **stopped}


def test_the_recordings_are_there() -> None:
    assert sum(len(json.loads(gzip.decompress(path.read_bytes()))) for path in RECORDINGS) == 645
    assert len(FINDINGS) == 8


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_cycles(path: Path) -> None:
    for case in json.loads(gzip.decompress(path.read_bytes())):
        found = simulate(case["scenario"])["firstCycle"]
        assert comparable(found) == comparable(case["expect"]["firstCycle"]), case["name"]


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_findings(path: Path) -> None:
    for case in json.loads(path.read_bytes()):
        wanted, found = case["expect"]["firstCycle"], simulate(case["scenario"])["firstCycle"]
        assert comparable(found) == comparable(wanted), case["name"]
        reasons = {key: reason for key, reason in wanted["pending"].items() if reason is not None}
        assert {key: found["pending"].get(key) for key in reasons} == reasons, case["name"]
