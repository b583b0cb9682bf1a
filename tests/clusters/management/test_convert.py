"""`manage.py convert`: what it writes applies as it is, and its report names each field."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from clusters.manifests.read import read_objects
from queues.manifests.documents import read_documents

VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 2, deserved: {cpu: 8}, capability: {cpu: 16}, guarantee: {resource: {cpu: 2}}, parent: lab}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: lab}
spec: {deserved: {cpu: 8}, priority: 5}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team}
spec:
  queue: research
  tasks:
  - {name: a, replicas: 2, template: {spec: {containers: [{name: main, image: busybox}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: team}
data: {key: value}
"""


def convert(path: Path) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("convert", str(path), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_all_files_become_ours_with_a_local_queue_for_each_namespace(tmp_path: Path) -> None:
    source = tmp_path / "volcano.yaml"
    source.write_text(VOLCANO)
    text, report = convert(source)
    found = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}
    assert [*found] == [
        ("ResourceFlavor", "default"), ("Cohort", "root"), ("ClusterQueue", "research"), ("Cohort", "lab"),
        ("Job", "train"), ("ConfigMap", "settings"), ("LocalQueue", "research"),
    ]  # fmt: skip
    spec = found["ClusterQueue", "research"]["spec"]
    assert spec["cohortName"] == "lab"
    cell = spec["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert cell == {"name": "cpu", "nominalQuota": "8", "lendingLimit": "6", "borrowingLimit": "8"}
    assert found["Cohort", "lab"]["spec"]["parentName"] == "root"
    assert found["Cohort", "root"]["metadata"]["annotations"]["kueueweb.io/sharing-policy"] == "capacity"
    assert "lost: Queue lab, spec.priority: not supported on a Cohort" in report
    assert "kept: Queue research, spec.deserved: nominalQuota" in report


def test_what_it_writes_applies_and_converts_to_itself(tmp_path: Path) -> None:
    source, again = tmp_path / "volcano.yaml", tmp_path / "ours.yaml"
    source.write_text(VOLCANO.rpartition("---")[0])
    text, _ = convert(source)
    again.write_text(text)
    assert convert(again) == (text, "")
    objects, skipped = read_objects(read_documents(text))
    assert len(objects) == 6
    assert skipped == []
    assert [warning for found in objects for warning in found.submitted.report.warnings] == []


def test_a_mistake_ends_the_command_and_names_the_object(tmp_path: Path) -> None:
    source = tmp_path / "volcano.yaml"
    source.write_text(VOLCANO.replace("deserved: {cpu: 8}, cap", "deserved: {cpu: 20}, cap"))
    with pytest.raises(CommandError, match=r"Queue research, spec.deserved\[cpu\]: '20': must be at most capability"):
        convert(source)
    with pytest.raises(CommandError, match="No such file"):
        convert(tmp_path / "missing.yaml")
