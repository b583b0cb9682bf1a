"""The pages by task: each of their commands is run, in the order of the page, against a server and its scheduler."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.core.management import call_command, get_commands

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from queues.models import Workload
from queues.services.workloads import record_stopped
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts
from tests.client.conftest import Run
from tests.factories import make_node
from tests.users import make_user
from tests.web_server import listening_server

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
SITE: Final = "https://kueueweb.example.org"
_COMMAND: Final = re.compile(r"^ +((?:kueueweb|manage\.py) .+)$|`(kueueweb [^`]+|manage\.py [^`]+)`", re.MULTILINE)

JOB: Final = """
apiVersion: batch/v1
kind: Job
metadata: {name: from-file, namespace: ai-research, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 1, memory: 1Gi}}}]
"""
SCRIPT: Final = "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH -p main\n#SBATCH -c 1 --mem=1G\necho start\n"
VOLCANO: Final = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: volcanic}
spec: {weight: 2, capability: {cpu: 4}}
"""
SLURM: Final = "ClusterName=tux\nNodeName=n[1-2] CPUs=8 RealMemory=16000\nPartitionName=batch Nodes=ALL\n"
ACCOUNTS: Final = (
    "# To edit this file start with a cluster line for the new cluster\nCluster - 'tux':Fairshare=1\nParent - 'root'\n"
    "Account - 'physics':Description='p':Organization='u'\nParent - 'physics'\nUser - 'ada':DefaultAccount='physics'\n"
)


def commands(page: str, title: str = "") -> list[str]:
    """The commands of a page or of one of its sections, in its order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if title:
        text = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [indented or quoted for indented, quoted in _COMMAND.findall(text)]


class Reader:
    """A reader of the page who types its commands, while the scheduler runs."""

    def __init__(self, run: Run, server: str, user: str, folder: Path) -> None:
        self._run = run
        self._server = server
        self._user = user
        self._folder = folder
        self._engine = Engine(Cluster.objects.get(), "test")

    def type(self, command: str) -> str:
        """Run a command and return its output."""
        self._stop_pods()
        self._engine.run()
        given = self._filled_in(command)
        words = shlex.split(given)
        if words[0] == "manage.py":
            return self._manage(words[1:])
        if words[1] == "login":
            ran = self._run(*words[1:], "--username", self._user, "--password-stdin", text=f"{self._user}-secret\n")
        else:
            ran = self._run(*words[1:])
        found = 1 if words[1] == "diff" else 0
        assert ran.code == found, (command, ran)
        assert ran.output or words[1] == "scancel", command  # Slurm's, too, is silent
        return ran.output

    @staticmethod
    def _stop_pods() -> None:
        """Report, as a cluster does, that the pods of evicted workloads have stopped."""
        evicted = Workload.objects.filter(evicted_at__isnull=False)
        record_stopped(Cluster.objects.get(), evicted.values_list("namespace", "name"))

    def _filled_in(self, command: str) -> str:
        named = Workload.objects.filter(name__contains="train").order_by("-id").first()
        values = {SITE: self._server, "WORKLOAD": named.name if named else "none", "CLASS": "high", "NODE": "node-1"}
        values["JOB"] = named.job.name if named is not None and named.job is not None else "none"
        for word, value in values.items():
            command = re.sub(rf"{re.escape(word)}(?![A-Z])", value, command)
        return re.sub(r"[\w-]+\.(?:yaml|sh|conf|cfg)", lambda file: str(self._folder / file[0]), command)

    def _manage(self, words: list[str]) -> str:
        assert words[0] in get_commands(), words
        if words[0] != "convert":
            return words[0]  # tests/kubernetes/test_checkup.py runs them
        output = io.StringIO()
        arguments, target = (words[:-2], Path(words[-1])) if words[-2] == ">" else (words, None)
        call_command(*arguments, stdout=output, stderr=io.StringIO())
        assert output.getvalue()
        if target is not None:
            target.write_text(output.getvalue())
        return output.getvalue()


@pytest.fixture
def server(transactional_db: None) -> Iterator[str]:
    """The web process, with a cluster admin alice and a submitter dora of ai-research, and a queue main there."""
    cluster = Cluster.objects.create(name="default")
    manifests = texts.joined(
        texts.namespace("ai-research"),
        texts.kueue("ResourceFlavor", "cpus"),
        texts.cluster_queue("shared").replace("[cpu]", "[cpu, memory]").replace(
            "{name: cpu, nominalQuota: 10}", "{name: cpu, nominalQuota: 10}, {name: memory, nominalQuota: 64Gi}"
        ),
        texts.local_queue("main", "shared", "ai-research"),
        texts.workload_priority_class("high", 100),
        "apiVersion: kueueweb.io/v1\nkind: RoleBinding\nmetadata: {name: dora}\n"
        "spec: {user: dora, role: submitter, namespace: ai-research}\n",
    )  # fmt: skip
    apply_manifests(cluster, manifests, user=None)
    make_user("alice")
    make_user("dora")
    with listening_server() as address:
        yield f"http://{address}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the pages name."""
    admin = (DOCS / "first-steps.md").read_text(encoding="utf-8")
    [roles] = re.findall(r"`roles\.yaml`:\n\n((?: +.+\n)+)", admin)
    queue = texts.joined(texts.cluster_queue("team-b"), texts.local_queue("b", "team-b", "ai-research"))
    files = {"job.yaml": JOB, "train.sh": SCRIPT, "volcano.yaml": VOLCANO, "kueue-queues.yaml": queue}
    files |= {"slurm.conf": SLURM, "accounts.cfg": ACCOUNTS}
    for name, text in {**files, "roles.yaml": roles}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_ten_minutes_as_a_tenant(run: Run, server: str, folder: Path) -> None:
    tenant = Reader(run, server, "dora", folder)
    said = {command: tenant.type(command) for command in commands("first-steps.md", "Ten minutes as a tenant")
            if "logs" not in command and "--help" not in command and "--username" not in command}  # fmt: skip
    assert len(said) >= 14
    assert "Admitted" in said["kueueweb wait WORKLOAD --for admitted --timeout 600"]
    assert Workload.objects.get().deletion_requested_at is not None
    tenant.type("kueueweb get workloads")
    assert Workload.objects.get().status == "Finished"


def test_thirty_minutes_as_an_admin(run: Run, server: str, folder: Path) -> None:
    make_node(Cluster.objects.get(), "node-1", [{}])
    admin = Reader(run, server, "alice", folder)
    said = {command: admin.type(command) for command in commands("first-steps.md", "Thirty minutes as an admin")}
    assert len(said) >= 15
    assert "node-1" in said["kueueweb get nodes"]
    assert "research" in said["kueueweb audit --kind clusterqueue"]


@pytest.mark.parametrize(
    ("title", "count"), [("From Kueue", 5), ("From HAMi", 4), ("From Slurm", 6), ("From Volcano", 4)]
)
def test_coming_from_another_scheduler(run: Run, server: str, folder: Path, title: str, count: int) -> None:
    make_node(Cluster.objects.get(), "node-1", [{}])
    admin = Reader(run, server, "alice", folder)
    admin.type(f"kueueweb login {SITE} --namespace ai-research")
    found = commands("coming-from.md", title)
    assert len(found) >= count
    for command in found:
        admin.type(command)


def test_troubleshooting(run: Run, server: str, folder: Path) -> None:
    make_node(Cluster.objects.get(), "node-1", [{}])
    admin = Reader(run, server, "alice", folder)
    admin.type(f"kueueweb login {SITE} --namespace ai-research")
    admin.type("kueueweb submit --image busybox --queue main --name train -- true")
    found = commands("troubleshooting.md")
    assert len(found) >= 18
    for command in found:
        admin.type(command)
    assert Workload.objects.get().priority == 100


def test_the_links_lead_to_pages_and_sections() -> None:
    def anchors(text: str) -> set[str]:
        titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    for page in ("first-steps.md", "coming-from.md", "troubleshooting.md"):
        for path, _, anchor in (
            link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", (DOCS / page).read_text())
        ):
            found = (DOCS / path).read_text(encoding="utf-8")
            assert not anchor or anchor in anchors(found), (page, path, anchor)
