"""client-go's informers against the web process: list and watch, resync, cut connections, and versions too old."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pytest
from django.core.cache import cache

from queues.models import Job
from queues.services.jobs import delete_jobs
from scheduler.leader.engine import Engine
from tests.kubernetes.control_plane import PROGRAMS
from tests.kubernetes.test_kubectl import Kubectl, kubectl
from tests.kueueweb.wire.conftest import submit
from tests.users import EPOCH, cluster

__all__ = ["cluster", "kubectl"]

pytestmark = pytest.mark.django_db(transaction=True)

JOBS: Final = "batch/v1/jobs"
WORKLOADS: Final = "kueue.x-k8s.io/v1beta2/workloads"
QUEUES: Final = "kueue.x-k8s.io/v1beta2/clusterqueues"
_PATIENCE_SECONDS: Final = 60
_RESYNC_SECONDS: Final = 2

Line = dict[str, Any]


class Informers:
    """A running program of informers: its lines, and its commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands = process.stdin
        self._lines: queue.Queue[Line] = queue.Queue()
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def _read(self, output: IO[str]) -> None:
        for text in output:
            self._lines.put(json.loads(text))

    def until(self, wanted: Callable[[Line], bool]) -> list[Line]:
        """The lines up to the first that is wanted."""
        found: list[Line] = []
        while not found or not wanted(found[-1]):
            try:
                found.append(self._lines.get(timeout=_PATIENCE_SECONDS))
            except queue.Empty:
                pytest.fail(f"the wanted line did not come after {found}")
        return found

    def next(self, event: str, name: str = "", resource: str = "jobs") -> Line:
        """The next event of that kind about that object."""

        def wanted(line: Line) -> bool:
            return (line["event"], line.get("name", ""), line.get("resource", "")) == (event, name, resource)

        return self.until(wanted)[-1]

    def command(self, words: str) -> Line:
        """Send a command and return its answer."""
        self._commands.write(f"{words}\n")
        self._commands.flush()
        answers = {"cut": "CUT", "counts": "COUNTS", "list": "LIST"}
        return self.until(lambda line: line["event"] == answers[words])[-1]

    def sent(self) -> dict[str, int]:
        """The number of requests by kind, and of errors by status."""
        found: dict[str, int] = self.command("counts")["sent"]
        return found


@contextmanager
def informers(folder: Path, user: str, *resources: str, streamed: bool = True) -> Iterator[Informers]:
    """Informers of a user, in all namespaces; `streamed`: they begin with a watch that tells all objects."""
    words = [str(PROGRAMS / "informer"), str(folder / "kubeconfig"), user, "", str(_RESYNC_SECONDS), *resources]
    environment = {**os.environ, "KUBE_FEATURE_WatchListClient": str(streamed).lower()}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            yield Informers(process)
        finally:
            process.terminate()


def remove(kubectl: Kubectl, name: str) -> None:
    delete_jobs(kubectl.cluster, list(Job.objects.filter(name=name)), actor="test", now=EPOCH)
    Job.objects.filter(name=name).delete()


@pytest.mark.parametrize("streamed", [True, False])
def test_a_life_of_informers(kubectl: Kubectl, tmp_path: Path, streamed: bool) -> None:
    with informers(tmp_path, "bob", JOBS, streamed=streamed) as found:
        before = found.until(lambda line: line["event"] == "SYNCED")
        assert sorted(line["name"] for line in before if line["event"] == "ADD") == ["first", "second", "third"]
        sent = found.sent()
        assert ("watch-list" in sent, "list" in sent) == (streamed, not streamed)

        submit(kubectl.cluster, "fourth")
        added = found.next("ADD", "fourth")
        found.next("RESYNC", "fourth")
        remove(kubectl, "first")
        gone = found.next("DELETE", "first")
        assert int(gone["version"]) > int(added["version"]) or gone["uid"]
        Engine(kubectl.cluster, "next").run()
        changed = found.next("UPDATE", "third")
        assert int(changed["version"]) > int(added["version"])

        found.command("cut")
        submit(kubectl.cluster, "fifth")
        found.next("ADD", "fifth")
        assert found.sent()["watch-list" if streamed else "list"] == 1, "a watch that was cut continues"

        found.command("cut")
        remove(kubectl, "second")
        found.next("DELETE", "second")
        submit(kubectl.cluster, "sixth")
        found.next("ADD", "sixth")
        assert found.command("list")["names"] == ["team-a/fifth", "team-a/fourth", "team-a/sixth", "team-a/third"]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_version_that_is_forgotten_is_listed_again(kubectl: Kubectl, tmp_path: Path, streamed: bool) -> None:
    with informers(tmp_path, "bob", JOBS, streamed=streamed) as found:
        found.until(lambda line: line["event"] == "SYNCED")
        with forgetting():
            found.command("cut")
            remove(kubectl, "first")
            submit(kubectl.cluster, "new")
            found.next("ADD", "new")
        assert found.sent()["watch-list" if streamed else "list"] >= 2
        assert found.command("list")["names"] == ["team-a/new", "team-a/second", "team-a/third"]


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget all lists from which watches could continue, also lists that are remembered when a watch ends."""
    over = threading.Event()

    def forget() -> None:
        while not over.wait(0.05):
            cache.clear()

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_each_user_follows_their_own(kubectl: Kubectl, tmp_path: Path) -> None:
    with informers(tmp_path, "charlie", JOBS, WORKLOADS) as found:
        for _ in range(2):
            found.until(lambda line: line["event"] == "SYNCED")
        submit(kubectl.cluster, "not-theirs")
        submit(kubectl.cluster, "theirs", "team-b")
        lines = found.until(lambda line: line.get("name") == "theirs")
        assert {line["namespace"] for line in lines} == {"team-b"}


def test_computed_statuses_follow(kubectl: Kubectl, tmp_path: Path) -> None:
    with informers(tmp_path, "alice", QUEUES, WORKLOADS) as found:
        for _ in range(2):
            found.until(lambda line: line["event"] == "SYNCED")
        submit(kubectl.cluster, "fourth")
        Engine(kubectl.cluster, "next").run()

        def pending(line: Line) -> bool:
            return line.get("resource") == "clusterqueues" and line["status"]["pendingWorkloads"] == 2

        assert found.until(pending)[-1]["event"] in ("UPDATE", "RESYNC")
