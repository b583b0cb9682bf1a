"""OpenTofu with Terraform's provider of Kubernetes, against the web process: queues and jobs as infrastructure."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from accounts.models import Namespace
from queues.models import ClusterQueue, Job, LocalQueue, ResourceFlavor
from tests.kubernetes.control_plane import PROGRAMS
from tests.kubernetes.test_kubectl import Kubectl
from tests.kubernetes_clients.conftest import surroundings

pytestmark = pytest.mark.django_db(transaction=True)

Tofu = Callable[..., str]

_SECONDS: Final = 300
_PROVIDER: Final = "hashicorp/kubernetes"
_CONFIGURATION: Final = """
terraform {
  required_providers {
    kubernetes = { source = "hashicorp/kubernetes" }
  }
}
provider "kubernetes" {
  config_path    = "KUBECONFIG"
  config_context = "USER"
}
"""
_QUEUES: Final = """
resource "kubernetes_manifest" "queue" {
  manifest = {
    apiVersion = "kueue.x-k8s.io/v1beta2"
    kind       = "ClusterQueue"
    metadata   = { name = "training" }
    spec = {
      cohortName        = "company"
      namespaceSelector = {}
      preemption        = { reclaimWithinCohort = "Any" }
      resourceGroups = [{
        coveredResources = ["cpu", "memory"]
        flavors = [{
          name = "on-demand"
          resources = [
            { name = "cpu", nominalQuota = "CPUS" },
            { name = "memory", nominalQuota = "8Gi", borrowingLimit = "1Gi" },
          ]
        }]
      }]
    }
  }
}
resource "kubernetes_manifest" "second" {
  depends_on = [kubernetes_manifest.queue]
  manifest = {
    apiVersion = "kueue.x-k8s.io/v1beta2"
    kind       = "LocalQueue"
    metadata   = { name = "second", namespace = "team-a" }
    spec       = { clusterQueue = "training" }
  }
}
resource "kubernetes_manifest" "flavor" {
  manifest = {
    apiVersion = "kueue.x-k8s.io/v1beta2"
    kind       = "ResourceFlavor"
    metadata   = { name = "spot" }
    spec       = { nodeLabels = { tier = "spot" } }
  }
}
resource "kubernetes_labels" "area" {
  api_version = "kueue.x-k8s.io/v1beta2"
  kind        = "ClusterQueue"
  metadata {
    name = "research"
  }
  labels = { area = "ml" }
}
data "kubernetes_resource" "research" {
  api_version = "kueue.x-k8s.io/v1beta2"
  kind        = "ClusterQueue"
  metadata {
    name = "research"
  }
}
output "cohort" {
  value = data.kubernetes_resource.research.object.spec.cohortName
}
"""
_JOB: Final = """
resource "kubernetes_manifest" "job" {
  manifest = {
    apiVersion = "batch/v1"
    kind       = "Job"
    metadata   = { name = "trained", namespace = "team-a", labels = { "kueue.x-k8s.io/queue-name" = "main" } }
    spec = {
      parallelism = 1
      completions = 1
      template = { spec = {
        restartPolicy = "Never"
        containers    = [{ name = "main", image = "busybox", resources = { requests = { cpu = "1" } } }]
      } }
    }
  }
}
"""


_TYPED: Final = """
resource "kubernetes_namespace_v1" "team" {
  metadata {
    name   = "team-c"
    labels = { tier = "x" }
  }
}
resource "kubernetes_job_v1" "job" {
  wait_for_completion = false
  metadata {
    name      = "typed"
    namespace = "team-a"
    labels    = { "kueue.x-k8s.io/queue-name" = "main" }
  }
  spec {
    parallelism = 1
    completions = 1
    template {
      metadata {}
      spec {
        restart_policy = "Never"
        container {
          name    = "main"
          image   = "busybox"
          command = ["sleep", "1"]
          resources {
            requests = { cpu = "1" }
          }
        }
      }
    }
  }
}
"""


@pytest.fixture
def tofu(kubectl: Kubectl, program: Callable[[str], str], tmp_path: Path) -> Tofu:
    """Runs OpenTofu as a user with resources, in one folder, and returns its output."""
    assert program("terraform-provider-kubernetes")
    folder, settings = tmp_path / "tofu", tmp_path / "tofu.rc"
    folder.mkdir()
    overrides = f'  dev_overrides {{ "{_PROVIDER}" = "{PROGRAMS}" }}\n'
    settings.write_text(f"provider_installation {{\n{overrides}  direct {{}}\n}}\n")
    environment = {**surroundings(tmp_path), "TF_CLI_CONFIG_FILE": str(settings)}

    def run(user: str, resources: str, *words: str) -> str:
        text = _CONFIGURATION.replace("KUBECONFIG", str(tmp_path / "kubeconfig")).replace("USER", user)
        (folder / "main.tf").write_text(text + resources)
        command = [program("tofu"), *words, "-no-color"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=_SECONDS
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    return run


def test_queues_are_made_changed_and_deleted(tofu: Tofu) -> None:
    queues = _QUEUES.replace("CPUS", "4")
    assert 'cohort = "company"' in tofu("alice", queues, "apply", "-auto-approve")
    made = ClusterQueue.objects.get(name="training")
    assert LocalQueue.objects.get(name="second").cluster_queue_name == "training"
    assert ResourceFlavor.objects.get(name="spot").node_labels == {"tier": "spot"}
    assert ClusterQueue.objects.get(name="research").labels == {"tier": "gold", "area": "ml"}
    assert "No changes." in tofu("alice", queues, "plan")
    assert "1 changed" in tofu("alice", _QUEUES.replace("CPUS", "6"), "apply", "-auto-approve")
    assert ClusterQueue.objects.get(name="training").uid == made.uid
    assert "Destroy complete! Resources: 4 destroyed." in tofu("alice", queues, "destroy", "-auto-approve")
    assert set(ClusterQueue.objects.values_list("name", flat=True)) == {"research"}
    assert ClusterQueue.objects.get(name="research").labels == {"tier": "gold"}


def test_a_job_of_a_submitter(tofu: Tofu) -> None:
    tofu("bob", _JOB, "apply", "-auto-approve")
    made = Job.objects.get(name="trained")
    assert made.workloads.count() == 1
    assert "No changes." in tofu("bob", _JOB, "plan")
    larger = _JOB.replace("parallelism = 1", "parallelism = 2").replace("completions = 1", "completions = 2")
    assert "1 to change" in tofu("bob", _JOB.replace("parallelism = 1", "parallelism = 2"), "plan")
    assert "must be replaced" not in tofu("bob", larger, "plan")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        tofu("charlie", _JOB, "plan")
    assert "forbidden" in refused.value.stderr
    tofu("bob", _JOB, "destroy", "-auto-approve")
    assert not Job.objects.filter(name="trained").exists()


def test_resources_of_one_kind_send_protobuf(tofu: Tofu) -> None:
    tofu("alice", _TYPED, "apply", "-auto-approve")
    assert Namespace.objects.get(name="team-c").labels["tier"] == "x"
    [workload] = Job.objects.get(name="typed").workloads.all()
    assert (workload.queue_name, workload.submitted_by) == ("main", "alice")
    assert "No changes." in tofu("alice", _TYPED, "plan")
    tofu("alice", _TYPED, "destroy", "-auto-approve")
    assert not Job.objects.filter(name="typed").exists()
