"""The recorded scenarios of jobs on the road of live ones: rows in PostgreSQL, the watcher's pass, the push.

Every object and workload is as recorded after every step, but in the scenarios of `DIFFERENT` and `REFUSED`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import transaction

from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.framework.manifest import JsonObject
from clusters.jobs.registry import JOB_KINDS
from tests.conformance.job_results import plain
from tests.conformance.live_jobs import LiveScenario

pytestmark = pytest.mark.django_db

RECORDINGS: Final = Path(__file__).parent / "jobs"
KINDS: Final = sorted(
    kind.kind.lower()
    for kind in JOB_KINDS.values()
    if kind.stopping is Stopping.SUSPEND and (RECORDINGS / f"{kind.kind.lower()}.json.gz").exists()
)
OURS: Final = ("kueueweb.io/", "hami.io/")
"""What we add to objects, beside what Kueue writes."""

_NO_POD_SET: Final = "its workload would have no pod set, and Kueue's API takes none such"
_LONG_NAME: Final = "its pod sets have names above the 63 characters that Kueue's API takes"

REFUSED: Final[Mapping[str, str]] = {
    "appwrapper-seen-012": _NO_POD_SET,
    "appwrapper-seen-013": _LONG_NAME,
    "appwrapper-seen-023": _LONG_NAME,
    "appwrapper-seen-028": _NO_POD_SET,
    "appwrapper-seen-031": _NO_POD_SET,
    "appwrapper-seen-040": _NO_POD_SET,
    "rayservice-seen-030": "its workload would have two pod sets of one name, and Kueue's API takes none such",
}
"""The scenarios whose recorded workload Kueue's API refuses, and why. They were recorded without an API server;
tests/kubernetes/test_kueue_objects.py shows that a real one with Kueue's definitions takes none of these workloads.
"""

DIFFERENT: Final[Mapping[str, str]] = {
    "job-seen-062": "a prebuilt workload that is deleted stays until its pods have stopped; its job is given back",
}
"""The scenarios that fare otherwise than recorded, with why. One that agrees must leave."""


def test_kinds_of_jobs_are_found() -> None:
    assert "job" in KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_live_jobs_fare_as_recorded(kind: str) -> None:
    found = {case["id"]: difference for case in recorded(kind) if (difference := difference_of(case))}
    known = {name for name in (*REFUSED, *DIFFERENT) if name.startswith(f"{kind}-")}
    assert not {name: difference for name, difference in found.items() if name not in known}
    assert known <= set(found), "these agree: take them out of the list"


def recorded(kind: str) -> Iterator[JsonObject]:
    for case in json.loads(gzip.decompress((RECORDINGS / f"{kind}.json.gz").read_bytes())):
        if case["expected"].get("steps"):
            yield case


def difference_of(case: JsonObject) -> str:
    """Where the scenario first fares otherwise; empty if nowhere."""
    before = transaction.savepoint()
    try:
        steps = LiveScenario(case["input"]).live()
    finally:
        transaction.savepoint_rollback(before)
    for step, expected in zip(steps, case["expected"]["steps"], strict=True):
        for path, ours, theirs in differences(comparable(step), comparable(expected)):
            return f"{expected['op']}{path}: {ours!r} instead of {theirs!r}"
    return ""


def comparable(step: JsonObject) -> JsonObject:
    step = without_ours(step)
    workloads = {each["metadata"]["name"]: _workload(each) for each in step.get("workloads") or ()}
    return {"object": plain(step.get("object")), "workloads": workloads}


def _workload(workload: JsonObject) -> JsonObject:
    """What its job's controller makes of a workload, and which of the conditions that it reads hold.

    Conditions of the scheduler have other words and times where nobody schedules.
    """
    status = workload.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    held = {
        kind: (conditions.get(kind) or {}).get("status") == "True" for kind in ("QuotaReserved", "Admitted", "Evicted")
    }
    finished = conditions.get("Finished") or {}
    metadata = {key: workload["metadata"].get(key) for key in ("name", "labels", "annotations", "ownerReferences")}
    defaults = {"active": True, "priority": 0}
    spec = {key: value for key, value in workload["spec"].items() if defaults.get(key) != value}
    found: JsonObject = plain({"metadata": metadata, "spec": spec, "reclaimable": status.get("reclaimablePods")})
    return {**found, **held, "finished": [finished.get(key) or "" for key in ("status", "reason", "message")]}


def without_ours(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_ours(item) for key, item in value.items() if not key.startswith(OURS)}
    if isinstance(value, list):
        named = (isinstance(item, Mapping) and str(item.get("name", "")).startswith(OURS) for item in value)
        return [without_ours(item) for item, ours in zip(value, named, strict=True) if not ours]
    return value


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif ours != theirs:
        yield path, ours, theirs
