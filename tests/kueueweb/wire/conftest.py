"""A small cluster for Kubernetes' wire format, and clients of its users."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from tests.accounts.test_rights_walk import clients
from tests.users import cluster, make_user

__all__ = ["clients", "cluster"]

OBJECTS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: on-demand}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: company}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research, labels: {tier: gold}}
spec:
  cohortName: company
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: on-demand, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team-a}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
  namespace: NAMESPACE
  labels: {kueue.x-k8s.io/queue-name: main, app: APP}
spec:
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
"""
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


def submit(cluster: Cluster, name: str, namespace: str = "team-a", app: str = "x") -> None:
    """A Job of two pods with a cpu each."""
    text = JOB.replace("NAMESPACE", namespace).replace("NAME", name).replace("APP", app)
    apply_manifests(cluster, text, user=None)


def names(answer: Any) -> list[str]:
    """The names of the objects of a list."""
    assert answer.status_code == 200, answer.content
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def client_for(name: str) -> APIClient:
    """A client that is logged in as a user of that name."""
    client = APIClient()
    client.force_authenticate(make_user(name))
    return client


@pytest.fixture
def alice(cluster: Cluster) -> APIClient:
    """A cluster admin."""
    return client_for("alice")


@pytest.fixture
def bob(cluster: Cluster) -> APIClient:
    """A submitter of team-a."""
    return client_for("bob")


@pytest.fixture
def charlie(cluster: Cluster) -> APIClient:
    """A submitter of team-b."""
    return client_for("charlie")


@pytest.fixture
def queues(cluster: Cluster) -> Cluster:
    """The cluster with a queue of four cpus and a LocalQueue in team-a."""
    apply_manifests(cluster, OBJECTS, user=None)
    return cluster
