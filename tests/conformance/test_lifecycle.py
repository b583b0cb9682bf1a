"""The lives that Kueue's controllers gave single workloads, family by family, as `manage.py lifecycle` plays them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.management.commands.lifecycle import play

FAMILIES = sorted(Path(__file__).parent.glob("lifecycle/*.json.gz"))
_ABSENT = {"requeueAfter": None, "admission": None, "jobRequeueAfter": None}


def comparable(snapshot: dict[str, Any]) -> dict[str, Any]:
    """All of a snapshot that Kueue decides; the queue is compared as in or out of the heap."""
    shot = {**_ABSENT, **snapshot}
    state = shot.pop("requeueState", None) or {}
    return shot | {
        "queue": shot["queue"] == "active",
        "requeueState": (state.get("count") or 0, state.get("requeueAt")),
        "accumulatedPastExecutionTimeSeconds": shot.get("accumulatedPastExecutionTimeSeconds") or 0,
        "admissionChecks": [
            {"retryCount": 0, "podSetUpdates": 0, "requeueAfterSeconds": None, "message": "", **check}
            for check in shot.get("admissionChecks") or []
        ],
        "conditions": [{"message": "", **condition} for condition in shot.get("conditions") or []],
        "evictions": [{"underlyingCause": "", **entry} for entry in shot.get("evictions") or []],
        "jobEvents": shot.get("jobEvents") or [],
        **{flag: bool(shot.get(flag)) for flag in ("deleted", "deleting", "jobDeleted")},
    }


def is_left_in_the_heap(shot: dict[str, Any]) -> bool:
    """Whether Kueue keeps a workload in the heap of its ClusterQueue that may not be admitted now."""
    conditions = {condition["type"]: condition for condition in shot.get("conditions") or []}
    kept_out = conditions.get("Requeued", {}).get("status") == "False"
    gated = conditions.get("QuotaReserved", {}).get("reason") == "AdmissionGated"
    at = (shot.get("requeueState") or {}).get("requeueAt")
    return shot["queue"] == "active" and (kept_out or gated or (at is not None and at > shot["at"]))


def test_the_recordings_are_there() -> None:
    assert len(FAMILIES) == 7


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_family(path: Path) -> None:
    cases = json.loads(gzip.decompress(path.read_bytes()))
    assert cases
    for case in cases:
        shots = play(case["input"])
        assert len(shots) == len(case["result"]), case["name"]
        for number, (shot, recorded) in enumerate(zip(shots, case["result"], strict=True)):
            found, expected = comparable(shot), comparable(recorded)
            if is_left_in_the_heap(recorded):
                found["queue"] = expected["queue"]
            assert found == expected, f"{case['name']}, snapshot {number}"
