"""`kueueweb logs`: through the whole application to the simulated cluster, and over connections that end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection

from kueueweb_client import Client
from queues.models import Pod, Workload
from tests.client.conftest import Run
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import ServerThread, make_simulated
from tests.users import make_user
from tests.web_server import listening_server


@pytest.fixture
def system(transactional_db: None) -> Iterator[System]:
    with ServerThread(make_simulated()) as server:
        yield System(server)


@pytest.fixture
def server(system: System) -> Iterator[str]:
    """The web process as it is shipped: followed logs pass by Django's threads."""
    make_user("alice")
    with listening_server() as address:
        yield f"http://{address}"


def run_jobs(system: System, **spec: object) -> str:
    system.submit(gpu_job(run_seconds=100, **spec))  # type: ignore[arg-type]
    for _ in range(2):
        system.turn()
    return Workload.objects.get().name


def test_logs_of_a_pod_until_it_ends(system: System, alice: Run) -> None:
    workload = run_jobs(system)
    system.advance(20)
    first = alice("logs", workload)
    assert first.code == 0, first
    lines = first.output.splitlines()
    assert lines[0].startswith("starting app on node-")
    assert alice("logs", "train", "--tail", "1").output.splitlines() == lines[-1:]

    def end() -> None:
        system.advance(200)
        system.watcher.resync()
        connection.close()

    later = threading.Timer(1.0, end)
    later.start()
    followed = alice("logs", "-f", workload).output.splitlines()
    later.join()
    assert followed[: len(lines)] == lines
    assert followed[-1] == "finished, exit code 0"
    assert len(followed) == len(set(followed))
    never_restarted = alice("logs", workload, "--previous")
    assert "previous terminated container" in never_restarted.error
    assert alice("logs", workload, "--previous", "-f").code == 2
    stamped = alice("logs", workload, "--timestamps", "--tail", "1").output
    assert stamped.endswith(" finished, exit code 0\n")


def test_lines_of_several_pods_are_prefixed_and_one_pod_is_followed(system: System, alice: Run) -> None:
    workload = run_jobs(system, parallelism=2, completions=2)
    names = sorted(Pod.objects.values_list("name", flat=True))
    lines = alice("logs", workload, "--tail", "1").output.splitlines()
    assert sorted(line.partition("]")[0].removeprefix("[") for line in lines) == names
    refused = alice("logs", "-f", workload)
    assert refused.code == 2
    assert alice("logs", workload, "--pod", names[0], "--tail", "1").output.count("\n") == 1


def test_what_is_not_there_has_its_exit_code(system: System, alice: Run) -> None:
    assert alice("logs", "none").code == 3
    system.submit(gpu_job())
    waiting = alice("logs", Workload.objects.get().name)
    assert waiting.code == 1
    assert "has no pods" in waiting.error


class Interrupted(BaseHTTPRequestHandler):
    """A server whose followed logs end early, as they do after ten minutes; the pod ends with its third line."""

    LINES = ("2026-01-01T00:00:00.1Z one", "2026-01-01T00:00:00.2Z two", "2026-01-01T00:00:00.3Z three")
    asked: list[str] = []

    def do_GET(self) -> None:
        """The pods, or two lines from the time on that is asked for."""
        parts = urlsplit(self.path)
        if parts.path.endswith("/pods/"):
            phase = "Succeeded" if len(self.asked) > 1 else "Running"
            body = json.dumps({"results": [{"name": "pod", "phase": phase}], "next": None}).encode()
        else:
            since = parse_qs(parts.query).get("since", [""])[0]
            self.asked.append(since)
            body = "".join(f"{line}\n" for line in [line for line in self.LINES if line >= since][:2]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_a_connection_that_ends_is_made_anew_without_losing_or_repeating_a_line() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Interrupted) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        with Client(f"http://127.0.0.1:{httpd.server_address[1]}", "x") as client:
            assert list(client.follow_log("team", "train", "pod", tail=10)) == ["one", "two", "three"]
        httpd.shutdown()
    assert Interrupted.asked == ["", "2026-01-01T00:00:00.2Z"]
