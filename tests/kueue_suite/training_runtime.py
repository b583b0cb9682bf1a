"""The runtime that TrainJobs of Kueue's suites name. An installation of Trainer brings it along with the operator."""

from __future__ import annotations

from typing import Any, Final

from clusters.api_objects import Kind
from clusters.client import ClusterClient

RUNTIMES: Final = Kind(
    "trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)
_STEP: Final = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def install_runtime(client: ClusterClient) -> None:
    """Create the runtime `torch-distributed`: one node, with a process for each device."""
    container = {"name": "node", "image": "pytorch/pytorch:2.7.1"}
    template: dict[str, Any] = {"spec": {"template": {"spec": {"containers": [container]}}}}
    replicated = {"name": "node", "template": {"metadata": {"labels": _STEP}, **template}}
    client.create(
        RUNTIMES,
        {
            "apiVersion": RUNTIMES.api_version,
            "kind": RUNTIMES.kind,
            "metadata": {"name": "torch-distributed", "labels": {"trainer.kubeflow.org/framework": "torch"}},
            "spec": {
                "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
                "template": {"spec": {"replicatedJobs": [replicated]}},
            },
        },
    )
