"""The command `simulate`: files in, files out, and errors that name the scenario."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

QUEUE = {
    "metadata": {"name": "q"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "2"}]}],
            }
        ],
    },
}


def job(name: str, cpu: str, created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """A Workload manifest of one pod."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": name, "namespace": "team", "uid": name, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"queueName": "local", "podSets": [pod_set]}}


def scenario(**changes: Any) -> dict[str, Any]:
    """Two jobs of two cores in a queue of two; the first ends after ten seconds."""
    return {
        "namespaces": [{"metadata": {"name": "team"}}],
        "resourceFlavors": [{"metadata": {"name": "default"}}],
        "clusterQueues": [QUEUE],
        "localQueues": [{"metadata": {"name": "local", "namespace": "team"}, "spec": {"clusterQueue": "q"}}],
        "workloads": [job("first", "2"), job("second", "2", "2026-01-01T00:00:03Z")],
        "runtimeSeconds": {"team/first": 10},
        "horizonSeconds": 100,
        **changes,
    }


def run(folder: Path, cases: Any, *, name: str = "in.json") -> list[dict[str, Any]]:
    """The command's output for an input."""
    text = json.dumps(cases).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    call_command("simulate", str(folder / name), "--output", str(folder / "out.json"))
    results: list[dict[str, Any]] = json.loads((folder / "out.json").read_text())
    return results


@pytest.mark.parametrize("name", ["in.json", "in.json.gz"])
def test_decisions_over_time(tmp_path: Path, name: str) -> None:
    (result,) = run(tmp_path, [{"name": "one", "scenario": scenario()}], name=name)
    assert result["name"] == "one"
    found = result["result"]
    assert [(c["atSeconds"], [a["workload"] for a in c["admitted"]]) for c in found["cycles"]] == [
        (0, ["team/first"]),
        (10, ["team/second"]),
    ]
    assert found["finishedAtSeconds"] == {"team/first": 10}
    assert found["clusterQueues"] == {"q": {"flavorsReservation": {"default": {"cpu": "2"}}, "borrowed": {}}}
    assert "weightedShare" not in found["clusterQueues"]["q"]


def test_workloads_become_visible_in_batches(tmp_path: Path) -> None:
    case = scenario(workloads=[job("late", "1", "2026-01-01T00:00:03Z")], batchSeconds=5)
    (result,) = run(tmp_path, [{"name": "one", "scenario": case}])
    assert [cycle["atSeconds"] for cycle in result["result"]["cycles"]] == [5]


def test_the_instant_of_the_horizon_still_runs_and_none_after_it(tmp_path: Path) -> None:
    for horizon, finished in ((10, {"team/first": 10}), (9, {})):
        (result,) = run(tmp_path, [{"name": "one", "scenario": scenario(horizonSeconds=horizon)}])
        assert result["result"]["finishedAtSeconds"] == finished


def test_fair_sharing_adds_the_weighted_share(tmp_path: Path) -> None:
    (result,) = run(tmp_path, [{"name": "one", "scenario": scenario(fairSharing={})}])
    assert result["result"]["clusterQueues"]["q"]["weightedShare"] == 0.0


def holder(name: str, flavor: str, *conditions: str) -> dict[str, Any]:
    """A job of two cores that holds quota in a flavor."""
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "2"}}
    since = {"status": "True", "lastTransitionTime": "2025-12-31T23:00:00Z"}
    status = {
        "admission": {"clusterQueue": "q", "podSetAssignments": [assignment]},
        "conditions": [{"type": word, "reason": word} | since for word in ("QuotaReserved", "Admitted")]
        + [{"type": "Evicted", "reason": reason} | since for reason in conditions],
    }
    return job(name, "2", "2025-12-31T22:00:00Z") | {"status": status}


def test_usage_is_reported_of_the_flavors_of_the_spec_only(tmp_path: Path) -> None:
    case = scenario(workloads=[holder("running", "taken-off")])
    (result,) = run(tmp_path, [{"name": "one", "scenario": case}])
    assert result["result"]["clusterQueues"]["q"]["flavorsReservation"] == {"default": {"cpu": "0"}}


@pytest.mark.parametrize(("reason", "admitted"), [("Preempted", ["team/old"]), ("PodsReadyTimeout", ["team/first"])])
def test_a_workload_evicted_before_time_0_has_stopped(tmp_path: Path, reason: str, admitted: list[str]) -> None:
    case = scenario(workloads=[job("first", "2"), holder("old", "default", reason)], runtimeSeconds={"team/old": 7})
    (result,) = run(tmp_path, [{"name": "one", "scenario": case}])
    assert [a["workload"] for a in result["result"]["cycles"][0]["admitted"]] == admitted
    assert result["result"]["finishedAtSeconds"] == ({"team/old": 7} if admitted == ["team/old"] else {})


def test_a_malformed_scenario_is_named(tmp_path: Path) -> None:
    broken = scenario(workloads=[job("w", "lots")])
    with pytest.raises(CommandError, match=r'scenario bad: InvalidQuantity: "lots"'):
        run(tmp_path, [{"name": "good", "scenario": scenario()}, {"name": "bad", "scenario": broken}])
    assert not (tmp_path / "out.json").exists()


def test_what_is_no_list_of_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="must be a JSON list of scenarios"):
        run(tmp_path, {"name": "one"})
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(CommandError, match=r"broken\.json"):
        call_command("simulate", str(tmp_path / "broken.json"), "--output", str(tmp_path / "out.json"))
