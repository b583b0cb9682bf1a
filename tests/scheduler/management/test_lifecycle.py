"""The command `lifecycle`: files in, files out, and errors that name the life."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.scheduler.management.test_simulate import QUEUE, job


def life(*steps: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A workload in an empty queue, and what happens to it."""
    return {
        "configuration": {},
        "featureGates": {"DisableWaitForPodsReady": True},
        "namespaces": [{"metadata": {"name": "team"}}],
        "resourceFlavors": [{"metadata": {"name": "default"}}],
        "admissionChecks": [],
        "clusterQueues": [QUEUE],
        "localQueues": [{"metadata": {"name": "local", "namespace": "team"}, "spec": {"clusterQueue": "q"}}],
        "workload": job("one", "1"),
        "steps": list(steps),
        **changes,
    }


def run(folder: Path, cases: Any) -> list[dict[str, Any]]:
    (folder / "in.json").write_text(json.dumps(cases))
    call_command("lifecycle", str(folder / "in.json"), "--output", str(folder / "out.json"))
    results: list[dict[str, Any]] = json.loads((folder / "out.json").read_text())
    return results


def test_a_snapshot_before_the_steps_and_after_each(tmp_path: Path) -> None:
    steps = {"op": "reserve", "flavors": {"main": {"cpu": "default"}}}, {"op": "advance", "seconds": 5}
    (result,) = run(tmp_path, [{"name": "a", "input": life(*steps)}])
    assert result["name"] == "a"
    before, reserved, later = result["result"]
    assert (before["queue"], before["conditions"], before["usage"]) == ("active", [], {})
    assert (reserved["queue"], reserved["usage"]) == ("", {"q/default/cpu": "1"})
    assert [(c["type"], c["status"]) for c in reserved["conditions"]] == [
        ("Admitted", "True"),
        ("QuotaReserved", "True"),
    ]
    assert (later["at"], later["conditions"]) == (5, reserved["conditions"])


@pytest.mark.parametrize("absent", [True, False])
def test_it_waits_for_pods_as_kueue_does_where_the_block_is_absent(tmp_path: Path, absent: bool) -> None:
    gates = {} if absent else {"DisableWaitForPodsReady": True}
    owned = job("one", "1")
    owned["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "one"}]
    (result,) = run(tmp_path, [{"name": "a", "input": life(featureGates=gates, workload=owned)}])
    (only,) = result["result"]
    assert any(condition["type"] == "PodsReady" for condition in only["conditions"]) is absent


def test_a_malformed_life_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="life b: KeyError: 'dance'"):
        run(tmp_path, [{"name": "a", "input": life()}, {"name": "b", "input": life({"op": "dance"})}])
