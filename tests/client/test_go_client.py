"""The Go client: its generated part, its own tests, and the day of an integrator written with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.db import connection

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from scripts.go_client import generated
from tests.users import make_user

ROOT: Final = Path(__file__).resolve().parents[2]
CLIENT: Final = ROOT / "client" / "go"
_SECONDS: Final = 600
needs_go = pytest.mark.skipif(
    shutil.which("go") is None, reason="the client is in Go, and this machine has no Go to compile it"
)


def go(*words: str) -> str:
    """Run Go in the folder of the client, without the network."""
    told = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off", "GOPROXY": "off"}
    done = subprocess.run(
        ["go", *words], cwd=CLIENT, env=told, check=False, capture_output=True, text=True, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_its_types_and_methods_are_those_of_the_schema() -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    for name, text in generated(document).items():
        assert (CLIENT / name).read_text() == text, "run `make schema`"


@needs_go
def test_its_own_tests() -> None:
    assert subprocess.run(["gofmt", "-l", "."], cwd=CLIENT, check=True, capture_output=True, text=True).stdout == ""
    go("vet", "./...")
    assert "ok" in go("test", ".")


@pytest.fixture
def scheduler(server: str) -> Iterator[None]:
    """A scheduler that decides until the test has ended."""
    ended = threading.Event()

    def decide() -> None:
        engine = Engine(Cluster.objects.get(), "day")
        while not ended.wait(0.1):
            engine.run()
        connection.close()

    thread = threading.Thread(target=decide)
    thread.start()
    yield
    ended.set()
    thread.join()


@needs_go
@pytest.mark.usefixtures("scheduler")
def test_a_day_of_an_integrator(server: str, tmp_path: Path) -> None:
    make_user("dora")
    go("build", "-o", str(tmp_path / "day"), "./day")
    done = subprocess.run(
        [str(tmp_path / "day"), server], check=False, capture_output=True, text=True, timeout=_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr[:3000]
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "submissions", "life", "waiting", "quota", "reports",
    ]  # fmt: skip
    assert set(Workload.objects.values_list("status", flat=True)) == {"Finished"}
