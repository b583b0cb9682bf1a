"""The load test: the server takes every shape that we ship, and the table says what each side of it had."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.error import URLError

import pytest
from django.core.management import call_command

from kueueweb.demo.processes import Process
from kueueweb.demo.supervisor import ProcessBroken
from kueueweb.loadtest import stack
from kueueweb.loadtest.processor import seconds_taken
from kueueweb.loadtest.shape import arrivals, manifest_text, read_shape, workload_json
from kueueweb.loadtest.stack import wait_for
from tests.api_client import SchemaClient
from tests.patience import PATIENCE_SECONDS

SHAPES = sorted((Path(__file__).resolve().parents[2] / "load").glob("*.json"))


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_the_server_takes_what_a_shape_needs(alice: SchemaClient, path: Path) -> None:
    """The nodes of tas.json were written with YAML aliases, which the server refused."""
    shape = read_shape(path)
    applied = alice.generic("POST", "/api/v1/manifests/", manifest_text(shape), content_type="application/yaml")
    assert applied.status_code == 200, applied.content[:2000]
    first_of_each_set = {arrival.set_index: arrival for arrival in arrivals(shape)}
    assert len(first_of_each_set) == len(shape.sets)
    body = [workload_json(shape, arrival) for arrival in first_of_each_set.values()]
    created = alice.post("/api/v1/workloads/", body)
    assert created.status_code == 201, created.content[:2000]


def test_a_small_run_of_the_topology_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = json.loads(next(path for path in SHAPES if path.stem == "tas").read_text())
    small |= {"cohorts": 1, "clusterQueuesPerCohort": 1, "floorSeconds": 0, "kueue": {}}
    small["topology"]["racksPerBlock"] = 2
    for entry in small["sets"]:
        entry |= {"count": 1, "runtimeMs": 200}
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small))
    call_command("loadtest", str(path))
    said = capsys.readouterr().out
    count = len(small["sets"])
    assert f"{count} of {count} workloads were admitted and finished" in said
    assert "no Kubernetes is in it" in said
    assert "50 requests a second, burst 100" in said
    taken = dict(line.split()[:2] for line in said[said.index("processor of our own") :].splitlines()[1:])
    assert taken.keys() == {"web", "scheduler", "beat", "postgresql", "valkey", "all"}
    assert float(taken["scheduler"]) > 0


def test_a_server_may_need_minutes_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.count(0.0, 20.0)
    monkeypatch.setattr(stack, "time", SimpleNamespace(monotonic=lambda: next(times), sleep=lambda _: None))
    refused = [URLError("refused")] * 9
    monkeypatch.setattr(stack, "urlopen", Mock(side_effect=[*refused, nullcontext()]))
    revived = Mock()
    wait_for("http://127.0.0.1:1", revived)
    assert revived.call_count == len(refused)


def test_a_process_that_keeps_ending_fails_the_load_test_with_its_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for server in ("Postgres", "Valkey"):
        monkeypatch.setattr(stack, server, Mock(return_value=Mock(url=lambda: "scheme://unused")))
    broken = Process("web", (sys.executable, "-c", "import sys; sys.exit('no cheese')"))
    monkeypatch.setattr(stack, "_preparation", lambda _: ())
    monkeypatch.setattr(stack, "processes", lambda **_: [broken])
    monkeypatch.setattr(stack, "_START_SECONDS", PATIENCE_SECONDS)
    with pytest.raises(ProcessBroken, match="no cheese"), stack.private_stack(tmp_path, tmp_path, "secret", Mock()):
        pass


def test_processor_time_includes_that_of_ended_and_running_children() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass\n"
    parent = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {work!r}])\n"
        f"subprocess.Popen([sys.executable, '-c', {work!r} + 'print(flush=True); input()'], stdin=subprocess.PIPE)\n"
        "input()"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert seconds_taken(process.pid) >= 0.58
    assert seconds_taken(process.pid) == 0.0
