"""The `place` command's files, in and out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduling.model.device import Device
from tests.gpus.register_annotations import encode_devices_json


def scenario(*events: dict[str, Any]) -> list[dict[str, Any]]:
    device = Device("GPU-0", 0, "NVIDIA", "NVIDIA A10", 10, 24_576, 100)
    node = {"metadata": {"name": "n1", "annotations": {"hami.io/node-nvidia-register": encode_devices_json([device])}}}
    return [
        {
            "name": "one",
            "scenario": {"nodePolicy": "binpack", "gpuPolicy": "spread", "nodes": [node], "events": list(events)},
        }
    ]


def pod(name: str, memory: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    containers = [{"name": "c", "resources": {"limits": limits}}]
    return {"place": {"metadata": {"name": name, "namespace": "team"}, "spec": {"containers": containers}}}


@pytest.mark.parametrize("name", ["in.json", "in.json.gz"])
def test_pods_come_and_go(tmp_path: Path, name: str) -> None:
    text = json.dumps(
        scenario(pod("a", 20_000), pod("b", 8000), {"remove": "team/b"}, {"remove": "team/a"}, pod("b", 8000))
    ).encode()
    source, output = tmp_path / name, tmp_path / "out.json"
    source.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    call_command("place", str(source), output=output)
    (result,) = json.loads(output.read_text())
    assert result["name"] == "one"
    first, second, third = result["result"]
    assert first["containers"] == [[{"uuid": "GPU-0", "memoryMiB": 20_000, "cores": 0}]]
    assert second == {"pod": "team/b", "refused": {"n1": "1/1 CardInsufficientMemory"}}
    assert (third["pod"], third["node"]) == ("team/b", "n1")


@pytest.mark.parametrize(
    ("annotations", "limits", "problem"),
    [
        (
            {},
            {"nvidia.com/gpumem-percentage": "101"},
            "nvidia.com/gpumem-percentage 101: a percentage must be 0 to 100",
        ),
        (
            {"hami.io/device-scoring-weights": "slot=1"},
            {},
            "hami.io/device-scoring-weights slot=1: slot, core and memory",
        ),
    ],
)
def test_a_pod_that_can_not_be_asked_for_is_placed_nowhere(
    tmp_path: Path, annotations: dict[str, str], limits: dict[str, str], problem: str
) -> None:
    event = pod("a", 1000)
    event["place"]["metadata"]["annotations"] = annotations
    event["place"]["spec"]["containers"][0]["resources"]["limits"].update(limits)
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(json.dumps(scenario(event)))
    call_command("place", str(source), output=output)
    (entry,) = json.loads(output.read_text())[0]["result"]
    assert (entry["pod"], entry["refused"]) == ("team/a", {})
    assert entry["problem"].startswith(problem)


@pytest.mark.parametrize(("policy", "together"), [("binpack", True), ("bid-price", False)])
def test_policies_of_ours_learn_from_the_scenario_s_pods(tmp_path: Path, policy: str, together: bool) -> None:
    """Two of 47 % fill a device, and three of 32 %, but not one of each."""
    cases = scenario(pod("a", 11_550), pod("b", 7864), pod("c", 11_550))
    (node,) = cases[0]["scenario"]["nodes"]
    device = encode_devices_json([Device("GPU-1", 0, "NVIDIA", "NVIDIA A10", 10, 24_576, 100)])
    other = {"metadata": {"name": "n2", "annotations": {"hami.io/node-nvidia-register": device}}}
    cases[0]["scenario"] |= {"nodePolicy": policy, "gpuPolicy": policy, "nodes": [node, other]}
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(json.dumps(cases))
    call_command("place", str(source), output=output)
    first, second, _ = json.loads(output.read_text())[0]["result"]
    assert (first["node"] == second["node"]) == together


def test_a_resource_quota_is_one_more_reason(tmp_path: Path) -> None:
    cases = scenario(pod("a", 6000), pod("b", 5000), pod("c", 4000))
    hard = {"limits.nvidia.com/gpumem": "10000", "requests.cpu": "0"}
    quota = {"metadata": {"name": "gpus", "namespace": "team"}, "spec": {"hard": hard}}
    cases[0]["scenario"]["resourceQuotas"] = [quota]
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(json.dumps(cases))
    call_command("place", str(source), output=output)
    first, second, third = json.loads(output.read_text())[0]["result"]
    assert (first["node"], third["node"]) == ("n1", "n1")
    assert second == {"pod": "team/b", "refused": {"n1": "1/1 ResourceQuotaNotFit"}}


@pytest.mark.parametrize("text", ["", "{}", '[{"name": "x"}]', '[{"name": "x", "scenario": []}]'])
def test_what_is_no_list_of_scenarios_is_refused(tmp_path: Path, text: str) -> None:
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(text)
    with pytest.raises(CommandError, match=r"list of (placement )?scenarios"):
        call_command("place", str(source), output=output)
    assert not output.exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"absent\.json"):
        call_command("place", str(tmp_path / "absent.json"), output=tmp_path / "out.json")


def test_devices_of_other_vendors_come_from_annotations_and_capacity(tmp_path: Path) -> None:
    metax = [
        {"uuid": "M-0", "model": "C500", "totalDevCount": 16, "totalCompute": 100, "totalVRam": 65_536, "healthy": True}
    ]
    annotations = {"metax-tech.com/node-gpu-devices": json.dumps(metax)}
    capacity = {"kunlunxin.com/xpu": "8"}
    nodes = [{"metadata": {"name": "n1", "annotations": annotations}, "status": {"capacity": capacity}}]

    def asks(name: str, resource: str, count: int) -> dict[str, Any]:
        event = pod(name, 1)
        event["place"]["spec"]["containers"][0]["resources"]["limits"] = {resource: count}
        return event

    xpu = "kunlunxin.com/xpu"
    events = [asks("a", xpu, 4), asks("b", "metax-tech.com/sgpu", 1), asks("c", xpu, 3)]
    case = {"nodePolicy": "binpack", "gpuPolicy": "spread", "nodes": nodes, "events": events}
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(json.dumps([{"name": "one", "scenario": case}]))
    call_command("place", str(source), output=output)
    first, second, third = json.loads(output.read_text())[0]["result"]
    assert len({int(device["uuid"].rpartition("-")[2]) // 4 for device in first["containers"][0]}) == 1
    assert second["containers"] == [[{"uuid": "M-0", "memoryMiB": 65_536, "cores": 100}]]
    assert third["refused"] == {"n1": "1/8 NumaNotFit"}
