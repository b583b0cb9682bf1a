"""The start of the command: which libraries it imports, and what completion knows without a request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kueueweb_client import __version__
from kueueweb_client.cli import completion
from kueueweb_client.cli.app import MODULES, app
from kueueweb_client.cli.session import options
from kueueweb_client.client import Client
from kueueweb_client.contexts import Context, Contexts, save
from kueueweb_client.nouns import CLUSTER_QUEUES, noun_named
from tests.client.conftest import CLIENT

HEAVY = ("httpx", "pydantic", "rich", "jsonpath", "asyncio", "ssl", "importlib.metadata", "mcp")
PROBE = f"""
import sys
from kueueweb_client.cli.app import main
try:
    main()
except SystemExit:
    pass
print(",".join(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)
"""


def probe(tmp_path: Path, *words: str, **environment: str) -> tuple[str, str]:
    """The output of the command, and the heavy libraries that it imported."""
    given = {"PYTHONPATH": str(CLIENT), "KUEUEWEB_CONFIG": str(tmp_path / "config.yaml"), **environment}
    ran = subprocess.run(
        [sys.executable, "-c", PROBE.replace("main()", "sys.argv[0] = 'kueueweb'; main()"), *words],
        env={**os.environ, **given}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout, ran.stderr.strip()


def complete(tmp_path: Path, line: str) -> list[str]:
    """The words that bash is offered at the end of a line; the command must have imported nothing heavy."""
    count = str(len(line.split(" ")) - 1)
    output, heavy = probe(tmp_path, _KUEUEWEB_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=count)
    assert heavy == ""
    return output.split()


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("version",), ("get", "--help"), ("api-resources",)])
def test_the_start_imports_no_heavy_library(tmp_path: Path, words: tuple[str, ...]) -> None:
    output, heavy = probe(tmp_path, *words)
    assert output
    assert heavy == ""


def test_completion_knows_verbs_and_kinds_and_without_a_context_no_names(tmp_path: Path) -> None:
    assert {"get", "apply", "config"} <= set(complete(tmp_path, "kueueweb "))
    assert complete(tmp_path, "kueueweb get clusterq") == ["clusterqueues"]
    assert complete(tmp_path, "kueueweb get cq ") == []


def test_completion_offers_names_that_were_shown_on_this_server_and_in_this_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUEUEWEB_CONFIG", str(tmp_path / "config.yaml"))
    save(Contexts("here", {"here": Context("http://127.0.0.1:1", namespace="team")}))
    workloads = noun_named("wl")
    assert workloads is not None
    with Client("http://127.0.0.1:1") as asked, Client("http://127.0.0.1:2") as other:
        completion.remember(asked, CLUSTER_QUEUES, "", ["research", "batch"])
        completion.remember(asked, workloads, "team", ["train"])
        completion.remember(asked, workloads, "else", ["foreign"])
        completion.remember(other, CLUSTER_QUEUES, "", ["elsewhere"])
    file = tmp_path / "config.names.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(json.loads(file.read_text())) == 4
    assert complete(tmp_path, "kueueweb get cq ") == ["research", "batch"]
    assert complete(tmp_path, "kueueweb get cq/r") == ["cq/research"]
    assert complete(tmp_path, "kueueweb describe wl ") == ["train"]
    assert complete(tmp_path, "kueueweb get wl -n else ") == ["foreign"]


def test_every_command_of_the_table_exists_and_takes_the_global_options_anywhere() -> None:
    runner = CliRunner()
    for names in MODULES.values():
        for name in names:
            shown = runner.invoke(app, [name, "--help"])
            assert shown.exit_code == 0, name
            if "Commands:" not in shown.output:
                assert "--context" in shown.output, name
    for words in (["--cluster", "east", "-n", "team", "version"], ["version", "--cluster=east", "-n", "team"]):
        options.cluster = options.namespace = ""
        assert runner.invoke(app, words).output == f"kueueweb client {__version__}\n"
        assert (options.cluster, options.namespace) == ("east", "team")
    options.cluster = options.namespace = ""
