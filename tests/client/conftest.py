"""The command line and the Python client against a server that listens on a port, on the test's database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from kueueweb_client import Client
from kueueweb_client.cli.app import app, exit_code
from kueueweb_client.cli.session import options
from kueueweb_client.errors import ClientError
from tests import manifest_texts as texts
from tests.users import make_user
from tests.web_server import listening_server


@dataclass
class Ran:
    """What a command wrote, and its exit code."""

    code: int
    output: str
    error: str = ""


Run = Callable[..., Ran]


@pytest.fixture
def server(transactional_db: None) -> Iterator[str]:
    """The web process as it is shipped; a ClusterQueue of 10 cpu, a LocalQueue in team, and the users alice and bob."""
    cluster = Cluster.objects.create(name="default")
    made = texts.joined(
        texts.namespace("team"),
        texts.kueue("ResourceFlavor", "cpus"),
        texts.cluster_queue(),
        texts.local_queue(),
    )
    apply_manifests(cluster, made, user=None)
    make_user("alice")
    make_user("bob")
    with listening_server() as address:
        yield f"http://{address}"


@pytest.fixture
def run(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs the command as a shell would, with a configuration file of its own."""
    monkeypatch.setenv("KUEUEWEB_CONFIG", str(tmp_path / "config.yaml"))

    def run_command(*words: str, text: str = "") -> Ran:
        result = CliRunner().invoke(app, list(words), input=text)
        if isinstance(result.exception, ClientError):
            return Ran(exit_code(result.exception), result.output, str(result.exception))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.output)

    yield run_command
    options.context = options.cluster = options.namespace = ""


CLIENT = Path(__file__).resolve().parents[2] / "client"


def start(tmp_path: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """The command as a process of its own, with the configuration file of `run`."""
    given = {"PYTHONPATH": str(CLIENT), "KUEUEWEB_CONFIG": str(tmp_path / "config.yaml"), **environment}
    return subprocess.Popen(
        [sys.executable, "-m", "kueueweb_client.cli.app", *words],
        env={**os.environ, **given},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def alice(run: Run, server: str) -> Run:
    """The command, logged in as a cluster admin."""
    ran = run("login", server, "--username", "alice", "--password-stdin", "--namespace", "team", text="alice-secret\n")
    assert ran.code == 0, ran
    return run


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    """The Python client as a cluster admin."""
    from kueueweb_client import calls

    with Client(server) as anonymous:
        token = anonymous.send(calls.token("alice", "alice-secret"))["token"]
    with Client(server, token) as found:
        yield found
