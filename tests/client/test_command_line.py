"""The command `kueueweb`: what it writes, what it does on the server, and what its exit codes say."""

from __future__ import annotations

import json
import stat
import threading
import time
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection

from accounts.models import Cluster
from accounts.services import device_login
from foundation.redis_client import redis_client
from queues.models import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts
from tests.client.conftest import Run


def schedule() -> None:
    Engine(Cluster.objects.get(), "test").run()


def submit(run: Run, name: str, *options: str) -> str:
    """Submit a job; the name of its workload."""
    ran = run(
        "submit",
        "--image",
        "busybox",
        "--queue",
        "queue",
        "--name",
        name,
        "--memory",
        "",
        *options,
        "--",
        "sleep",
        "60",
    )
    assert ran.code == 0, ran
    return Workload.objects.get(job__name=name).name


def test_login_keeps_the_token_in_a_file_that_only_its_owner_reads(run: Run, server: str, tmp_path: Path) -> None:
    ran = run("login", server, "--username", "alice", "--password-stdin", text="alice-secret\n")
    assert "as alice" in ran.output
    file = tmp_path / "config.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (context,) = yaml.safe_load(file.read_text())["contexts"].values()
    assert context["url"] == server
    assert context["token"]


def confirm_in_browser(username: str, *, allow: bool) -> None:
    """What a person does on the page, as soon as a command waits."""
    for _ in range(100):
        for key in redis_client().scan_iter("*:device-*"):
            content = redis_client().get(key)
            if isinstance(content, bytes) and content.startswith(b"{"):
                device_login.answer(json.loads(content)["user_code"], User.objects.get(username=username), allow=allow)
                connection.close()
                return
        time.sleep(0.1)


@pytest.mark.parametrize(("allow", "code"), [(True, 0), (False, 4)])
def test_login_through_a_page(run: Run, server: str, allow: bool, code: int) -> None:
    cache.clear()
    person = threading.Thread(target=confirm_in_browser, args=("alice",), kwargs={"allow": allow})
    person.start()
    ran = run("login", server, "--no-browser")
    person.join()
    assert ran.code == code, ran
    assert f"{server}/device?code=" in ran.output
    if allow:
        assert "as alice" in ran.output
        made = run("token", "create", "ci", "--scope", "read", "--only-namespace", "team")
        assert made.code == 0, made
        assert "read" in run("token", "list").output


def test_audit_shows_who_changed_what(alice: Run) -> None:
    ran = alice("stop", "cq", "main")
    assert ran.code == 0, ran
    shown = alice("audit", "--kind", "clusterqueue", "--verb", "update").output
    assert "alice" in shown
    assert "stop_policy" in shown


def test_a_wrong_password_ends_with_4(run: Run, server: str) -> None:
    assert run("login", server, "--username", "alice", "--password-stdin", text="wrong\n").code == 4


def test_a_server_that_does_not_answer_ends_with_6(run: Run) -> None:
    assert run("login", "http://127.0.0.1:1", "--token", "x").code == 6


def test_without_a_login_the_remedy_is_named(run: Run) -> None:
    ran = run("get", "workloads", "-A")
    assert ran.code == 4
    assert "kueueweb login" in ran.error


def test_logout_revokes_the_token(alice: Run) -> None:
    assert alice("logout").code == 0
    assert alice("get", "cq").code == 4


def test_tokens_are_listed_and_revoked(alice: Run, server: str) -> None:
    alice("login", server, "--username", "alice", "--password-stdin", text="alice-secret\n")
    newest, oldest = [line.split()[0] for line in alice("token", "list").output.splitlines()[1:]]
    assert alice("token", "revoke", oldest).output == f"Token {oldest} is revoked.\n"
    assert [line.split()[0] for line in alice("token", "list").output.splitlines()[1:]] == [newest]
    assert alice("token", "revoke").code == alice("token", "revoke", newest, "--all").code == 2
    assert alice("token", "revoke", "--all").code == 0
    assert alice("token", "list").code == 4


def test_lists_are_tables_names_json_or_yaml(alice: Run) -> None:
    table = alice("get", "cq").output.splitlines()
    assert table[0].split()[:3] == ["NAME", "COHORT", "STRATEGY"]
    assert table[1].startswith("main ")
    assert alice("get", "clusterqueues", "-o", "name").output == "clusterqueue/main\n"
    listed = json.loads(alice("get", "cq", "-o", "json").output)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert [(item["kind"], item["metadata"]["name"]) for item in listed["items"]] == [("ClusterQueue", "main")]
    assert "cpus:cpu=10" in alice("get", "cq", "-o", "wide").output


def test_headroom_shows_what_may_still_be_used_of_each_queue_and_level(alice: Run) -> None:
    lines = [line.split() for line in alice("headroom").output.splitlines()]
    assert lines[0][:4] == ["NAMESPACE", "LOCALQUEUE", "LEVEL", "RESOURCE"]
    assert ["team", "queue", "-", "cpu", "10", "10", "-", "-"] in lines
    assert "ClusterQueue main" in alice("headroom", "queue", "-n", "team", "-o", "wide").output
    assert json.loads(alice("headroom", "-o", "json").output)[0]["levels"][0]["level"] == "ClusterQueue main"
    ran = alice("headroom", "none", "-n", "team")
    assert (ran.code != 0, "no LocalQueue none" in ran.error) == (True, True)


def test_one_object_as_yaml_is_its_manifest(alice: Run) -> None:
    manifest = alice("get", "cq", "main", "-o", "yaml").output
    assert yaml.safe_load(manifest)["kind"] == "ClusterQueue"
    assert alice("apply", "-f", "-", text=manifest).output == "clusterqueue/main unchanged\n"


def test_an_apply_passes_by_what_is_not_served_where_that_is_wished(alice: Run) -> None:
    """One document of an unknown kind refused all the others."""
    foreign = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n"
    both = f"{foreign}---\n{texts.kueue('ResourceFlavor', 'beside')}"
    assert alice("apply", "-f", "-", text=both).code != 0
    assert not ResourceFlavor.objects.filter(name="beside").exists()
    ran = alice("apply", "--skip-unsupported", "-f", "-", text=both)
    assert (ran.code, ResourceFlavor.objects.filter(name="beside").exists()) == (0, True)
    assert "resourceflavor/beside created" in ran.output
    assert "skipped: document 0 (Widget)" in ran.output + ran.error


def test_what_is_not_there_ends_with_3(alice: Run) -> None:
    ran = alice("get", "cq", "none")
    assert ran.code == 3
    assert "NotFound" in ran.error


def test_an_unknown_kind_is_a_usage_error(alice: Run) -> None:
    assert alice("get", "frobs").code == 2


def test_mistakes_of_manifests_are_located(alice: Run, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(texts.cluster_queue("other", more="queueingStrategy: Sometimes"))
    ran = alice("apply", "-f", str(file))
    assert ran.code == 1
    assert "spec.queueingStrategy" in ran.error
    assert not ClusterQueue.objects.filter(name="other").exists()


def test_diff_shows_what_an_apply_would_change(alice: Run) -> None:
    manifest = alice("get", "cq", "main", "-o", "yaml").output
    assert alice("diff", "-f", "-", text=manifest).code == 0
    ran = alice(
        "diff", "-f", "-", text=manifest.replace("'10'", "'12'").replace('"10"', '"12"').replace(": 10\n", ": 12\n")
    )
    assert ran.code == 1
    assert any(line.startswith("+") and "12" in line for line in ran.output.splitlines()), ran.output


def test_create_with_the_flags_of_kueuectl(alice: Run) -> None:
    assert alice("create", "rf", "gpus", "--node-labels", "gpu=a100", "--node-taints", "gpu=yes:NoSchedule").code == 0
    created = alice(
        "create", "cq", "team-b", "--cohort", "all", "--nominal-quota", "cpus:cpu=4;memory=8Gi",
        "--borrowing-limit", "cpus:cpu=2", "--queuing-strategy", "StrictFIFO",
    )  # fmt: skip
    assert created.code == 0, created
    assert alice("create", "lq", "second", "-c", "team-b").code == 0
    assert ResourceFlavor.objects.get(name="gpus").node_labels == {"gpu": "a100"}
    queue = ClusterQueue.objects.get(name="team-b")
    assert (queue.cohort_name, queue.queueing_strategy) == ("all", "StrictFIFO")
    assert LocalQueue.objects.get(name="second").cluster_queue_name == "team-b"


def test_a_job_waits_is_admitted_stopped_resumed_and_cancelled(alice: Run) -> None:
    name = submit(alice, "train", "--cpu", "6")
    schedule()
    assert alice("wait", name, "--for", "admitted", "--timeout", "1").code == 0
    second = submit(alice, "next", "--cpu", "6")
    schedule()
    waiting = alice("queue", "main").output
    assert second in waiting
    assert "number 1" in alice("queue", second, "--workload").output
    assert "cpu" in alice("explain", second).output
    assert alice("stop", "workload", name).output == f"workload/{name} stopped\n"
    assert alice("stop", "workload", name).code == 5
    assert alice("resume", "workload", name).output == f"workload/{name} resumed\n"
    assert alice("cancel", second).code == 0
    assert Workload.objects.get(name=second).status == "Finished"
    assert alice("wait", second).code == 1


def test_a_wait_that_takes_too_long_ends_with_124(alice: Run) -> None:
    name = submit(alice, "slow", "--cpu", "100")
    assert alice("wait", name, "--timeout", "0").code == 124


def test_a_stopped_queue_admits_nothing(alice: Run) -> None:
    alice("stop", "cq", "main", "--keep-already-running")
    assert ClusterQueue.objects.get(name="main").stop_policy == "Hold"
    alice("resume", "cq", "main")
    assert ClusterQueue.objects.get(name="main").stop_policy == "None"


def test_gpu_memory_needs_gpus(alice: Run) -> None:
    ran = alice("submit", "--image", "x", "-q", "queue", "--gpu-memory", "20Gi")
    assert ran.code == 2
    written = alice("submit", "--image", "x", "-q", "queue", "--gpus", "1", "--gpu-memory", "20Gi", "--dry-run").output
    assert "nvidia.com/gpumem: '20480'" in written
    assert not Workload.objects.exists()


def test_describe_shows_conditions_and_events(alice: Run) -> None:
    name = submit(alice, "train")
    schedule()
    described = alice("describe", "workload", name).output
    assert "QuotaReserved" in described
    assert "Events:" in described


def test_contexts_are_kept_used_and_forgotten(alice: Run, server: str) -> None:
    name = server.removeprefix("http://")
    assert alice("config", "current-context").output == f"{name}\n"
    assert alice("config", "use-context", "none").code == 1
    assert alice("config", "delete-context", name).code == 0
    assert alice("config", "current-context").code == 1


def test_a_tenant_may_not_create_queues(run: Run, server: str) -> None:
    run("login", server, "--username", "bob", "--password-stdin", text="bob-secret\n")
    assert run("create", "cq", "mine", "--nominal-quota", "cpus:cpu=1000").code == 4


def test_delete_ends_with_3_for_what_is_not_there_unless_that_is_ignored(alice: Run) -> None:
    assert alice("delete", "cq", "none").code == 3
    assert alice("delete", "cq", "none", "--ignore-not-found").code == 0
    assert alice("delete", "lq", "queue").code == 0
