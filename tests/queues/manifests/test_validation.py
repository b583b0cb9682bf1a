"""Each rule of validation: what is broken, where that is said to stand, and with which reason; what is let pass."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.manifests.read import read_objects
from foundation.exceptions import ManifestErrors
from queues.manifests.documents import Document, read_documents
from scheduling.manifest import MistakeReason


def cases(name: str, key: str) -> dict[str, dict[str, Any]]:
    """The cases of a file beside this one, by what they are about."""
    listed: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name(name).read_text())
    return {case[key]: case for case in listed}


BROKEN = cases("broken_rules.yaml", "rule")
TAKEN = cases("taken.yaml", "what")


def errors_of(content: str | dict[str, Any]) -> list[tuple[str, str]]:
    documents = read_documents(content) if isinstance(content, str) else [Document(0, content)]
    with pytest.raises(ManifestErrors) as refused:
        read_objects(documents)
    return [(error.path, str(error.reason)) for error in refused.value.errors]


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_located(rule: str) -> None:
    case = BROKEN[rule]
    reasons = case.get("reasons") or [case["reason"]]
    assert errors_of(case["manifest"]) == [(case["path"], reason) for reason in reasons]


@pytest.mark.parametrize("what", TAKEN)
def test_it_is_taken(what: str) -> None:
    case = TAKEN[what]
    (found,), _ = read_objects(read_documents(case["manifest"]))
    wanted = [case["warning"]] if "warning" in case else []
    assert [warning[: len(case["warning"])] for warning in found.submitted.report.warnings] == wanted


CELL = {"name": "cpu", "nominalQuota": 1}
POD_SET = {"template": {"spec": {"containers": [{"name": "c"}]}}}
TOO_MANY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "16 resource groups": (
        "ClusterQueue",
        "spec.resourceGroups",
        {
            "resourceGroups": [
                {
                    "coveredResources": [f"r{i}"],
                    "flavors": [{"name": f"f{i}", "resources": [{"name": f"r{i}", "nominalQuota": 1}]}],
                }
                for i in range(17)
            ]
        },
    ),
    "64 flavors of a group": (
        "ClusterQueue",
        "spec.resourceGroups[0].flavors",
        {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": f"f{i}", "resources": [CELL]} for i in range(65)],
                }
            ]
        },
    ),
    "512 quotas of a group": (
        "ClusterQueue",
        "spec.resourceGroups[0].flavors",
        {
            "resourceGroups": [
                {
                    "coveredResources": [f"r{i}" for i in range(10)],
                    "flavors": [
                        {"name": f"f{i}", "resources": [{"name": f"r{j}", "nominalQuota": 1} for j in range(10)]}
                        for i in range(52)
                    ],
                }
            ]
        },
    ),
    "256 flavors in all": (
        "ClusterQueue",
        "spec.resourceGroups",
        {
            "resourceGroups": [
                {
                    "coveredResources": [f"r{g}"],
                    "flavors": [
                        {"name": f"f{g}-{i}", "resources": [{"name": f"r{g}", "nominalQuota": 1}]} for i in range(60)
                    ],
                }
                for g in range(5)
            ]
        },
    ),
    "8 node labels": ("ResourceFlavor", "spec.nodeLabels", {"nodeLabels": {f"l{i}": "x" for i in range(9)}}),
    "16 levels": ("Topology", "spec.levels", {"levels": [{"nodeLabel": f"l{i}"} for i in range(17)]}),
    "18 pod sets": ("Workload", "spec.podSets", {"podSets": [{"name": f"p{i}", **POD_SET} for i in range(19)]}),
    "8 preemption gates": (
        "Workload",
        "spec.preemptionGates",
        {"podSets": [POD_SET], "preemptionGates": [{"name": f"g{i}"} for i in range(9)]},
    ),
    "64 admission checks": (
        "ClusterQueue",
        "spec.admissionChecksStrategy.admissionChecks",
        {"admissionChecksStrategy": {"admissionChecks": [{"name": f"c{i}"} for i in range(65)]}},
    ),
}


@pytest.mark.parametrize("most", TOO_MANY)
def test_there_are_at_most(most: str) -> None:
    kind, path, spec = TOO_MANY[most]
    content = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    assert errors_of(content) == [(path, str(MistakeReason.TOO_MANY))]


def test_a_misspelt_field_is_suggested() -> None:
    text = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {stopPolcy: Hold}\n"
    with pytest.raises(ManifestErrors) as caught:
        read_objects(read_documents(text))
    assert caught.value.errors[0].remedy == 'Did you mean "stopPolicy"?'


def test_a_long_value_is_not_repeated_whole() -> None:
    content: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x" * 10_000}}
    with pytest.raises(ManifestErrors) as caught:
        read_objects([Document(0, content)])
    assert len(caught.value.errors[0].value) < 300
