"""MultiKueueConfig, MultiKueueCluster and the Configuration's multiKueue: Kueue's rules for them, in both versions."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.kinds.configuration import read_configuration
from accounts.models import Cluster
from clusters.manifests import apply_manifests
from foundation.exceptions import ManifestErrors
from queues.models import MultiKueueCluster, MultiKueueConfig
from scheduling.manifest import FieldReader, ValidationReport

WORKERS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: gpus}
spec: {clusters: [west, east]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: east}
spec: {clusterSource: {kubeConfig: {location: east-secret}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: west}
spec: {clusterSource: {clusterProfileRef: {name: west-cluster}}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: MultiKueueCluster
metadata: {name: old}
spec: {kubeConfig: {location: /etc/multikueue/kubeconfigs/old, locationType: Path}}
"""


def mistakes(cluster: Cluster, kind: str, spec: str) -> list[str]:
    text = f"{{apiVersion: kueue.x-k8s.io/v1beta2, kind: {kind}, metadata: {{name: x}}, spec: {spec}}}"
    with pytest.raises(ManifestErrors) as refused:
        apply_manifests(cluster, text, user=None)
    return [f"{error.path}: {error.rule}" for error in refused.value.errors]


@pytest.mark.django_db
def test_they_are_applied_in_both_versions_and_given_back(cluster: Cluster) -> None:
    apply_manifests(cluster, WORKERS, user=None)
    assert MultiKueueConfig.objects.get().clusters == ["west", "east"]
    found = {row.name: (row.kube_config, row.cluster_profile) for row in MultiKueueCluster.objects.all()}
    assert found == {
        "east": ({"location": "east-secret", "locationType": "Secret"}, ""),
        "west": ({}, "west-cluster"),
        "old": ({"location": "/etc/multikueue/kubeconfigs/old", "locationType": "Path"}, ""),
    }
    assert {applied.action for applied in apply_manifests(cluster, WORKERS, user=None).objects} == {"unchanged"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("MultiKueueConfig", "{clusters: []}", "spec.clusters"),
        ("MultiKueueConfig", "{clusters: [a, a]}", "spec.clusters[1]: Duplicate value"),
        ("MultiKueueConfig", "{clusters: [" + ", ".join(f"c{n}" for n in range(21)) + "]}", "spec.clusters"),
        ("MultiKueueConfig", "{clusters: [a], quotaManagement: Mine}", "spec.quotaManagement"),
        ("MultiKueueCluster", "{clusterSource: {}}", "exactly one of the fields in [kubeConfig clusterProfileRef]"),
        (
            "MultiKueueCluster",
            "{clusterSource: {kubeConfig: {location: a}, clusterProfileRef: {name: b}}}",
            "exactly one of the fields in [kubeConfig clusterProfileRef]",
        ),
        (
            "MultiKueueCluster",
            "{clusterSource: {kubeConfig: {location: a, locationType: Git}}}",
            "spec.clusterSource.kubeConfig.locationType",
        ),
        ("MultiKueueCluster", "{clusterSource: {kubeConfig: {}}}", "spec.clusterSource.kubeConfig.location"),
    ],
)
def test_each_mistake_names_its_field(cluster: Cluster, kind: str, spec: str, expected: str) -> None:
    assert any(expected in mistake for mistake in mistakes(cluster, kind, spec))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"gcInterval": "30s", "origin": "hub", "workerLostTimeout": "5m"}, ""),
        ({"dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental"}, ""),
        ({"dispatcherName": "mine"}, "multiKueue.dispatcherName"),
        ({"workerLostTimeout": "soon"}, "multiKueue.workerLostTimeout"),
        ({"origin": "not a label"}, "multiKueue.origin"),
        ({"incrementalDispatcherConfig": {"stepSize": 0}}, "multiKueue.incrementalDispatcherConfig.stepSize"),
    ],
)
def test_the_configuration_of_multikueue(block: dict[str, Any], expected: str) -> None:
    report = ValidationReport()
    found = read_configuration(FieldReader(report, "", {"multiKueue": block}), "v1beta2")
    assert [error.path for error in report.errors] == ([expected] if expected else [])
    assert found["multiKueue"] == block
    assert not report.warnings
