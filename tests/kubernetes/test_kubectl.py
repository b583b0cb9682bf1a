"""The real kubectl against the web process, with a token of ours: nothing of the cluster is asked."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import yaml
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.models import Cluster
from accounts.services.tokens import create_token
from clusters.manifests import apply_manifests
from clusters.webhook.certificates import renewed
from queues.models import Pod, Workload, WorkloadEvent
from scheduler.leader.engine import Engine
from tests.factories import make_node
from tests.kubernetes.control_plane import PROGRAMS
from tests.kueueweb.wire.conftest import JOB, OBJECTS, submit
from tests.users import cluster, make_user
from tests.web_server import listening_server

__all__ = ["cluster"]

pytestmark = pytest.mark.django_db(transaction=True)

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "kubectl.md"
_SECONDS: Final = 120
_CONTEXTS: Final = ("alice", "bob", "charlie")


def kubeconfig(server: str, authority: Path) -> str:
    """A context for each user, with a token of theirs; west is another cluster of the same server."""
    trust = {"certificate-authority": str(authority)}
    users = [User.objects.filter(username=name).first() or make_user(name) for name in _CONTEXTS]
    contexts = [(name, {"cluster": "default", "user": name, "namespace": "team-a"}) for name in _CONTEXTS]
    contexts.append(("west", {"cluster": "west", "user": "alice"}))
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "default", "cluster": {"server": f"https://{server}", **trust}},
                {"name": "west", "cluster": {"server": f"https://{server}/kubernetes/west", **trust}},
            ],
            "users": [{"name": user.username, "user": {"token": create_token(user)[0]}} for user in users],
            "contexts": [{"name": name, "context": context} for name, context in contexts],
        }
    )


class Kubectl:
    """Runs kubectl as a user and returns its output; a refusal is a CalledProcessError with its words."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder

    def _command(self, user: str, words: str) -> list[str]:
        options = ["--kubeconfig", str(self._folder / "kubeconfig"), "--cache-dir", str(self._folder / "cache")]
        return [str(PROGRAMS / "kubectl"), *options, "--context", user, *words.split()]

    def __call__(self, user: str, words: str, stdin: str = "") -> str:
        command = self._command(user, words)
        done = subprocess.run(command, check=False, capture_output=True, text=True, input=stdin, timeout=_SECONDS)
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    @contextmanager
    def following(self, user: str, words: str) -> Iterator[Callable[[], list[str]]]:
        """Reads the cells of the next line."""
        with subprocess.Popen(self._command(user, words), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            output = process.stdout
            patience = threading.Timer(_SECONDS, process.kill)
            patience.start()
            try:
                yield lambda: table(output.readline())[0]
            finally:
                patience.cancel()
                process.terminate()


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Iterator[Kubectl]:
    """The real kubectl, three jobs of team-a, and quota for two of them."""
    apply_manifests(cluster, OBJECTS, user=None)
    Cluster.objects.create(name="west")
    for name in ("first", "second", "third"):
        submit(cluster, name, app=name)
    Engine(cluster, "test").run()
    issued = renewed(None, ["127.0.0.1"], datetime.now(UTC))
    files = {name: tmp_path / f"{name}.pem" for name in ("authority", "server", "key")}
    files["authority"].write_bytes(issued.authorities)
    files["server"].write_bytes(issued.certificate)
    files["key"].write_bytes(issued.key)
    # kubectl sends a token over TLS only.
    with listening_server(ssl_certfile=str(files["server"]), ssl_keyfile=str(files["key"])) as server:
        config = tmp_path / "kubeconfig"
        config.write_text(kubeconfig(server, files["authority"]))

        yield Kubectl(cluster, tmp_path)


def table(text: str) -> list[list[str]]:
    """The cells of kubectl's output."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def start_pod(name: str) -> None:
    """A running pod of the Job of this name."""
    workload = Workload.objects.get(job__name=name)
    pod = {"namespace": "team-a", "name": f"{name}-0", "uid": f"pod-{name}", "node_name": "n1", "phase": "Running"}
    Pod.objects.create(workload=workload, pod_set="main", replica=0, ready=True, created_at=timezone.now(), **pod)


def refusal(run: Kubectl, user: str, words: str, stdin: str = "") -> str:
    """The words of a refusal."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run(user, words, stdin)
    return str(refused.value.stderr)


def test_get_and_describe(kubectl: Kubectl) -> None:
    resources = {line.split()[0] for line in kubectl("alice", "api-resources --no-headers").splitlines()}
    assert {"clusterqueues", "localqueues", "workloads", "jobs", "namespaces", "resourceflavors"} <= resources

    [header, row] = table(kubectl("alice", "get cq -o wide"))
    assert header == ["NAME", "COHORT", "STRATEGY", "PENDING WORKLOADS", "ADMITTED WORKLOADS"]
    assert row == ["research", "company", "BestEffortFIFO", "1", "2"]
    assert table(kubectl("bob", "get queue")) == [
        ["NAME", "CLUSTERQUEUE", "PENDING WORKLOADS", "ADMITTED WORKLOADS"],
        ["main", "research", "1", "2"],
    ]
    workloads = table(kubectl("bob", "get workloads"))
    assert workloads[0] == ["NAME", "QUEUE", "RESERVED IN", "ADMITTED", "FINISHED", "AGE"]
    assert len(workloads) == 4
    jobs = table(kubectl("bob", "get jobs --sort-by .metadata.name"))
    assert [job[:3] for job in jobs[1:]] == [
        ["first", "Running", "0/2"], ["second", "Running", "0/2"], ["third", "Suspended", "0/2"],
    ]  # fmt: skip
    assert table(kubectl("bob", "get jobs -l app=second --no-headers"))[0][0] == "second"
    assert kubectl("bob", "get jobs --chunk-size 1 -o name").split() == [
        "job.batch/first", "job.batch/second", "job.batch/third",
    ]  # fmt: skip
    assert kubectl("bob", "get ns -o name").split() == ["namespace/team-a"]

    queue = yaml.safe_load(kubectl("alice", "get clusterqueue research -o yaml"))
    assert (queue["apiVersion"], queue["status"]["admittedWorkloads"]) == ("kueue.x-k8s.io/v1beta2", 2)
    older = json.loads(kubectl("alice", "get clusterqueues.v1beta1.kueue.x-k8s.io research -o json"))
    assert (older["apiVersion"], older["spec"]["cohort"]) == ("kueue.x-k8s.io/v1beta1", "company")
    assert kubectl("alice", "get wl -A -o jsonpath={.items[*].spec.queueName}").split() == ["main"] * 3
    described = kubectl("bob", "describe job third")
    assert re.search(r"^Name:\s+third$", described, re.MULTILINE)
    assert "Cohort Name:  company" in kubectl("alice", "describe clusterqueue research")
    assert table(kubectl("west", "get cq")) == []


def test_pods_nodes_and_events(kubectl: Kubectl) -> None:
    make_node(kubectl.cluster, "n1", ready=True)
    start_pod("first")
    start_pod("second")
    header, *pods = table(kubectl("bob", "get pods -l job-name=first -o wide"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "NODE"]
    assert [[*pod[:4], pod[5]] for pod in pods] == [["first-0", "1/1", "Running", "0", "n1"]]
    described = kubectl("bob", "describe pod first-0")
    assert re.search(r"^Node:\s+n1/", described, re.MULTILINE)
    assert re.search(r"^Status:\s+Running$", described, re.MULTILINE)
    assert kubectl("bob", "wait pod/first-0 --for=condition=Ready").strip() == "pod/first-0 condition met"
    assert table(kubectl("alice", "get nodes"))[1][:3] == ["n1", "Ready", "<none>"]
    assert "first-0" in kubectl("alice", "describe node n1")
    reasons = [row[2] for row in table(kubectl("bob", "get events"))[1:]]
    assert reasons.count("QuotaReserved") == 2
    first = Workload.objects.get(job__name="first").name
    assert re.search(r"Normal\s+QuotaReserved", kubectl("bob", f"describe workload {first}"))
    with kubectl.following("bob", "get pods --watch") as following:
        assert [following()[0] for _ in range(3)] == ["NAME", "first-0", "second-0"]
        Pod.objects.filter(name="first-0").update(phase="Succeeded", ready=False, reason="Completed")
        assert following()[:3] == ["first-0", "0/1", "Completed"]
        Pod.objects.filter(name="second-0").delete()
        assert following()[0] == "second-0"
    with kubectl.following("bob", "get events --watch --no-headers") as following:
        assert [following()[2] for _ in range(WorkloadEvent.objects.count())].count("Created") == 3
        submit(kubectl.cluster, "fourth")
        assert following()[2:4] == ["Created", f"workload/{Workload.objects.get(job__name='fourth').name}"]
    assert "does not answer" in refusal(kubectl, "bob", "logs job/first"), "found the pod, but has no cluster"
    assert "forbidden" in refusal(kubectl, "charlie", "get pods -n team-a")
    assert kubectl("charlie", "get pods -A").strip() == ""
    assert kubectl("charlie", "get events -A").strip() == ""
    assert "written by the cluster" in refusal(kubectl, "alice", "delete pod first-0")


def test_watch_and_wait(kubectl: Kubectl) -> None:
    with kubectl.following("bob", "get jobs --watch") as following:
        lines = [following() for _ in range(4)]
        assert [line[0] for line in lines] == ["NAME", "first", "second", "third"]
        submit(kubectl.cluster, "fourth")
        assert following()[:3] == ["fourth", "Suspended", "0/2"]
    assert "condition met" in kubectl("bob", "wait job/third --for=condition=Suspended --timeout=60s")
    assert "condition met" in kubectl("bob", "wait job/first --for=jsonpath={.spec.completions}=2 --timeout=60s")


def test_the_commands_of_the_page(kubectl: Kubectl, tmp_path: Path) -> None:
    make_node(kubectl.cluster, "n1")
    start_pod("first")
    commands = re.findall(r"^    kubectl (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) > 10
    server = yaml.safe_load((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    token = create_token(User.objects.get(username="alice"))[0]
    environment = {"KUBECONFIG": str(tmp_path / "page"), "HOME": str(tmp_path)}
    for command in commands:
        words = shlex.split(command.replace("TOKEN", token).replace("https://kueueweb.example.org", server))
        if "set-cluster" in words:
            words.append(f"--certificate-authority={tmp_path / 'authority.pem'}")
        done = subprocess.run(
            [str(PROGRAMS / "kubectl"), *words], check=False, capture_output=True, text=True, env=environment,
            timeout=_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert done.stdout, command


def test_each_user_sees_their_own(kubectl: Kubectl) -> None:
    assert kubectl("charlie", "get wl -A -o name") == ""
    assert 'cannot list resource "jobs"' in refusal(kubectl, "charlie", "get jobs -n team-a")
    assert kubectl("bob", "get cq -o name").split() == ["clusterqueue.kueue.x-k8s.io/research"]
    assert kubectl("charlie", "get cq -o name") == ""
    assert "NotFound" in refusal(kubectl, "charlie", "get cq research")
    assert kubectl("bob", "auth can-i list jobs").strip() == "yes"
    with pytest.raises(subprocess.CalledProcessError) as no:
        kubectl("charlie", "auth can-i list jobs")
    assert no.value.stdout.startswith("no - no role of charlie")
    assert "bob" in kubectl("bob", "auth whoami")
    assert "workloads.kueue.x-k8s.io" in kubectl("bob", "auth can-i --list")
    assert "must be logged in" in refusal(kubectl, "bob", "get jobs --token nonsense")


def test_writes(kubectl: Kubectl) -> None:
    manifest = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: more, namespace: team-a}\n"
    made = kubectl("alice", "apply -f -", f"{manifest}spec: {{clusterQueue: research}}\n")
    assert made.strip() == "localqueue.kueue.x-k8s.io/more created"
    held = f"{manifest}spec: {{clusterQueue: research, stopPolicy: Hold}}\n"
    assert "configured (server dry run)" in kubectl("alice", "apply --dry-run=server -f -", held)
    assert "configured" in kubectl("alice", "apply -f -", held)
    assert "stopPolicy: Hold" in kubectl("alice", "get queue more -o yaml")
    assert "labeled" in kubectl("alice", "label cq research area=ml")
    assert "patched" in kubectl("alice", 'patch cq research --type merge -p {"spec":{"stopPolicy":"Hold"}}')
    replaced = kubectl("alice", "get cq research -o yaml").replace("stopPolicy: Hold", "stopPolicy: None")
    assert "replaced" in kubectl("alice", "replace -f -", replaced)
    assert "Conflict" in refusal(kubectl, "alice", "replace -f -", replaced)

    assert "created" in kubectl("bob", "create -f -", JOB.replace("NAMESPACE", "team-a").replace("NAME", "made"))
    assert kubectl("bob", "auth can-i create jobs").strip() == "yes"
    assert "deleted" in kubectl("bob", "delete job made")
    assert "deleted" in kubectl("alice", "delete queue more")
    assert "Forbidden" in refusal(kubectl, "bob", "delete queue main")
    assert "Forbidden" in refusal(kubectl, "charlie", "delete job first -n team-a")


def test_deletes_of_many(kubectl: Kubectl) -> None:
    path = "--raw /apis/batch/v1/namespaces/team-a/jobs"
    assert "Forbidden" in refusal(kubectl, "charlie", f"delete {path}")
    assert kubectl("bob", "delete workloads --all --dry-run=server").count("(server dry run)") == 3
    assert kubectl("bob", "delete jobs -l app=second -o name").split() == ["job.batch/second"]
    assert json.loads(kubectl("bob", f"delete {path}?labelSelector=app%3Dthird"))["kind"] == "JobList"
    assert kubectl("bob", "get jobs -o name").split() == ["job.batch/first"]
    assert "deleted" in kubectl("bob", "delete workloads --all --wait=false")
    assert kubectl("bob", "auth can-i deletecollection jobs").strip() == "yes"
    with pytest.raises(subprocess.CalledProcessError):
        kubectl("charlie", "auth can-i deletecollection jobs -n team-a")


def test_applies(kubectl: Kubectl) -> None:
    queue = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: more, namespace: team-a}\n"
        "spec: {clusterQueue: research, stopPolicy: POLICY}\n"
    )
    held, open_ = queue.replace("POLICY", "Hold"), queue.replace(", stopPolicy: POLICY", "")
    assert "created" in kubectl("alice", "apply -f -", held)
    assert "unchanged" in kubectl("alice", "apply -f -", held)
    assert "configured" in kubectl("alice", "apply -f -", open_)
    assert "stopPolicy: Hold" not in kubectl("alice", "get queue more -o yaml"), "a field that was taken out stays"
    assert kubectl("alice", "diff -f -", open_) == ""

    job = JOB.replace("NAMESPACE", "team-a").replace("NAME", "made").replace("busybox", "busybox:1")
    assert "created" in kubectl("bob", "apply -f -", job)
    assert "unchanged" in kubectl("bob", "apply -f -", job)
    assert "configured" in kubectl("bob", "apply -f -", job.replace("busybox:1", "busybox:2"))
    assert "image: busybox:2" in kubectl("bob", "get job made -o yaml")

    applied = kubectl("alice", "apply --server-side --field-manager argo -f -", queue.replace("POLICY", "Hold"))
    assert "serverside-applied" in applied
    said = refusal(kubectl, "alice", "apply --server-side --field-manager other -f -", queue.replace("POLICY", "None"))
    assert 'conflicts with "argo"' in said
    assert ".spec.stopPolicy" in said
    forced = "apply --server-side --force-conflicts --field-manager other -f -"
    assert "serverside-applied" in kubectl("alice", forced, queue.replace("POLICY", "None"))
    assert "manager: other" in kubectl("alice", "get queue more --show-managed-fields -o yaml")
    assert "serverside-applied" in kubectl("alice", "apply --server-side -f -", open_)
    patch = '[{"op":"add","path":"/spec/stopPolicy","value":"Hold"}]'
    assert "patched" in kubectl("alice", f"patch queue more --type json -p {patch}")


def test_explains(kubectl: Kubectl) -> None:
    said = kubectl("bob", "explain clusterqueue.spec.preemption.borrowWithinCohort")
    assert "FIELD: borrowWithinCohort <Object>" in said
    assert "Whether a workload that has to borrow may preempt." in said
    assert "maxPriorityThreshold" in said
    deep = kubectl("bob", "explain clusterqueue.spec.resourceGroups.flavors.resources")
    assert re.search(r"nominalQuota\s+<\S+> -required-", deep)
    assert "kueueweb.io/queue-priority" in kubectl("bob", "explain clusterqueue.metadata.annotations")
    older = kubectl("bob", "explain cq --recursive --api-version kueue.x-k8s.io/v1beta1")
    assert re.search(r"\n\s+cohort\s+<string>", older)
