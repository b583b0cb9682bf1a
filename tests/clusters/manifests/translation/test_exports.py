"""Our manifests as Kueue's and Volcano's: what is exported converts back to the same, and each loss is named."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

CAPACITY = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: lab}
spec: {weight: 1, deserved: {cpu: "12", memory: 8Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  weight: 2
  deserved: {cpu: "8", memory: 8Gi}
  capability: {cpu: "16"}
  guarantee: {resource: {cpu: "2"}}
  parent: lab
  reclaimable: false
  priority: 7
"""
PROPORTION = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {weight: 3, capability: {cpu: "16"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: b}
spec: {weight: 1, guarantee: {resource: {cpu: "2"}}}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team, labels: {app: x}}
spec:
  schedulerName: volcano
  queue: research
  minAvailable: 2
  maxRetry: 4
  ttlSecondsAfterFinished: 60
  policies: [{event: PodFailed, action: RestartTask}]
  tasks:
  - name: default0
    replicas: 3
    template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}
"""
TASKS = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team}
spec:
  schedulerName: volcano
  queue: research
  minAvailable: 3
  tasks:
  - {name: a, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}
  - name: b
    replicas: 2
    dependsOn: {name: [a]}
    template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}
"""
KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
spec: {}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: lab
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: '8', borrowingLimit: '4'}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: research}
---
apiVersion: batch/v1
kind: Job
metadata: {name: run, namespace: team, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  suspend: true
  parallelism: 2
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}
"""


def convert(tmp_path: Path, text: str, *options: str) -> tuple[list[dict[str, Any]], list[str]]:
    source = tmp_path / "source.yaml"
    source.write_text(text)
    out, err = StringIO(), StringIO()
    call_command("convert", str(source), *options, stdout=out, stderr=err)
    return list(yaml.safe_load_all(out.getvalue())), err.getvalue().splitlines()


def back(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    """Volcano's objects converted to ours and exported again."""
    ours, _ = convert(tmp_path, text)
    return convert(tmp_path, yaml.safe_dump_all(ours), "--to", "volcano")[0]


@pytest.mark.parametrize("text", [CAPACITY, PROPORTION])
def test_queues_of_volcano_come_back_as_they_were(tmp_path: Path, text: str) -> None:
    expected = {each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(text)}
    found = {each["metadata"]["name"]: each["spec"] for each in back(tmp_path, text)}
    expected["lab"].pop("weight", None) if "lab" in expected else None
    assert found == expected


@pytest.mark.parametrize("text", [JOB, TASKS])
def test_jobs_of_volcano_come_back_as_they_were(tmp_path: Path, text: str) -> None:
    (found,) = back(tmp_path, text)
    expected = yaml.safe_load(text)
    assert found["metadata"] == expected["metadata"]
    assert found["spec"] == expected["spec"]


def test_ours_for_volcano_name_the_queue_itself_and_each_loss(tmp_path: Path) -> None:
    limited = KUEUE.replace("cohortName: lab", "cohortName: lab\n  stopPolicy: Hold").replace(
        "parallelism: 2", "parallelism: 2\n  completions: 6"
    )
    found, report = convert(tmp_path, limited, "--to", "volcano")
    kinds = {each["kind"]: each for each in found}
    assert [*kinds] == ["Queue", "Job"]
    assert kinds["Queue"]["spec"] == {"deserved": {"cpu": "8"}, "capability": {"cpu": "12"}, "parent": "lab"}
    assert kinds["Job"]["spec"]["queue"] == "research"
    lost = [line for line in report if line.startswith("lost")]
    assert [line.partition(", ")[2].partition(":")[0] for line in lost] == [
        "kind", "spec.stopPolicy", "spec.completions",
    ]  # fmt: skip


def test_manifests_of_kueue_stay_as_they_are(tmp_path: Path) -> None:
    found, report = convert(tmp_path, KUEUE, "--to", "kueue")
    assert found == list(yaml.safe_load_all(KUEUE))
    assert report == []


def test_ours_for_kueue_lose_what_kueue_lacks(tmp_path: Path) -> None:
    ours, _ = convert(tmp_path, CAPACITY)
    reservation = {"apiVersion": "kueueweb.io/v1", "kind": "Reservation", "metadata": {"name": "r"}, "spec": {}}
    found, report = convert(tmp_path, yaml.safe_dump_all([*ours, reservation]), "--to", "kueue")
    assert {each["kind"] for each in found} == {"ResourceFlavor", "Cohort", "ClusterQueue"}
    assert not any("kueueweb.io" in str(each["metadata"]) for each in found)
    text = "\n".join(report)
    for words in ("Kueue has no Reservation", "sharing-policy", "node-quotas", "never-reclaim", "queue-priority"):
        assert words in text, words


def test_a_quota_that_cannot_be_read_ends_the_command(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="nominalQuota"):
        convert(tmp_path, KUEUE.replace("nominalQuota: '8'", "nominalQuota: many"), "--to", "volcano")
