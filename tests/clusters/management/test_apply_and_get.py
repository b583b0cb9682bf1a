"""manage.py apply and get, as they are typed."""

import io
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from accounts.models import Cluster, Namespace
from queues.models import Cohort
from tests import manifest_texts as texts

pytestmark = pytest.mark.django_db


def run(*words: str) -> str:
    output = io.StringIO()
    call_command(*words, stdout=output, stderr=output)
    return output.getvalue()


def test_a_file_is_applied_to_the_default_cluster_which_it_makes(tmp_path: Path) -> None:
    file = tmp_path / "cohort.yaml"
    file.write_text(texts.kueue("Cohort", "all"))
    assert run("apply", "-f", str(file)) == "Cohort all created\n"
    assert run("apply", "-f", str(file)) == "Cohort all unchanged\n"
    assert Cluster.objects.get().name == "default"


def test_a_folder_is_one_call_and_a_mistake_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(texts.kueue("Cohort", "a"))
    (tmp_path / "deeper").mkdir()
    bad = tmp_path / "deeper" / "b.yml"
    bad.write_text(texts.joined(texts.kueue("Cohort", "b"), texts.kueue("Cohort", "c", "{parent: x}")))
    with pytest.raises(CommandError) as caught:
        run("apply", "-f", str(tmp_path))
    assert f"{bad}, document 1, spec.parent" in str(caught.value)
    assert "nothing was stored" in str(caught.value)
    assert not Cohort.objects.exists()
    bad.unlink()
    assert run("apply", "-f", str(tmp_path)) == "Cohort a created\n"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = texts.local_queue().encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    output = run("apply", "-f", "-", "--dry-run")
    assert "LocalQueue team/queue created (dry run)\n" in output
    assert "warning: LocalQueue team/queue: metadata.namespace: namespace team did not exist and was created" in output
    assert not Namespace.objects.exists()


def test_a_set_is_pruned(tmp_path: Path) -> None:
    file = tmp_path / "cohorts.yaml"
    file.write_text(texts.joined(texts.kueue("Cohort", "a"), texts.kueue("Cohort", "b")))
    run("apply", "-f", str(file), "--set", "mine")
    file.write_text(texts.kueue("Cohort", "a"))
    assert run("apply", "-f", str(file), "--set", "mine", "--prune") == "Cohort a unchanged\nCohort b pruned\n"


def test_a_users_rights(tmp_path: Path) -> None:
    User.objects.create(username="nobody")
    file = tmp_path / "cohort.yaml"
    file.write_text(texts.kueue("Cohort", "all"))
    with pytest.raises(CommandError, match="nobody may not submit a Cohort"):
        run("apply", "-f", str(file), "--user", "nobody")
    with pytest.raises(CommandError, match='no user "nobdy"'):
        run("apply", "-f", str(file), "--user", "nobdy")


def test_a_missing_object_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no such file"):
        run("apply", "-f", str(tmp_path / "missing.yaml"))
    with pytest.raises(CommandError, match="no file in this folder"):
        run("apply", "-f", str(tmp_path))
    with pytest.raises(CommandError, match='no cluster "west"'):
        run("get", "cq", "--cluster", "west")


def test_get_prints_names_yaml_and_json(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(texts.joined(texts.kueue("Cohort", "all"), texts.local_queue()))
    run("apply", "-f", str(file))
    assert run("get", "cohorts") == "Cohort all\n"
    assert run("get", "lq", "-n", "team") == "LocalQueue team/queue\n"
    file.write_text(run("get", "lq", "queue", "-o", "yaml"))
    assert run("apply", "-f", str(file)) == "LocalQueue team/queue unchanged\n"
    metadata = json.loads(run("get", "cohort", "all", "-o", "json"))["items"][0]["metadata"]
    assert (metadata["name"], metadata["resourceVersion"]) == ("all", "1")
    with pytest.raises(CommandError, match="no cohort missing"):
        run("get", "cohort", "missing")
