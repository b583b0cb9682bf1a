"""Verbs of kubectl and kueuectl that change objects: what they store, and that two edits at once lose neither."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
import yaml

from accounts.models import Cluster
from gpus.models import Node
from kueueweb_client.cli.app import MODULES
from queues.models import ClusterQueue, LocalQueue, Workload
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts
from tests.client.conftest import Run
from tests.client.test_command_line import submit

KUEUECTL = {
    "create clusterqueue": "create clusterqueue", "create localqueue": "create localqueue",
    "create resourceflavor": "create resourceflavor", "list clusterqueue": "list", "list localqueue": "list",
    "list workload": "list", "list resourceflavor": "list", "list pods": "list", "stop clusterqueue": "stop",
    "stop localqueue": "stop", "stop workload": "stop", "resume clusterqueue": "resume", "resume localqueue": "resume",
    "resume workload": "resume", "delete workload": "delete", "delete clusterqueue": "delete",
    "delete localqueue": "delete", "delete resourceflavor": "delete", "get": "get", "describe": "describe",
    "edit": "edit", "patch": "patch", "version": "version", "completion": "completion",
}  # fmt: skip
"""The commands of kueuectl (cmd/kueuectl/app at Kueue's main) and ours."""


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make $EDITOR a script of Python in which `path` is the file and `text` its content."""
    file = tmp_path / "editor.py"
    file.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n{script}\n")
    monkeypatch.setenv("KUEUEWEB_EDITOR", f"{sys.executable} {file}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_every_command_of_kueuectl_has_one_here_and_the_readme_names_it(run: Run) -> None:
    ours = {name for names in MODULES.values() for name in names}
    readme = (Path(__file__).parents[2] / "client" / "README.md").read_text()
    for theirs, words in KUEUECTL.items():
        assert words.split()[0] in ours, theirs
        assert run(*words.split(), "--help").code == 0
        assert f"| `{theirs}`" in readme, theirs


def test_an_edit_is_stored_a_mistake_opens_the_editor_again_and_a_conflict_keeps_the_file(
    alice: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, "path.write_text(text.replace('stopPolicy: Hold', 'stopPolicy: HoldAndDrain'))")
    alice("patch", "cq", "main", "-p", '{"spec": {"stopPolicy": "Hold"}}')
    ran = alice("edit", "cq", "main")
    assert (ran.code, ran.output) == (0, "clusterqueue/main edited\n")
    assert ClusterQueue.objects.get().stop_policy == "HoldAndDrain"
    assert not list(tmp_path.glob("kueueweb-edit-*"))
    editor(tmp_path, monkeypatch, "pass")
    assert alice("edit", "cq", "main").output == "clusterqueue/main unchanged\n"
    mend = "path.write_text(text.replace('Bad', 'Hold') if 'Bad' in text else text.replace('HoldAndDrain', 'Bad'))"
    editor(tmp_path, monkeypatch, mend)
    ran = alice("edit", "cq", "main")
    assert ran.code == 0, ran
    assert "spec.stopPolicy" in ran.output
    assert ClusterQueue.objects.get().stop_policy == "Hold"
    # Another user's edit between the read and the write.
    words = "'-m', 'kueueweb_client.cli.app', 'label', 'cq', 'main', 'by=other'"
    other = f"import subprocess; subprocess.run([sys.executable, {words}], check=True)"
    editor(tmp_path, monkeypatch, f"{other}\npath.write_text(text.replace('Hold', 'HoldAndDrain'))")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "client"))
    ran = alice("edit", "cq", "main")
    assert ran.code == 5, ran
    [kept] = tmp_path.glob("kueueweb-edit-*")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "HoldAndDrain" in kept.read_text()
    assert "+    by: other" in ran.output
    queue = ClusterQueue.objects.get()
    assert (queue.stop_policy, queue.labels) == ("Hold", {"by": "other"})


def test_patches_labels_and_annotations(alice: Run) -> None:
    alice("label", "lq", "queue", "team=a", "tier=gold")
    assert LocalQueue.objects.get().labels == {"team": "a", "tier": "gold"}
    assert alice("label", "lq", "queue", "team=b").code == 1
    assert alice("label", "lq", "queue", "team=b", "tier-", "--overwrite").output == "localqueue/queue labeled\n"
    assert LocalQueue.objects.get().labels == {"team": "b"}
    assert alice("label", "lq", "queue", "team=b").output == "localqueue/queue unchanged\n"
    assert alice("annotate", "lq", "queue", "note=x", "--dry-run").output == "localqueue/queue annotated (dry run)\n"
    assert "note" not in (LocalQueue.objects.get().annotations or {})
    operations = '[{"op": "replace", "path": "/metadata/labels/team", "value": "c"}]'
    assert alice("patch", "lq", "queue", "--type", "json", "-p", operations).code == 0
    assert LocalQueue.objects.get().labels == {"team": "c"}
    assert alice("patch", "lq", "queue", "-p", '{"spec": {"nothing": 1}}').code == 1
    assert alice("patch", "cq", "none", "-p", "{}").code == 3
    assert alice("patch", "cq", "main", "-p", "[]").code == 1
    assert alice("label", "device", "GPU-1", "a=b").code == 1


def test_workloads_are_held_released_requeued_and_cancelled_and_a_dry_run_changes_nothing(alice: Run) -> None:
    name = submit(alice, "train", "--cpu", "6")
    Engine(Cluster.objects.get(), "test").run()
    for words in (["hold"], ["stop", "workload"], ["cancel"], ["requeue"]):
        assert "(dry run)" in alice(*words, name, "--dry-run").output, words
    assert Workload.objects.get().active
    assert alice("delete", "workload", name, "--dry-run").code == 0
    assert Workload.objects.exists()
    assert alice("hold", name).output == f"workload/{name} held\n"
    assert alice("hold", name).code == 5
    assert alice("release", name).output == f"workload/{name} released\n"
    ran = alice("cancel", "none", name)
    assert (ran.code, ran.output) == (3, f"workload/{name} cancelled\n")
    alice("apply", "-f", "-", text=texts.workload_priority_class("high", 100))
    second = submit(alice, "second")
    assert alice("priority", second, "--class", "high").code == 0
    assert Workload.objects.get(name=second).priority == 100
    assert alice("priority", second).code == 2
    assert "Admitted" in alice("history", name).output
    assert alice("history", "none").code == 3
    assert alice("report", "waits").code == 0
    assert alice("report", "none").code in (1, 3)


def test_nodes_are_cordoned_drained_and_taken_back(alice: Run) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8"}}}
    assert alice("apply", "-f", "-", text=yaml.safe_dump(node)).code == 0
    assert alice("drain", "n1", "--dry-run").output == "node/n1 draining (dry run)\n"
    assert not Node.objects.get().cordoned
    alice("drain", "node/n1")
    assert (Node.objects.get().cordoned, Node.objects.get().draining) == (True, True)
    alice("uncordon", "n1")
    alice("cordon", "n1")
    assert (Node.objects.get().cordoned, Node.objects.get().draining) == (True, False)
    assert alice("cordon", "none").code == 3


def test_a_preview_stores_nothing(alice: Run) -> None:
    ran = alice("preview", "-f", "-", text=texts.job("train"))
    assert (ran.code, ran.output.splitlines()[0]) == (0, "job/train created (dry run)")
    assert not Workload.objects.exists()
    shown = yaml.safe_load(alice("preview", "-f", "-", "-o", "yaml", text=texts.job("train")).output)
    assert shown["result"]["dry_run"]


def test_folders_are_read_as_kubectl_does(alice: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m" / "deep").mkdir(parents=True)
    (tmp_path / "m" / "a.yaml").write_text(texts.kueue("ResourceFlavor", "a"))
    (tmp_path / "m" / "deep" / "b.yaml").write_text(texts.kueue("ResourceFlavor", "b"))
    assert alice("apply", "-f", str(tmp_path / "m")).output == "resourceflavor/a created\n"
    assert alice("apply", "-R", "-f", str(tmp_path / "m")).output.splitlines() == [
        "resourceflavor/a unchanged", "resourceflavor/b created",
    ]  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = alice("apply", "-k", str(tmp_path))
    assert ran.code == 1
    assert "kustomize" in ran.error
    kustomize = tmp_path / "kustomize"
    kustomize.write_text(
        f'#!/bin/sh\n[ "$1" = build ] || exit 9\nwhile read -r line; do echo "$line"; done < {tmp_path}/out\n'
    )
    kustomize.chmod(0o755)
    (tmp_path / "out").write_text(texts.kueue("ResourceFlavor", "c"))
    assert alice("apply", "-k", str(tmp_path)).output == "resourceflavor/c created\n"


def test_contexts_are_shown_without_their_tokens_and_renamed(alice: Run, server: str) -> None:
    name = server.removeprefix("http://")
    shown = yaml.safe_load(alice("config", "view").output)
    assert shown["contexts"][name]["token"] == "REDACTED"
    assert yaml.safe_load(alice("config", "view", "--raw").output)["contexts"][name]["token"] != "REDACTED"
    assert alice("config", "rename-context", name, "here").code == 0
    assert alice("config", "current-context").output == "here\n"
    assert alice("config", "rename-context", name, "there").code == 1
    assert alice("get", "cq", "-o", "name").code == 0


def test_the_man_page_and_the_completion_name_every_command(run: Run) -> None:
    page = run("man").output
    assert page.startswith('.TH "KUEUEWEB" "1"')
    for names in MODULES.values():
        for name in names:
            if name != "list":
                assert f"kueueweb {name}".replace("-", "\\-") in page, name
    assert "_KUEUEWEB_COMPLETE" in run("completion", "bash").output
