"""The command that serves a simulated cluster, as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest
from django.core.management import CommandError, call_command

from clusters.api_objects import NAMESPACES, NODES, PODS
from clusters.client import TokenBucket
from clusters.client_credentials import connect
from simulation.fleet import example_fleet, read_manifests
from tests.cluster_kinds import JOBS
from tests.patience import PATIENCE_SECONDS
from tests.simulated_cluster import job, post

ROOT = Path(__file__).parents[3]
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: mine}\n"


class Served:
    """The command in a process, until the block ends."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "manage.py", "simulated_cluster", "--port", "0", "--virtual-clock", *arguments]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.line = self._process.stdout.readline()
        self.url = self.line.split()[-1]
        self.client = connect(self.url, TokenBucket(10_000, 10_000))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=PATIENCE_SECONDS)
        assert self._process.returncode in (0, -signal.SIGTERM)


def test_it_serves_the_example_fleet_and_keeps_its_state_over_a_restart(tmp_path: Path) -> None:
    snapshot = tmp_path / "state.json"
    with Served("--snapshot", str(snapshot), "--seed", "1", "--time-scale", "10") as served:
        assert "6 nodes, time x10" in served.line
        assert len(served.client.list(NODES).items) == len(example_fleet()) == 6
        served.client.create(JOBS, job(run_seconds=100))
        post(f"{served.url}/_clock", {"advance": 1})
        uid = served.client.list(PODS).items[0]["metadata"]["uid"]
    with Served("--snapshot", str(snapshot)) as served:
        (pod,) = served.client.list(PODS).items
        assert (pod["metadata"]["uid"], pod["status"]["phase"]) == (uid, "Running")


def test_a_file_says_which_nodes_there_are(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(f"{NODE}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: team}}\n")
    with Served("--nodes", str(path)) as served:
        (node,) = served.client.list(NODES).items
        assert (node["metadata"]["name"], node["status"]["allocatable"]["pods"]) == ("mine", "110")
        assert served.client.get(NAMESPACES, "", "team") is not None


@pytest.mark.parametrize("content", ["kind: [", "just text", "apiVersion: v1\nkind: Gadget\nmetadata: {name: a}"])
def test_a_file_that_can_not_be_read_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(content)
    with pytest.raises(CommandError, match=r"nodes\.yaml"):
        call_command("simulated_cluster", nodes=path, virtual_clock=True)


@pytest.mark.parametrize("arguments", [["--time-scale", "0"], ["--fail-rate", "2"], ["--run-seconds", "soon"]])
def test_options_out_of_range_are_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("simulated_cluster", *arguments)


def test_a_list_counts_as_its_items(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("apiVersion: v1\nkind: List\nitems:\n- {kind: Node, metadata: {name: a}}\n---\n---\n" + NODE)
    assert [item["metadata"]["name"] for item in read_manifests(path)] == ["a", "mine"]


def test_the_example_fleet_is_that_of_the_examples() -> None:
    nodes = example_fleet()
    assert [node["metadata"]["labels"]["nvidia.com/gpu.product"] for node in nodes] == ["Tesla-V100-32GB"] * 4 + [
        "NVIDIA-A100-80GB"
    ] * 2
    assert {node["status"]["capacity"]["nvidia.com/gpu"] for node in nodes} == {"80"}
