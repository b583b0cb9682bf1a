"""YuniKorn's queues.yaml, KAI's Queues, slurm.conf and the dump of sacctmgr as ours: what `convert` writes applies."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from clusters.manifests.read import read_objects
from queues.manifests.documents import read_documents

YUNIKORN = """
partitions:
- name: default
  placementrules: [{name: tag, value: namespace, create: true}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: Research
      resources:
        guaranteed: {vcore: 10, memory: 20Gi}
        max: {vcore: 40, memory: 100Gi}
      limits: [{limit: all, users: ['*'], maxapplications: 5, maxresources: {vcore: 8}}]
      queues:
      - name: vision
        resources: {guaranteed: {vcore: 4}, max: {vcore: 16}}
        properties: {preemption.policy: disabled, application.sort.policy: fair}
      - {name: speech, resources: {guaranteed: {vcore: 2}}, maxapplications: 9}
    - {name: adhoc}
"""
KAI = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: lab}
spec:
  displayName: The lab
  priority: 120
  resources:
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    memory: {quota: -1, limit: -1, overQuotaWeight: 1}
    gpu: {quota: 8, limit: 16, overQuotaWeight: 2}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  parentQueue: lab
  priority: 150
  preemptMinRuntime: 1h
  resources:
    cpu: {quota: 4000, limit: -1}
    memory: {quota: 1000, limit: -1}
    gpu: {quota: 3, limit: 10, overQuotaWeight: 2}
"""
SLURM = r"""
# a comment
ClusterName=tux
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightTRES=CPU=10,GRES/gpu=50
PriorityMaxAge=7-0
PriorityDecayHalfLife=14-0
PreemptType=preempt/partition_prio
NodeName=n[01-02] CPUs=64 RealMemory=256000 Gres=gpu:a100:8
NodeName=c[1-3] Sockets=2 CoresPerSocket=16 \
  RealMemory=128000
PartitionName=gpu Nodes=n[01-02] PriorityTier=10 MaxTime=1-00:00:00 AllowAccounts=physics
PartitionName=all Nodes=ALL Default=YES State=DRAIN
"""
DUMP = """
# To edit this file start with a cluster line for the new cluster
Cluster - 'tux':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='the physicists: all':Organization='u':Fairshare=30:GrpTRES='cpu=200'
Account - 'biology':Description='b':Organization='u'
Parent - 'physics'
User - 'ada':DefaultAccount='physics':Fairshare=10
"""


def convert(tmp_path: Path, **files: str) -> tuple[dict[tuple[str, str], dict[str, Any]], list[str], str]:
    """Our objects by kind and name, the report, and the text, which applies."""
    paths = []
    for name, text in files.items():
        paths.append(tmp_path / name)
        paths[-1].write_text(text)
    out, err = StringIO(), StringIO()
    call_command("convert", *map(str, paths), stdout=out, stderr=err)
    objects, skipped = read_objects(read_documents(out.getvalue()))
    assert skipped == []
    assert [warning for found in objects for warning in found.submitted.report.warnings] == []
    return (
        {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(out.getvalue())},
        err.getvalue().splitlines(),
        out.getvalue(),
    )


def cells(found: dict[str, Any]) -> dict[str, dict[str, str]]:
    (group,) = found["spec"]["resourceGroups"]
    return {
        cell.pop("name"): cell for cell in (dict(each) for flavor in group["flavors"] for each in flavor["resources"])
    }


def test_yunikorns_queues(tmp_path: Path) -> None:
    found, report, _ = convert(tmp_path, queues=YUNIKORN)
    assert [*found] == [
        ("ResourceFlavor", "default"), ("Cohort", "root"), ("Cohort", "research"),
        ("ClusterQueue", "research.vision"), ("ClusterQueue", "research.speech"), ("ClusterQueue", "adhoc"),
    ]  # fmt: skip
    research, vision = found["Cohort", "research"], found["ClusterQueue", "research.vision"]
    assert cells(research)["cpu"] == {"nominalQuota": "4", "borrowingLimit": "30"}
    assert cells(vision)["cpu"] == {"nominalQuota": "4", "borrowingLimit": "12"}
    assert cells(found["ClusterQueue", "research.speech"])["cpu"] == {"nominalQuota": "2"}
    assert vision["metadata"]["annotations"]["kueueweb.io/never-reclaim"] == "true"
    limits = json.loads(research["metadata"]["annotations"]["kueueweb.io/user-limits"])
    assert limits == [{"users": ["*"], "workloads": 5, "resources": {"cpu": "8"}}]
    quotas = json.loads(found["Cohort", "root"]["metadata"]["annotations"]["kueueweb.io/node-quotas"])
    assert quotas[0] == {"flavor": "default", "resource": "cpu", "share": "100%", "headroom": "10"}
    lost = [line.partition(": ")[2].partition(":")[0] for line in report if line.startswith("lost")]
    assert sorted(lost) == [
        "None ?, partitions[0].placementrules", "None ?, partitions[0].queues[0].submitacl", "None ?, queues",
        "None ?, root.Research.speech.maxapplications",
        "None ?, root.Research.vision.properties[application.sort.policy]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("{vcore: 10, memory", "{vcore: 5, memory", "sum of its children's"),
        ("max: {vcore: 40", "max: {vcore: 9", "promised"),
        ("vcore: 4}, max", "vcore: x}, max", "quantity"),
        ("name: speech", "name: Vision", "Duplicate value"),
        ("- name: default", "- name: other\n- name: default", "one partition"),
    ],
)
def test_mistakes_of_yunikorn_end_the_command(tmp_path: Path, before: str, after: str, rule: str) -> None:
    assert before in YUNIKORN
    with pytest.raises(CommandError, match=rule):
        convert(tmp_path, queues=YUNIKORN.replace(before, after))


def test_kais_queues(tmp_path: Path) -> None:
    found, report, _ = convert(tmp_path, queues=KAI)
    lab, team = found["Cohort", "lab"], found["ClusterQueue", "team"]
    assert cells(lab)["nvidia.com/gpu"] == {"nominalQuota": "5", "borrowingLimit": "8"}
    assert cells(team)["nvidia.com/gpu"] == {"nominalQuota": "3", "borrowingLimit": "7"}
    assert cells(team)["cpu"] == {"nominalQuota": "4"}
    assert (lab["spec"]["parentName"], team["spec"]["cohortName"]) == ("root", "lab")
    assert (lab["spec"]["fairSharing"], team["spec"]["fairSharing"]) == ({"weight": "2"}, {"weight": "2"})
    noted = {name.partition("/")[2]: text for name, text in team["metadata"]["annotations"].items()}
    assert (noted["queue-priority"], noted["minimum-run-seconds"]) == ("150", "3600")
    assert found["Cohort", "root"]["metadata"]["annotations"]["kueueweb.io/sharing-policy"] == "fair-share"
    assert sum("unlimited" in line for line in report) == 2
    assert any("spec.priority: not supported on a Cohort" in line for line in report)


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("limit: 10", "limit: 2", "promised"),
        ("parentQueue: lab", "parentQueue: gone", "Not found"),
        ("priority: 120", "parentQueue: team", "circle"),
        ("quota: 3,", "quota: 0.5,", "whole number"),
    ],
)
def test_mistakes_of_kai_end_the_command(tmp_path: Path, before: str, after: str, rule: str) -> None:
    assert before in KAI
    with pytest.raises(CommandError, match=rule):
        convert(tmp_path, queues=KAI.replace(before, after))


KAI_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: half, namespace: team, labels: {kai.scheduler/queue: team}}
spec:
  template:
    metadata: {labels: {kai.scheduler/queue: team}, annotations: {gpu-fraction: "0.5", gpu-fraction-num-devices: "2"}}
    spec:
      schedulerName: kai-scheduler
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
"""


def test_a_fraction_of_a_gpu_becomes_a_part_of_its_memory(tmp_path: Path) -> None:
    found, report, _ = convert(tmp_path, job=KAI_JOB)
    job = found["Job", "half"]
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team"}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "50"}
    assert "schedulerName" not in job["spec"]["template"]["spec"]
    assert not [line for line in report if line.startswith("lost")]
    memory = KAI_JOB.replace('gpu-fraction: "0.5", gpu-fraction-num-devices: "2"', 'gpu-memory: "2000"')
    found, _, _ = convert(tmp_path, job=memory)
    (container,) = found["Job", "half"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000"}


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [('"0.5"', '"1.5"', "at most 1"), ('devices: "2"', 'devices: "0"', "whole number"),
     ('gpu-fraction: "0.5", ', "", "Required value"), ('gpu-fraction: "0.5"', "gpu-fraction: half", "above 0"),
     ('gpu-fraction: "0.5", ', 'gpu-fraction: "0.5", gpu-fraction-container-name: other, ', "no container")],
)  # fmt: skip
def test_mistakes_of_a_fraction_end_the_command(tmp_path: Path, before: str, after: str, rule: str) -> None:
    assert before in KAI_JOB
    with pytest.raises(CommandError, match=rule):
        convert(tmp_path, job=KAI_JOB.replace(before, after))


def test_slurms_partitions_and_accounts(tmp_path: Path) -> None:
    found, report, _ = convert(tmp_path, conf=SLURM, dump=DUMP)
    assert [key for key in found if key[0] in ("ResourceFlavor", "Cohort", "ClusterQueue", "Namespace")] == [
        ("ResourceFlavor", "gpu-all"), ("ResourceFlavor", "all"), ("Cohort", "slurm"), ("ClusterQueue", "gpu"),
        ("ClusterQueue", "all"), ("Namespace", "physics"), ("Namespace", "biology"),
    ]  # fmt: skip
    (group,) = found["Cohort", "slurm"]["spec"]["resourceGroups"]
    quotas = {each["name"]: [cell["nominalQuota"] for cell in each["resources"]] for each in group["flavors"]}
    assert quotas == {"gpu-all": ["128", "512000Mi", "16"], "all": ["96", "384000Mi", "0"]}
    gpu, both = found["ClusterQueue", "gpu"], found["ClusterQueue", "all"]
    assert [each["name"] for each in both["spec"]["resourceGroups"][0]["flavors"]] == ["gpu-all", "all"]
    assert gpu["spec"]["namespaceSelector"]["matchExpressions"][0]["values"] == ["physics"]
    assert both["spec"]["stopPolicy"] == "Hold"
    assert gpu["metadata"]["annotations"]["kueueweb.io/queue-priority"] == "10"
    assert gpu["metadata"]["annotations"]["kueueweb.io/backfill"] == "easy"
    weights = json.loads(found["Cohort", "slurm"]["metadata"]["annotations"]["kueueweb.io/priority-weights"])
    assert weights == {
        "age": 1000, "fairShare": 10000, "resources": {"cpu": 10, "nvidia.com/gpu": 50}, "maxAgeSeconds": 604800,
        "halfLifeSeconds": 1209600,
    }  # fmt: skip
    assert found["RoleBinding", "physics-ada"]["spec"]["role"] == "submitter"
    text = "\n".join(report)
    for words in ("MaxTime", "PreemptType", "GrpTRES=cpu=200", "User ada of physics, Fairshare", "label these nodes"):
        assert words in text, words


def test_a_node_without_memory_is_reported(tmp_path: Path) -> None:
    _, report, _ = convert(tmp_path, conf=re.sub(r"RealMemory=\d+", "", SLURM))
    assert "without RealMemory" in "\n".join(report)


def test_the_queues_of_accounts_follow_the_rights_of_partitions(tmp_path: Path) -> None:
    _, _, text = convert(tmp_path, conf=SLURM, dump=DUMP)
    queues = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"].get("fairSharing", {}).get("weight")
        for each in yaml.safe_load_all(text)
        if each["kind"] == "LocalQueue"
    }
    assert queues == {("physics", "gpu"): "30", ("physics", "all"): "30", ("biology", "all"): None}


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("Nodes=n[01-02] Pri", "Nodes=n[01-09] Pri", "no NodeName line"),
        ("NodeName=c[1-3]", "NodeName=c[1-x]", "list of hosts"),
        ("PartitionName=all", "PartitionName=DEFAULT", "Write the defaults"),
        ("RealMemory=", "RealMemory=x", "Write a whole number"),
    ],
)
def test_mistakes_of_slurm_end_the_command(tmp_path: Path, before: str, after: str, rule: str) -> None:
    assert before in SLURM
    with pytest.raises(CommandError, match=rule):
        convert(tmp_path, conf=SLURM.replace(before, after))


def test_a_host_list_has_several_brackets(tmp_path: Path) -> None:
    conf = SLURM.replace("c[1-3]", "c[1-3]x[0,08-09]")
    _, _, text = convert(tmp_path, conf=conf)
    (cohort,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "Cohort"]
    quotas = {each["name"]: each["resources"][0]["nominalQuota"] for each in _flavors_of(cohort)}
    assert quotas == {"gpu-all": "128", "all": str(9 * 32)}


def test_flavors_have_names_of_their_own_that_are_values_of_labels(tmp_path: Path) -> None:
    both = "\nPartitionName=gpu-all Nodes=c1\n" + "\n".join(f"PartitionName=partition-{n} Nodes=c2" for n in range(9))
    conf = SLURM.replace("PartitionName=all Nodes=ALL", "PartitionName=all Nodes=n[01-02],c3") + both
    _, _, text = convert(tmp_path, conf=conf)
    objects = [*yaml.safe_load_all(text)]
    names = [each["metadata"]["name"] for each in objects if each["kind"] == "ResourceFlavor"]
    assert len({*names}) == len(names) == 4
    assert all(len(name) <= 63 for name in names)
    (cohort,) = [each for each in objects if each["kind"] == "Cohort"]
    assert [each["resources"][0]["nominalQuota"] for each in _flavors_of(cohort)] == ["128", "32", "32", "32"]


def _flavors_of(cohort: dict[str, Any]) -> list[dict[str, Any]]:
    (group,) = cohort["spec"]["resourceGroups"]
    return list(group["flavors"])
