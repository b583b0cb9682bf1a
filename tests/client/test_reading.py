"""`kueueweb get`: pages, selectors, forms and watches."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.db import connection

from accounts.models import Cluster, Role, RoleBinding
from clusters.manifests import apply_manifests
from history.services.checkpoints.checkpoint_taking import take_checkpoint
from kueueweb_client import ApiError, Client, calls
from queues.models import ClusterQueue, Cohort, Workload
from scheduler.leader.engine import Engine
from tests.client.conftest import Run, start
from tests.client.forwarding_server import Forwarding, forwarding
from tests.users import make_user


@pytest.fixture
def front(server: str) -> Iterator[Forwarding]:
    """A server in front of the web process that notes each request."""
    with forwarding(server) as found:
        yield found


@pytest.fixture
def alice(run: Run, front: Forwarding) -> Run:
    """The command, logged in as a cluster admin through the server in front."""
    ran = run("login", front.url, "--username", "alice", "--password-stdin", "-n", "team", text="alice-secret\n")
    assert ran.code == 0, ran
    front.asked.clear()
    return run


def submit(number: int, **labels: str) -> None:
    made = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": f"w-{index}", "namespace": "team", "labels": {"app": "ab"[index % 2], **labels}},
            "spec": {
                "queueName": "queue",
                "podSets": [
                    {
                        "name": "main",
                        "count": 1,
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [
                                    {"name": "c", "image": "x", "resources": {"requests": {"cpu": "4"}}},
                                ],
                            }
                        },
                    }
                ],
            },
        }
        for index in range(number)
    ]
    apply_manifests(Cluster.objects.get(), yaml.safe_dump_all(made), user=None)


@pytest.mark.parametrize("form", ["name", "table", "json"])
def test_rows_are_written_before_the_next_page_is_answered_and_a_closed_pipe_ends_quietly(
    alice: Run, front: Forwarding, tmp_path: Path, form: str
) -> None:
    submit(10)
    front.hold_all_but(1)
    process = start(tmp_path, "get", "workloads", "-o", form, "--chunk-size", "2")
    assert process.stdout is not None
    assert process.stdout.readline()  # the second page is held back until this line was read
    process.stdout.close()
    front.held.set()
    assert process.stderr is not None
    assert (process.wait(60), process.stderr.read()) == (141, "")
    assert len(front.asked) == 2  # of five pages


def test_selectors_go_to_the_server(alice: Run, front: Forwarding) -> None:
    submit(6)

    def names(*words: str) -> list[str]:
        ran = alice("get", "workloads", "-o", "name", *words)
        assert ran.code == 0, ran
        return sorted(ran.output.split())

    even = ["workload/w-0", "workload/w-2", "workload/w-4"]
    assert names("-l", "app in (a,c)") == even == names("-l", "app!=b") == names("-l", "app=a,app")
    assert names("--field-selector", "metadata.name!=w-1", "-l", "app=b") == ["workload/w-3", "workload/w-5"]
    assert names("--limit", "2", "--sort-by", ".metadata.name") == ["workload/w-0", "workload/w-1"]
    assert len(names("-q", "queue", "-c", "main", "--status", "pending,Evicted")) == 6
    assert names("--status", "Admitted") == names("-u", "nobody") == names("-c", "other") == []
    assert names("--field-selector", "status.admission.clusterQueue=main") == []
    assert all("labelSelector" in asked or "fieldSelector" in asked or "limit=2" in asked or "limit=500" in asked
               for asked in front.asked)  # fmt: skip
    front.asked.clear()
    assert names("--limit", "2")
    assert [asked.partition("limit=")[2] for asked in front.asked] == ["2"]
    table = alice("get", "wl", "-l", "app in (a)", "--no-headers", "--sort-by", ".metadata.name").output
    assert [line.split()[0] for line in table.splitlines()] == ["w-0", "w-2", "w-4"]
    assert alice("get", "lq", "-c", "other", "-o", "name").output == ""
    assert alice("get", "lq", "-c", "main", "-o", "name").output == "localqueue/queue\n"
    assert alice("get", "wl", "-l", "a==b==c").code == 1
    assert alice("get", "wl", "--status", "Sleeping").code == 1
    assert alice("get", "cq", "--status", "Pending").code == 1


def test_json_and_yaml_are_a_list_of_manifests_that_apply_again_unchanged(alice: Run) -> None:
    submit(3)
    listed = yaml.safe_load(alice("get", "cq,lq,rf,wl", "-o", "yaml", "--chunk-size", "2").output)
    assert listed == json.loads(alice("get", "cq,lq,rf,wl", "-o", "json").output)
    assert [item["kind"] for item in listed["items"]] == [
        "ClusterQueue", "LocalQueue", "ResourceFlavor", "Workload", "Workload", "Workload",
    ]  # fmt: skip
    again = alice("apply", "-f", "-", text=yaml.safe_dump(listed))
    assert {line.split()[1] for line in again.output.splitlines()} == {"unchanged"}, again
    one = json.loads(alice("get", "workload", "w-1", "-o", "json").output)
    assert (one["kind"], one["metadata"]["name"]) == ("Workload", "w-1")
    old = {**listed["items"][0], "spec": {**listed["items"][0]["spec"], "stopPolicy": "HoldAndDrain"}}
    alice("stop", "cq", "main", "--keep-already-running")
    assert alice("apply", "-f", "-", text=yaml.safe_dump(old)).code == 5  # its resourceVersion is past
    empty = json.loads(alice("get", "jobs", "-o", "json").output)
    assert (empty["kind"], empty["items"]) == ("List", [])
    assert yaml.safe_load(alice("get", "jobs", "-o", "yaml").output) == empty


def test_templates_columns_and_order_are_kubectls(alice: Run) -> None:
    submit(3)
    names = alice("get", "wl", "-o", "jsonpath={.items[*].metadata.name}").output
    assert sorted(names.split(" ")) == ["w-0", "w-1", "w-2"]
    ranged = '{range .items[?(@.metadata.labels.app=="a")]}{.metadata.name}{"\\t"}{.spec.queueName}{"\\n"}{end}'
    assert alice("get", "wl", "-o", f"jsonpath={ranged}").output == "w-0\tqueue\nw-2\tqueue\n"
    assert alice("get", "cq", "main", "-o", "jsonpath={.spec.resourceGroups[0].flavors[*].name}").output == "cpus"
    columns = "custom-columns=NAME:.metadata.name,APP:.metadata.labels.app,NONE:.spec.none"
    shown = alice("get", "wl", "-o", columns, "--sort-by", "{.metadata.labels.app}").output.splitlines()
    assert shown[0].split() == ["NAME", "APP", "NONE"]
    assert [line.split()[1:] for line in shown[1:]] == [["a", "<none>"], ["a", "<none>"], ["b", "<none>"]]
    assert alice("get", "wl", "-o", "jsonpath={.items[").code == 1
    assert alice("get", "wl", "-o", "frobs").code == 1


def test_several_kinds_and_names(alice: Run) -> None:
    submit(2)
    tables = alice("get", "cq,lq").output.split("\n\n")
    assert [table.splitlines()[1].split()[0] for table in tables] == ["clusterqueue/main", "localqueue/queue"]
    everything = alice("get", "all", "-o", "name").output.split()
    assert sorted(everything) == ["localqueue/queue", "workload/w-0", "workload/w-1"]
    assert alice("get", "cq/main", "lq/queue", "-o", "name").output.split() == ["clusterqueue/main", "localqueue/queue"]
    assert alice("get", "wl", "w-0", "none").code == 3
    assert alice("get", "wl", "none", "--ignore-not-found").code == 0
    assert alice("get", "pc,ns", "-A", "-o", "name").output.split() == ["namespace/team"]
    assert alice("get", "cq", "--inactive", "-o", "name").output == ""
    assert alice("get", "cq", "--active", "-o", "name").output == "clusterqueue/main\n"


def test_events_and_pods_of_a_workload(alice: Run) -> None:
    submit(1)
    Engine(Cluster.objects.get(), "test").run()
    for words in (("--for", "workload/w-0"), ()):
        shown = alice("get", "events", *words).output
        assert "workload/w-0" in shown
        assert "Admitted" in shown or "Admit" in shown
    ran = alice("get", "pods", "--for", "workload/w-0")
    assert (ran.code, ran.output.splitlines()[0]) == (0, "No resources found in team namespace.")
    assert alice("get", "pods", "--for", "job/none").code == 3
    assert alice("get", "cq", "--for", "workload/w-0").code == 1


def test_a_tenant_reads_the_manifest_of_a_queue_that_it_sees_and_a_refusal_keeps_its_reason(
    run: Run, server: str
) -> None:
    make_user("tina")
    RoleBinding.objects.create(name="tina", username="tina", role=Role.SUBMITTER, namespace="team")
    assert run("login", server, "-u", "tina", "--password-stdin", "-n", "team", text="tina-secret\n").code == 0
    assert yaml.safe_load(run("get", "cq", "main", "-o", "yaml").output)["metadata"]["name"] == "main"
    assert run("get", "wl", "-n", "other").code in (0, 4)
    with Client(server) as anonymous:
        token = anonymous.send(calls.token("tina", "tina-secret"))["token"]
    with Client(server, token) as client, pytest.raises(ApiError) as refused:
        client.send(calls.manifests("clusterqueue", "none"))
    assert refused.value.reason in ("NotPermitted", "NotFound")
    assert "the server answered" not in refused.value.message


def word_of(process: subprocess.Popen[str]) -> str:
    """The next word that a process writes."""
    assert process.stdout is not None
    found = ""
    while not found.endswith(" "):
        letter = process.stdout.read(1)
        assert letter, "the process has ended"
        found += letter
    return found.strip()


def test_a_watch_writes_the_list_and_then_each_change(alice: Run, server: str, tmp_path: Path) -> None:
    alice("login", server, "-u", "alice", "--password-stdin", "-n", "team", text="alice-secret\n")
    submit(1)
    queues = start(tmp_path, "get", "cq", "-w", "-o", "jsonpath={.metadata.name}={.spec.stopPolicy} ")
    workloads = start(tmp_path, "get", "wl", "-w", "--no-headers", "-l", "app=a")
    try:
        assert workloads.stdout is not None
        assert workloads.stdout.readline().split()[:4] == ["w-0", "queue", "main", "Pending"]
        assert word_of(queues) == "main="
        alice("stop", "cq", "main")
        assert ClusterQueue.objects.get().stop_policy == "HoldAndDrain"
        while word_of(queues) != "main=HoldAndDrain":
            pass
        Workload.objects.get().delete()
        connection.close()
        while "Deleted" not in (line := workloads.stdout.readline()):
            assert line
        assert line.split()[0] == "w-0"
    finally:
        for process in (queues, workloads):
            process.kill()
            process.wait()


def test_an_earlier_state_is_listed_and_explained(alice: Run) -> None:
    submit(2)
    at = take_checkpoint(Cluster.objects.get()).taken_at.isoformat()
    Workload.objects.filter(name="w-0").delete()
    assert "w-0" not in alice("get", "workloads").output
    assert "w-0" in alice("get", "workloads", "--at", at).output
    chosen = alice("get", "workloads", "--field-selector", "metadata.name=w-0", "--at", at).output
    assert ("w-0" in chosen, "w-1" in chosen) == (True, False)
    assert alice("get", "nodes", "--at", at).code == 0
    assert "not of pods" in alice("get", "pods", "--at", at).error
    assert alice("explain", "w-0", "--at", at).output.startswith("Pending: ")
    assert alice("explain", "w-0").error.startswith("NotFound")
    assert "--at: Forbidden with --watch" in alice("get", "workloads", "-w", "--at", at).error
    assert "--field-selector: Unsupported" in alice(
        "get", "cq", "--field-selector", "spec.stopPolicy=Hold", "--at", at
    ).error  # fmt: skip
    refused = alice("get", "workloads", "-o", "yaml", "--at", at)
    assert "at: Forbidden" in refused.error
    before = alice("get", "workloads", "--at", "2020-01-01T00:00:00Z")
    assert "The earliest is from" in before.error


def test_queues_and_cohorts_of_an_earlier_state_are_listed(alice: Run) -> None:
    submit(2)
    alice("apply", "-f", "-", text="{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all}}")
    at = take_checkpoint(Cluster.objects.get()).taken_at.isoformat()
    ClusterQueue.objects.filter(name="main").update(stop_policy="Hold")
    Workload.objects.all().delete()
    queue = alice("get", "cq", "main", "--at", at)
    assert queue.code == 0, queue
    title, row = queue.output.splitlines()
    assert title.split() == ["NAME", "COHORT", "STRATEGY", "PENDING", "RESERVING", "ADMITTED", "STOP", "AGE"]
    assert row.split()[:7] == ["main", "-", "BestEffortFIFO", "2", "0", "0", "None"]
    assert "Hold" in alice("get", "cq", "main").output
    assert "=0/" in alice("get", "cq", "-o", "wide", "--at", at).output
    assert alice("get", "lq", "-c", "main", "-o", "name", "--at", at).output == "localqueue/queue\n"
    assert alice("get", "lq", "-c", "other", "-o", "name", "--at", at).output == ""
    assert alice("get", "lq", "-n", "elsewhere", "-o", "name", "--at", at).output == ""
    assert alice("get", "cq", "--inactive", "-o", "name", "--at", at).output == ""
    assert "main" in alice("get", "cq", "--active", "--at", at).output
    Cohort.objects.all().delete()
    assert alice("get", "cohorts", "-o", "name", "--at", at).output == "cohort/all\n"
    assert alice("get", "cohorts", "-o", "name").output == ""
    found = yaml.safe_load(alice("get", "cq", "main", "-o", "yaml", "--at", at).output)
    assert (found["kind"], found["metadata"]["name"], found["status"]["pending"]) == ("ClusterQueue", "main", 2)
    assert "main" in alice("top", "queues", "--at", at).output
    assert alice("get", "nodes,devices,cq,lq,cohorts,workloads", "--at", at).code == 0
